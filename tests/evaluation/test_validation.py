from __future__ import annotations

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.validation import validation_evaluator


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
    evaluate = validation_evaluator(pair_folder, max_pairs_per_language=4, languages=["de"], prompt="q")
    evaluate(number_encoder, 1)
    assert number_encoder.texts == [f"{word} {n}" for word in ("Zahl", "number") for n in (0, 3, 6, 9)]
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
    with pytest.raises(DataError, match=r"no <lang>-eng.tsv files here to validate on"):
        validation_evaluator(tmp_path)
