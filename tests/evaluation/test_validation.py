from __future__ import annotations

import pytest

from interlingua.encoder.pair_scorer import PairScorer
from interlingua.errors import DataError
from interlingua.evaluation.validation import similarity_evaluator, validation_evaluator
from tests.methods.conftest import tiny_encoder


def test_scores_for_the_training_loop(pair_folder, number_encoder):
    evaluate = validation_evaluator(pair_folder)
    assert evaluate(number_encoder, 100) == {
        "tatoeba_accuracy": pytest.approx(2.8 / 3),
        "tatoeba_accuracy_forward": pytest.approx(2.8 / 3),
        "tatoeba_accuracy_backward": pytest.approx(2.8 / 3),
    }
    assert evaluate(number_encoder, 200) == evaluate(number_encoder, 300)


def test_the_files_are_read_once(pair_folder, number_encoder):
    evaluate = validation_evaluator(pair_folder)
    for file in pair_folder.iterdir():
        file.unlink()
    assert evaluate(number_encoder, 1)["tatoeba_accuracy"] > 0.9


def test_the_limit_takes_pairs_from_all_over_a_file(pair_folder, number_encoder):
    evaluate = validation_evaluator(
        pair_folder, max_pairs_per_language=4, languages=["de"], prompt="q"
    )
    evaluate(number_encoder, 1)
    assert number_encoder.texts == [
        f"{word} {n}" for word in ("Zahl", "number") for n in (0, 3, 6, 9)
    ]
    assert number_encoder.calls[0] == ("q", "deu_Latn", 16_384)


def test_directions_are_told_apart(tmp_path, table_encoder):
    (tmp_path / "deu-eng.tsv").write_text("x0\ty0\nx1\ty1\n")
    encoder = table_encoder({"x0": [10, 0], "x1": [3, 1], "y0": [2, 0.1], "y1": [0, 5]})
    assert validation_evaluator(tmp_path)(encoder, 1) == {
        "tatoeba_accuracy": 0.75,
        "tatoeba_accuracy_forward": 0.5,
        "tatoeba_accuracy_backward": 1.0,
    }


def test_an_empty_folder_is_an_error_before_training(tmp_path):
    with pytest.raises(DataError, match=r"no <lang>-eng.tsv .*validation"):
        validation_evaluator(tmp_path)


def test_two_files_of_one_pair_are_refused(pair_folder):
    (pair_folder / "de-en.tsv").write_text("eins\tone\n")
    with pytest.raises(DataError, match=r"deu-eng\.tsv: de-en\.tsv .*same pair"):
        validation_evaluator(pair_folder)


def test_cut_texts_are_counted_in_one_line(tmp_path, short_encoder, caplog):
    for code in ("deu", "rus"):
        (tmp_path / f"{code}-eng.tsv").write_text(f"{code[:2]}1 de2 de3 de4\ten1\nde5\ten1 en2\n")
    evaluate = validation_evaluator(tmp_path)
    for step in (1, 2):
        evaluate(short_encoder, step)
    assert caplog.messages == ["during validation, 2 of 6 texts were cut to 3 tokens"]


def scored_pairs(path, *rows):
    path.write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in rows))
    return path


def test_similarity_by_hand(tmp_path, table_encoder):
    """Use cosines 1, 0.6, 0 and 0.8; people swap the second and the fourth.

    rho = 1 - 6 (1 + 1) / (4 * 15).
    """
    encoder = table_encoder({"a": [1, 0], "b": [2, 0], "c": [3, 4], "d": [0, 7], "e": [4, 3]})
    rows = [("a", "b", 5), ("a", "c", 3), ("a", "d", 0), ("a", "e", 2)]
    path = scored_pairs(tmp_path / "pairs.tsv", *rows)
    assert similarity_evaluator([path])(encoder, 1) == {"valid_spearman": pytest.approx(0.8)}


def test_similarity_is_a_mean_over_files(tmp_path, table_encoder):
    encoder = table_encoder({"a": [1, 0], "b": [2, 0], "c": [3, 4], "d": [0, 7]})
    right = scored_pairs(tmp_path / "one.tsv", ("a", "b", 5), ("a", "c", 3), ("a", "d", 0))
    wrong = scored_pairs(tmp_path / "en-de.tsv", ("a", "b", 0), ("a", "c", 3), ("a", "d", 5))
    assert similarity_evaluator([right, wrong])(encoder, 1)["valid_spearman"] == pytest.approx(0.0)


def test_similarity_across_languages(tmp_path, number_encoder):
    path = scored_pairs(
        tmp_path / "en-de.tsv", ("number 1", "Zahl 1", 5), ("number 2", "Zahl 1", 0)
    )
    similarity_evaluator([path])(number_encoder, 1)
    assert [language for _, language, _ in number_encoder.calls] == ["eng_Latn", "deu_Latn"]


def test_similarity_of_a_cross_encoder_is_its_score(tmp_path):
    scorer = PairScorer(tiny_encoder(), pooling="mean").eval()
    texts = [(f"w{i} w{2 * i}", f"w{3 * i}") for i in range(6)]
    scores = scorer.score(*zip(*texts, strict=True))
    order = scores.argsort().argsort()
    path = scored_pairs(
        tmp_path / "pairs.tsv", *((a, b, y) for (a, b), y in zip(texts, order, strict=True))
    )
    assert similarity_evaluator([path])(scorer, 1)["valid_spearman"] == pytest.approx(1.0)


def test_a_cross_encoder_can_not_retrieve(pair_folder):
    assert validation_evaluator(pair_folder)(PairScorer(tiny_encoder()), 1) == {}


def test_the_names_are_those_of_what_is_measured(pair_folder, number_encoder, tmp_path):
    evaluate = validation_evaluator(pair_folder)
    assert set(evaluate.names) == evaluate(number_encoder, 1).keys()
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("Zahl 1\tZahl 2\t1\nZahl 3\tZahl 3\t5\nZahl 1\tZahl 7\t2\n", encoding="utf-8")
    evaluate = similarity_evaluator([pairs])
    assert set(evaluate.names) == evaluate(number_encoder, 1).keys()
