from __future__ import annotations

import shutil

import numpy as np
import pytest

from interlingua.corpus.formats.evaluation_sets import pair_files
from interlingua.errors import DataError
from interlingua.evaluation.tasks.translation.tatoeba import Tatoeba
from tests.evaluation.files import DATA
from tests.progress_records import Recorded


def test_both_directions_and_their_mean(pair_folder, number_encoder):
    result = Tatoeba().evaluate(number_encoder, pair_folder.parent)
    scores = {subset.name: dict(subset.scores) for subset in result.subsets}
    perfect = {"accuracy": 1.0, "accuracy_forward": 1.0, "accuracy_backward": 1.0}
    assert scores == {
        "deu-eng": perfect,
        "fra-eng": {name: pytest.approx(0.8) for name in perfect},
        "rus-eng": perfect,
    }
    assert result.main_score == pytest.approx(2.8 / 3)
    assert (result.subsets[0].pairs, result.subsets[0].languages) == (10, ("deu_Latn", "eng_Latn"))


def test_directions_are_told_apart(tmp_path, table_encoder):
    (tmp_path / "deu-eng.tsv").write_text("x0\ty0\nx1\ty1\n")
    encoder = table_encoder({"x0": [10, 0], "x1": [3, 1], "y0": [2, 0.1], "y1": [0, 5]})
    result = Tatoeba().evaluate(encoder, tmp_path)
    assert result.subsets[0].scores == {
        "accuracy": 0.75,
        "accuracy_forward": 0.5,
        "accuracy_backward": 1.0,
    }


def test_wrong_neighbors_of_both_directions_are_kept(tmp_path, table_encoder):
    (tmp_path / "deu-eng.tsv").write_text("x0\ty0\nx1\ty1\n")
    encoder = table_encoder({"x0": [1, 0], "x1": [0.6, 0.8], "y0": [0.8, 0.6], "y1": [1, 0.01]})
    (examples,) = Tatoeba().evaluate(encoder, tmp_path).examples.values()
    there = [
        (one.item, one.query, one.expected, one.retrieved)
        for one in examples
        if one.languages[0] == "deu_Latn"
    ]
    back = [
        (one.item, one.query, one.expected, one.retrieved)
        for one in examples
        if one.languages[0] == "eng_Latn"
    ]
    assert sorted(there) == [(0, "x0", "y0", "y1"), (1, "x1", "y1", "y0")]
    assert sorted(back) == [(0, "y0", "x0", "x1"), (1, "y1", "x1", "x0")]
    first = next(one for one in examples if one.query == "x1")
    assert first.expected_score == pytest.approx(0.608, abs=1e-3)
    assert first.retrieved_score == pytest.approx(0.96)
    result = Tatoeba(examples=0).evaluate(encoder, tmp_path)
    assert result.examples == {"deu-eng": ()}
    assert "examples" not in result.settings


def test_text_comparison_forgives_duplicates(tmp_path, table_encoder):
    (tmp_path / "deu-eng.tsv").write_text("ja\tyes\njawohl\tyes\n")
    encoder = table_encoder({"ja": [1, 0], "jawohl": [1, 0.1], "yes": [1, 0]})
    by_index = Tatoeba().evaluate(encoder, tmp_path).subsets[0].scores
    by_text = Tatoeba(compare="text").evaluate(encoder, tmp_path)
    assert by_index == {"accuracy": 0.5, "accuracy_forward": 0.5, "accuracy_backward": 0.5}
    assert by_text.subsets[0].scores == {
        "accuracy": 0.75,
        "accuracy_forward": 1.0,
        "accuracy_backward": 0.5,
    }
    assert by_text.settings["compare"] == "text"
    assert by_text.changed == ("compare",)


def test_other_data_never_stand_under_the_protocols_name(pair_folder, number_encoder):
    result = Tatoeba().evaluate(number_encoder, pair_folder)
    assert (
        result.task == "tatoeba_tatoeba_laser"
    )  # the folder is called so, its content is not LASER's
    assert result.data_revision is None
    assert list(result.groups) == ["all_3", "latin_script_2", "other_scripts_1"]


