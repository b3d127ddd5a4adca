"""Merges on top of old tokens: a hand-worked example, a slow oracle, and how each kind of tokenizer
takes a piece."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from interlingua.vocabulary.pieces import (
    Merge,
    learn_merges,
    piece_names,
    unknown_characters,
    with_pieces,
    words_of,
)
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.growing import bpe, unigram, wordpiece


def naive_merges(words, most, min_count):
    """Merge pairs, and count all of them again in each round."""
    spelled = {word: [(token,) for token in word] for word in words}
    merges = []
    while len(merges) < most:
        counts = Counter()
        for word, runs in spelled.items():
            for pair in itertools.pairwise(runs):
                counts[pair] += words[word]
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < min_count:
            break
        merges.append(Merge(*best))
        for word, runs in spelled.items():
            joined = []
            while runs:
                size = 2 if tuple(runs[:2]) == best else 1
                joined.append(sum(runs[:size], ()))
                runs = runs[size:]
            spelled[word] = joined
    return merges


def test_the_most_frequent_pair_is_joined_first():
    words = {(1, 2, 3): 5, (2, 3): 2, (1, 2): 3}
    # (1, 2) occurs in 8 words, (2, 3) in 7; after (1, 2) is joined, (2, 3) is in 2 and (12, 3)
    # in 5.
    merges = [Merge((1,), (2,)), Merge((1, 2), (3,)), Merge((2,), (3,))]
    assert learn_merges(words, most=9, min_count=1) == merges
    assert learn_merges(words, most=9, min_count=3) == merges[:2]
    assert learn_merges(words, most=1, min_count=1) == merges[:1]


def test_forbidden_neighbors_are_never_joined():
    words = {(1, 2, 3): 5}
    assert learn_merges(words, most=9, min_count=1, forbidden={(1, 2)}) == [Merge((2,), (3,))]
    assert learn_merges(words, most=9, min_count=1, forbidden={(1, 2), (2, 3)}) == []


@pytest.mark.parametrize("seed", range(5))
def test_merges_equal_those_of_counting_anew(seed):
    draw = random.Random(seed)
    drawn = [tuple(draw.choices(range(5), k=draw.randint(1, 9))) for _ in range(60)]
    words = {word: draw.randint(1, 9) for word in drawn}
    assert learn_merges(words, most=40, min_count=2) == naive_merges(words, 40, 2)


def test_words_end_at_spaces_digits_and_unknown_tokens():
    vocabulary = unigram(["▁", "a", "b", "▁a", "1", "."])
    a, b, start = (vocabulary.tokenizer.token_to_id(piece) for piece in ("a", "b", "▁a"))
    assert words_of(vocabulary, ["ab ab", "ab1ba.", "abñb"]) == {(start, b): 4, (b, a): 1, (b,): 1}


def test_names_lose_the_sign_of_a_continued_word():
    vocabulary = wordpiece(["un", "##til", "##l"])
    run = tuple(vocabulary.tokenizer.token_to_id(piece) for piece in ("un", "##til", "##l"))
    assert piece_names(vocabulary, [run, run[1:]]) == {"untill": run, "##till": run[1:]}


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [
        (unigram(["▁", "a"]), ["x"]),
        (wordpiece(["a", "##a"]), ["x", "##x"]),
        (bpe(["▁", "a"]), ["x"]),
    ],
)
def test_unknown_characters_that_are_frequent_are_found(vocabulary, expected):
    assert unknown_characters(vocabulary, ["ax ax", "ay"], min_count=2) == expected
    assert unknown_characters(vocabulary, ["aa a"], min_count=1) == []


def test_new_entries_come_behind_ids_of_added_tokens():
    vocabulary = unigram(["▁", "a", "b"], added=["<extra>"])
    a, b = vocabulary.tokenizer.token_to_id("a"), vocabulary.tokenizer.token_to_id("b")
    larger = with_pieces(vocabulary, {"ab": (a, b)})
    assert larger.tokenizer.token_to_id("ab") == vocabulary.size == larger.size - 1
    assert larger.tokenizer.token_to_id("<extra>") == vocabulary.tokenizer.token_to_id("<extra>")
    assert larger.special_tokens == vocabulary.special_tokens


def test_a_unigram_piece_scores_its_run_and_a_hair():
    vocabulary = unigram(["▁", "a", "b"])
    run = tuple(vocabulary.tokenizer.token_to_id(piece) for piece in ("a", "b"))
    entries = dict(with_pieces(vocabulary, {"ab": run}).definition["model"]["vocab"])
    assert entries["ab"] == pytest.approx(entries["a"] + entries["b"] + 1e-4, abs=1e-9)


def test_merges_written_as_strings_stay_strings():
    vocabulary = bpe(["▁", "a", "b", "c", "ab"], merges=[("a", "b")])
    definition = vocabulary.definition
    definition["model"]["merges"] = ["a b"]
    old = Vocabulary(Tokenizer.from_str(json.dumps(definition)).to_str(), special_tokens={})
    ab, c = old.tokenizer.token_to_id("ab"), old.tokenizer.token_to_id("c")
    larger = with_pieces(old, {"abc": (ab, c)}, [Merge((ab,), (c,))])
    assert larger.tokenizer.encode("abc", add_special_tokens=False).tokens == ["▁", "abc"]


def test_a_vocabulary_without_unknown_token_has_no_unknown_characters():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    vocabulary = Vocabulary(tokenizer.to_str(), special_tokens={})
    assert unknown_characters(vocabulary, ["x"], min_count=1) == []
