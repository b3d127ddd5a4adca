"""Joining rankings, and the languages in them: hand-worked numbers."""

from __future__ import annotations

import pytest

from interlingua.search.ranking import (
    Hit,
    LanguageShare,
    first_of_each_language,
    followed,
    fused,
    language_shares,
    merged,
)


def hit(name, score, language="eng_Latn"):
    return Hit(name, score, f"text of {name}", "", language, "{}")


def test_merged_sorts_by_score_and_then_by_id():
    rankings = [[hit("b", 0.9), hit("d", 0.2)], [hit("a", 0.9), hit("c", 0.5)], []]
    assert [found.id for found in merged(rankings, 3)] == ["a", "b", "c"]


def test_others_follow_in_their_own_order():
    first = [hit("a", 0.9), hit("b", 0.2)]
    others = [hit("c", 0.8), hit("a", 0.7), hit("d", 0.6), hit("e", 0.5)]
    assert followed(first, others, 4) == [first[0], first[1], others[0], others[2]]
    assert followed(first, others, 1) == [first[0]]


def test_the_first_of_each_language_keep_their_order():
    hits = [hit("a", 9), hit("b", 8, "deu_Latn"), hit("c", 7), hit("d", 6), hit("e", 5, "deu_Latn")]
    assert [found.id for found in first_of_each_language(hits, 2)] == ["a", "b", "c", "e"]
    assert [found.id for found in first_of_each_language(hits, 1)] == ["a", "b"]


def test_fusion_adds_reciprocal_ranks():
    vector = [hit("a", 0.9), hit("b", 0.8), hit("c", 0.7)]
    words = [hit("c", 12.0), hit("a", 3.0), hit("d", 1.0)]
    found = fused([vector, words], 3)
    assert [entry.id for entry in found] == ["a", "c", "b"]
    scores = [1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62]
    assert [entry.score for entry in found] == pytest.approx(scores)


def test_fusion_of_equals_goes_by_id():
    assert [entry.id for entry in fused([[hit("b", 1.0)], [hit("a", 1.0)]], 2)] == ["a", "b"]


def test_shares_of_languages_in_ranking_and_index():
    hits = [hit(name, 1, "eng_Latn" if name == "c" else "deu_Latn") for name in "abcd"]
    assert language_shares(hits, {"eng_Latn": 50, "deu_Latn": 30, "tha_Thai": 20}) == [
        LanguageShare("deu_Latn", 0.75, 0.3),
        LanguageShare("eng_Latn", 0.25, 0.5),
        LanguageShare("tha_Thai", 0.0, 0.2),
    ]


def test_shares_of_an_empty_ranking_are_zero():
    assert language_shares([], {"eng_Latn": 2}) == [LanguageShare("eng_Latn", 0.0, 1.0)]
