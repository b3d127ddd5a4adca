"""Postings in blocks against counts of whole lists of words."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from interlingua.evaluation.baselines import postings
from interlingua.evaluation.baselines.postings import Postings

WORDS = [f"w{word}" for word in range(9)]


def drawn(count=40):
    draw = random.Random(3)
    return [draw.choices(WORDS, k=draw.randint(0, 12)) for _ in range(count)]


def counted(found, word):
    """Count a word by passage, from all blocks."""
    counts = {}
    for block in found.blocks():
        passages, times = block.postings(found.vocabulary[word])
        assert passages.tolist() == sorted(passages.tolist())
        counts.update(zip((block.first + passages).tolist(), times.tolist(), strict=True))
    return counts


@pytest.mark.parametrize("limits", [(1, 1), (10, 1000), (1000, 7), (1000, 1000)])
@pytest.mark.parametrize("only", [None, ["w3", "w0", "w3", "never"]])
def test_postings_are_the_counts_of_each_passage(limits, only, monkeypatch):
    monkeypatch.setattr(postings, "BLOCK_WORDS", limits[0])
    monkeypatch.setattr(postings, "BLOCK_PASSAGES", limits[1])
    passages = drawn()
    found = Postings(iter(passages), only)
    assert (found.count, found.length) == (40, sum(map(len, passages)))
    lengths = [length for block in found.blocks() for length in block.lengths.tolist()]
    assert lengths == [len(words) for words in passages]
    for word in only or WORDS:
        expected = {
            row: Counter(words)[word] for row, words in enumerate(passages) if word in words
        }
        assert counted(found, word) == expected
        assert found.document_frequencies[found.vocabulary[word]] == len(expected)
    assert found.keeps_all == (only is None)
    assert set(found.vocabulary) == set(only or WORDS)


def test_a_passage_without_words_counts():
    found = Postings([["a"], [], ["b"]])
    assert (found.count, found.length) == (3, 2)
    assert counted(found, "b") == {2: 1}


def test_no_passages_have_no_blocks():
    found = Postings([])
    assert (found.count, list(found.blocks())) == (0, [])
