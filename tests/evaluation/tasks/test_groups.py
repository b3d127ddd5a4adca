from __future__ import annotations

import pytest

from interlingua.config.languages import resolve_language
from interlingua.evaluation.scores import SubsetScores, mean_scores
from interlingua.evaluation.tasks.groups import (
    FLORES_GROUPS,
    TATOEBA_GROUPS,
    group_members,
    members_by_language,
    present_members,
)


def subset(name, source, pairs, accuracy):
    return SubsetScores(
        name=name, languages=(source, "eng_Latn"), pairs=pairs, scores={"accuracy": accuracy}
    )


def group_scores(subsets, groups):
    return {name: mean_scores(chosen) for name, chosen in group_members(subsets, groups).items()}


SUBSETS = [
    subset("deu-eng", "deu_Latn", 100, 0.9),
    subset("rus-eng", "rus_Cyrl", 300, 0.5),
    subset("tur-eng", "tur_Latn", 100, 0.7),
]


def test_a_groups_name_counts_the_languages_present():
    groups = group_scores(
        SUBSETS, {"two": ["deu", "rus"], "some": ["rus", "fra", "tur"], "none": ["ita"]}
    )
    assert list(groups) == ["two_2of2", "some_2of3", "all_3", "latin_script_2", "other_scripts_1"]
    assert groups["two_2of2"]["accuracy"] == pytest.approx(0.7)
    assert groups["some_2of3"]["accuracy"] == pytest.approx(0.6)
    assert groups["latin_script_2"]["accuracy"] == pytest.approx(0.8)
    assert groups["other_scripts_1"]["accuracy"] == pytest.approx(0.5)


def test_members_carry_their_counts():
    subsets = [subset(name, "deu_Latn", 1, 0.5) for name in ("a-b", "b-a")]
    found = present_members(
        subsets, {"two": ["a-b", "b-a"], "four": ["a-b", "a-c", "c-a", "b-c"], "none": ["x-y"]}
    )
    assert {name: [one.name for one in chosen] for name, chosen in found.items()} == {
        "two_2of2": ["a-b", "b-a"],
        "four_1of4": ["a-b"],
    }


def test_groups_by_language_take_any_code():
    found = members_by_language(SUBSETS, {"paper": ("de", "Turkish", "fr"), "others": ("fr",)})
    assert {name: [subset.name for subset in chosen] for name, chosen in found.items()} == {
        "paper_2of3": ["deu-eng", "tur-eng"]
    }


def test_a_set_with_a_list_of_all_its_languages_has_one_row_for_all():
    assert "all_3of4" in group_scores(SUBSETS, {"all": ["deu", "rus", "tur", "fra"]})
    assert "all_3" not in group_scores(SUBSETS, {"all": ["deu", "rus", "tur", "fra"]})


def test_mexmas_languages():
    codes = FLORES_GROUPS["mexma"]
    assert len(codes) == len(set(codes)) == 80
    assert "eng_Latn" not in codes


def test_mexmas_languages_that_labse_and_dap_have():
    """Check 81, 72 and 34 languages with English, and the two lists by their differences."""
    mexma, labse, dap = (set(FLORES_GROUPS[name]) for name in ("mexma", "mexma_labse", "mexma_dap"))
    assert [len(found) + 1 for found in (mexma, labse, dap)] == [81, 72, 34]
    assert all(len(codes) == len(set(codes)) for codes in FLORES_GROUPS.values())
    missing = {code.partition("_")[0] for code in mexma - labse}
    assert missing == {"acm", "aeb", "ary", "arz", "azb", "ckb", "nno", "san", "snd"}
    assert dap < labse < mexma
    xtreme = {resolve_language(code).code.partition("_")[0] for code in TATOEBA_GROUPS["xtreme"]}
    without = {resolve_language(code).code.partition("_")[0] for code in ("ara", "pes", "tgl")}
    assert {code.partition("_")[0] for code in dap} == xtreme - without
