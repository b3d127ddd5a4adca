from __future__ import annotations

import pytest

from interlingua.evaluation.task import SubsetScores
from interlingua.evaluation.tasks.groups import FLORES_GROUPS, TATOEBA_GROUPS, group_members, grouped
from interlingua.languages import resolve


def subset(name, source, pairs, accuracy):
    return SubsetScores(name=name, languages=(source, "eng_Latn"), pairs=pairs, scores={"accuracy": accuracy})


def group_scores(subsets, groups, *, pooled=()):
    return grouped(group_members(subsets, groups), pooled=pooled)["groups"]


SUBSETS = [
    subset("deu-eng", "deu_Latn", 100, 0.9),
    subset("rus-eng", "rus_Cyrl", 300, 0.5),
    subset("tur-eng", "tur_Latn", 100, 0.7),
]


def test_a_groups_name_counts_the_languages_present():
    groups = group_scores(SUBSETS, {"two": ["deu", "rus"], "some": ["rus", "fra", "tur"], "none": ["ita"]})
    assert list(groups) == ["two_2of2", "some_2of3", "all_3", "latin_script_2", "other_scripts_1"]
    assert groups["two_2of2"]["accuracy"] == pytest.approx(0.7)
    assert groups["some_2of3"]["accuracy"] == pytest.approx(0.6)
    assert groups["latin_script_2"]["accuracy"] == pytest.approx(0.8)
    assert groups["other_scripts_1"]["accuracy"] == pytest.approx(0.5)


def test_members_are_named():
    found = grouped(group_members(SUBSETS, {"two": ["deu", "rus"]}))
    assert found["members"]["two_2of2"] == ("deu-eng", "rus-eng")
    assert found["members"]["other_scripts_1"] == ("rus-eng",)
    assert found["members"].keys() == found["groups"].keys()


def test_pooling_counts_every_sentence_alike():
    scores = group_scores(SUBSETS, {}, pooled=["accuracy"])["all_3"]
    assert scores == {"accuracy": pytest.approx(0.7), "accuracy_pooled": pytest.approx((90 + 150 + 70) / 500)}


def test_a_set_with_a_list_of_all_its_languages_has_one_row_for_all():
    assert "all_3of4" in group_scores(SUBSETS, {"all": ["deu", "rus", "tur", "fra"]})
    assert "all_3" not in group_scores(SUBSETS, {"all": ["deu", "rus", "tur", "fra"]})


def test_mexmas_languages():
    codes = FLORES_GROUPS["mexma"]
    assert len(codes) == len(set(codes)) == 80
    assert "eng_Latn" not in codes


def test_mexmas_languages_that_labse_and_dap_have():
    """With English 81, 72 and 34; the two lists by their differences from others."""
    mexma, labse, dap = (set(FLORES_GROUPS[name]) for name in ("mexma", "mexma_labse", "mexma_dap"))
    assert [len(found) + 1 for found in (mexma, labse, dap)] == [81, 72, 34]
    assert all(len(codes) == len(set(codes)) for codes in FLORES_GROUPS.values())
    missing = {code.partition("_")[0] for code in mexma - labse}
    assert missing == {"acm", "aeb", "ary", "arz", "azb", "ckb", "nno", "san", "snd"}
    assert dap < labse < mexma
    xtreme = {resolve(code).code.partition("_")[0] for code in TATOEBA_GROUPS["xtreme"]}
    without = {resolve(code).code.partition("_")[0] for code in ("ara", "pes", "tgl")}
    assert {code.partition("_")[0] for code in dap} == xtreme - without
