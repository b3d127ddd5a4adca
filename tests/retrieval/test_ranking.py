"""Joining rankings, and the languages in them: hand-worked numbers."""

from __future__ import annotations

import pytest

from interlingua.retrieval.ranking import (
    Hit,
    LanguageShare,
    first_of_each_language,
    followed,
    fused,
    hit_language_shares,
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


def cosines_of(*rankings):
    return {found.id: found.score for ranking in rankings for found in ranking}


def test_cosines_and_words_are_fused_by_hand():
    nearest = [hit("a", 0.9), hit("b", 0.78), hit("c", 0.7)]
    matching = [hit("c", 12.0), hit("a", 3.0)]
    found = fused(nearest, matching, cosines_of(nearest))
    # a: 1 + 0.5 / 4, b: 0.4, c: 0 + 0.5
    assert [(entry.id, entry.score) for entry in found] == [("a", 0.9), ("c", 0.78), ("b", 0.7)]


def test_languages_keep_their_places_in_a_fusion():
    """Match only German passages by words, and change only their order."""
    nearest = [hit("d1", 0.9, "deu_Latn"), hit("e1", 0.85), hit("d2", 0.8, "deu_Latn")]
    matching = [hit("d3", 20.0, "deu_Latn"), hit("d2", 5.0, "deu_Latn")]
    found = fused(nearest, matching, cosines_of(nearest) | {"d3": 0.78})
    assert [entry.id for entry in found] == ["d1", "e1", "d3", "d2"]
    assert [entry.score for entry in found] == [0.9, 0.85, 0.8, 0.78]
    assert [entry.language for entry in found[:3]] == [entry.language for entry in nearest]


@pytest.mark.parametrize("matching", [[], [hit("x", 3.0, "tha_Thai")]])
def test_a_language_without_matches_keeps_its_order(matching):
    nearest = [hit("b", 0.9), hit("a", 0.8)]
    found = fused(nearest, matching, cosines_of(nearest) | {"x": 0.1})
    assert found[:2] == nearest


def test_words_alone_are_fused_too():
    matching = [hit("a", 2.0), hit("b", 1.0)]
    assert [entry.id for entry in fused([], matching, {"a": 0.2, "b": 0.2})] == ["a", "b"]
    assert fused([], [], {}) == []


def test_shares_of_languages_in_ranking_and_index():
    hits = [hit(name, 1, "eng_Latn" if name == "c" else "deu_Latn") for name in "abcd"]
    assert hit_language_shares(hits, {"eng_Latn": 50, "deu_Latn": 30, "tha_Thai": 20}) == [
        LanguageShare("deu_Latn", 0.75, 0.3),
        LanguageShare("eng_Latn", 0.25, 0.5),
        LanguageShare("tha_Thai", 0.0, 0.2),
    ]


def test_shares_of_an_empty_ranking_are_zero():
    assert hit_language_shares([], {"eng_Latn": 2}) == [LanguageShare("eng_Latn", 0.0, 1.0)]