def test_heldout_of_a_prepared_corpus_with_a_pair_without_english(
    pair_folder, number_encoder, tmp_path
):
    shutil.copytree(pair_folder, tmp_path / "prepared" / "heldout")
    (tmp_path / "prepared" / "heldout" / "deu-fra.tsv").write_text(
        "Zahl 1\tnombre 1\nZahl 2\tnombre 2\n"
    )
    result = Tatoeba(languages=["de"]).evaluate(number_encoder, tmp_path / "prepared")
    assert result.task == "tatoeba_heldout"
    assert [(subset.name, subset.languages) for subset in result.subsets] == [
        ("deu-eng", ("deu_Latn", "eng_Latn")),
        ("deu-fra", ("deu_Latn", "fra_Latn")),
    ]


def test_progress_counts_sentences_and_languages_reach_the_encoder(pair_folder, number_encoder):
    seen = Recorded()
    Tatoeba(languages=["fr", "ru"]).evaluate(number_encoder, pair_folder, progress=seen)
    assert seen.states == [("fra-eng", 20, 40), ("rus-eng", 40, 40)]
    assert {language for _, language, _ in number_encoder.calls} == {
        "fra_Latn",
        "rus_Cyrl",
        "eng_Latn",
    }


def test_the_digest_is_of_what_was_scored(pair_folder, number_encoder):
    def digest(languages):
        return Tatoeba(languages=languages).evaluate(number_encoder, pair_folder).data_sha256

    assert digest(["de"]) == digest(["deu"]) != digest(None)
    before = digest(["de"])
    (pair_folder / "deu-eng.tsv").write_text("Zahl 1\tnumber 1\n")
    assert digest(["de"]) != before


@pytest.mark.parametrize("other", ["de-en.tsv", "tatoeba.deu-eng.deu", "deu-eng.tsv.gz"])
def test_two_files_of_one_pair_are_refused(pair_folder, number_encoder, other):
    (pair_folder / other).write_bytes((pair_folder / "deu-eng.tsv").read_bytes())
    for ask in (
        lambda task: task.parts(pair_folder),
        lambda task: task.evaluate(number_encoder, pair_folder.parent),
    ):
        with pytest.raises(DataError, match=r"same pair .*remove") as error:
            ask(Tatoeba())
        assert other in str(error.value)
        assert "deu-eng.tsv" in str(error.value)


def test_no_files_is_one_line(tmp_path, number_encoder):
    with pytest.raises(DataError, match=r"<lang>-eng.tsv files .* tatoeba_laser/"):
        Tatoeba().evaluate(number_encoder, tmp_path)


@pytest.mark.data
def test_lasers_data_are_recognized_and_complete(number_encoder):
    folder = DATA / "tatoeba_laser"
    if not pair_files(folder):
        pytest.skip(f"{folder} is not there")

    class Lengths:
        dim = 2

        def encode(self, texts, *, language=None):
            return np.array([[len(text), 1.0] for text in texts])

    result = Tatoeba().evaluate(Lengths(), folder)
    assert (result.task, result.data_revision) == ("tatoeba", "LASER@74bc6ae")
    assert len(result.subsets) == 112
    assert sum(subset.pairs for subset in result.subsets) == 88_877
    assert sum(subset.pairs < 1000 for subset in result.subsets) == 40
    names = [name for name in result.groups if "of" in name]
    assert names == [
        "muse_14of14",
        "xtreme_36of36",
        "xtreme_max_37of37",
        "sbert_distill_45of45",
        "ems_58of58",
        "less_than_laser_43of43",
        "over_300k_42of42",
        "under_300k_11of11",
        "ems_over_300k_43of43",
        "ems_under_300k_15of15",
        "unseen_by_ems_54of54",
        "laser_83of83",
        "all_112of112",
    ]
