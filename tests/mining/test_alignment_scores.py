from __future__ import annotations

import pytest

from interlingua.alignment.sentence_alignment import Link, LinkCounts


def links(*sides):
    return [Link(tuple(source), tuple(target), 0.0) for source, target in sides]


GOLD = links(([0], [0]), ([1, 2], [1]), ([3], []), ([4], [2, 3]))


def test_worked_by_hand():
    found = links(([0], [0]), ([1], [1]), ([2], []), ([3], []), ([4], [2]), ([], [3]))
    counts = LinkCounts.of(found, GOLD)
    # strictly right of six: 0-0 and the deletion of 3; in the lax sense also 1-1 and 4-2
    assert (counts.links, counts.strict, counts.lax) == (6, 2, 4)
    # of the three gold links that join sentences one is found strictly, all in the lax sense
    assert (counts.gold, counts.gold_strict, counts.gold_lax) == (3, 1, 3)
    assert counts.strict_scores == pytest.approx((2 / 6, 1 / 3, 1 / 3))
    assert counts.lax_scores == pytest.approx((4 / 6, 1.0, 0.8))


def test_equal_links_are_right_in_both_senses():
    counts = LinkCounts.of(GOLD, GOLD)
    assert counts.strict_scores == counts.lax_scores == (1.0, 1.0, 1.0)


def test_one_side_in_common_is_not_enough():
    counts = LinkCounts.of(links(([0], [1])), links(([0], [0]), ([1], [1])))
    assert counts.lax_scores == (0.0, 0.0, 0.0)


def test_counts_of_documents_add_up():
    total = LinkCounts.of(GOLD, GOLD) + LinkCounts.of(links(([0], [9])), GOLD)
    assert (total.links, total.strict, total.gold, total.gold_strict) == (5, 4, 6, 3)
    assert total.strict_scores.precision == pytest.approx(4 / 5)


def test_repeated_and_empty_links_count_once_and_never():
    counts = LinkCounts.of(links(([0], [0]), ([0], [0]), ([], [])), GOLD)
    assert (counts.links, counts.strict) == (1, 1)


def test_no_links_at_all():
    assert LinkCounts().strict_scores == (0.0, 0.0, 0.0)
    assert LinkCounts.of([], GOLD).lax_scores == (0.0, 0.0, 0.0)
