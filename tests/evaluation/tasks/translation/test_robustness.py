from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.tasks.translation.robustness import (
    DEFAULT_LANGUAGES,
    Robustness,
    sentences_in_form,
)
from tests.evaluation.encoders import Letters

ANGLES = {"Ab": 0, "Cd": 90, "ab": 30, "cd": 150, "AB": 60, "CD": 100}


class Angles:
    """Unit vectors in the plane, by text."""

    def encode(self, texts, *, language=None):
        angles = np.radians([ANGLES[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def write(folder, **lines):
    folder.mkdir()
    for language, texts in lines.items():
        (folder / f"{language}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return folder


def by_name(result):
    return {subset.name: subset.scores for subset in result.subsets}


def test_two_sentences_worked_by_hand(tmp_path):
    """Put lower case 30 and 60 degrees away, and capitals 60 degrees, nearer to the other one."""
    folder = write(tmp_path / "own", deu_Latn=["Ab", "Cd"])
    result = Robustness(forms=("lower_case", "capitals")).evaluate(Angles(), folder)
    cosine = {angle: np.cos(np.radians(angle)) for angle in (10, 30, 60)}
    scores = by_name(result)
    lower = (cosine[30] + cosine[60]) / 2
    assert scores["deu_Latn-lower_case"] == pytest.approx({"cosine": lower, "accuracy": 1.0})
    capitals = (cosine[60] + cosine[10]) / 2
    assert scores["deu_Latn-capitals"] == pytest.approx({"cosine": capitals, "accuracy": 0.5})
    assert result.items["deu_Latn-capitals"].values == pytest.approx([cosine[60], cosine[10]])
    assert result.groups["all_2"]["cosine"] == pytest.approx((lower + capitals) / 2)
    assert set(result.groups) == {"all_2", "lower_case_1", "capitals_1"}
    (example,) = result.examples["deu_Latn-capitals"]
    assert (example.query, example.expected, example.retrieved) == ("AB", "Ab", "Cd")
    assert result.task == "robustness_own"


def test_forms_that_a_language_has_not_are_left_out(tmp_path):
    lines = ["Der Hund schläft.", "Die Bibliothek ist geschlossen."]
    folder = write(tmp_path / "own", deu_Latn=lines, tha_Thai=["ภาษาไทย ดี", "หมา นอน"])
    names = set(by_name(Robustness().evaluate(Letters(), folder)))
    assert {"deu_Latn-capitals", "deu_Latn-typos", "deu_Latn-soft_hyphens"} <= names
    assert "deu_Latn-points" not in names
    assert not {"tha_Thai-capitals", "tha_Thai-points", "tha_Thai-soft_hyphens"} & names


def test_capitals_of_a_few_names_are_no_form_of_a_language(tmp_path):
    lines = ["هو يعمل في Nasa", "المكتبة مغلقة", "يوم الأحد"]
    names = by_name(Robustness().evaluate(Letters(), write(tmp_path / "own", arb_Arab=lines)))
    assert "arb_Arab-points" in names
    assert "arb_Arab-capitals" not in names


def test_repeated_sentences_count_once_and_the_first_are_taken(tmp_path):
    folder = write(tmp_path / "own", deu_Latn=["Ab", "Ab", "Cd", "Ef"])
    task = Robustness(forms=("lower_case",), sentences=2)
    (subset,) = task.evaluate(Angles(), folder).subsets
    assert subset.pairs == 2


def test_sentences_with_the_form_come_first():
    found = sentences_in_form(["ab", "Cd", "Ef"], "lower_case", "deu_Latn")
    assert found.clean == ["Cd", "Ef", "ab"]
    assert found.variants == ["cd", "ef"]


def test_draws_depend_on_the_sentence_alone(tmp_path):
    lines = ["The library is closed.", "Another sentence about trains."]
    folder = write(tmp_path / "own", eng_Latn=lines)
    (unit,) = Robustness(forms=("typos",)).units(folder)
    _, again = Robustness(forms=("capitals", "typos"), sentences=2).units(folder)
    assert unit.data == again.data


def test_ten_languages_by_default_where_they_are_all_there(tmp_path):
    lines = {code: ["Ab cd", "Ef gh"] for code in (*DEFAULT_LANGUAGES, "fra_Latn")}
    folder = write(tmp_path / "own", **lines)
    assert Robustness().parts(folder) == list(DEFAULT_LANGUAGES)
    assert Robustness(languages=["fr"]).parts(folder) == ["fra_Latn"]
    (folder / "vie_Latn.txt").unlink()
    assert len(Robustness().parts(folder)) == 10


def test_wrong_options_and_too_few_sentences_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"forms.*capitals"):
        Robustness(forms=("capital",))
    with pytest.raises(ConfigError, match=r"sentences.*2"):
        Robustness(sentences=1)
    with pytest.raises(DataError, match="deu_Latn"):
        Robustness().evaluate(Letters(), write(tmp_path / "own", deu_Latn=["Ab"]))
