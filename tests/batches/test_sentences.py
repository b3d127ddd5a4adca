"""Joining, parting and picking batches, and finding repeated sentences and repeated meanings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.batches.sentences import (
    Meanings,
    Tails,
    by_pivot,
    chained,
    first_occurrences,
    join,
    language_codes,
    meaning_groups,
    sentence_keys,
    split_batch,
    take,
)
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.errors import DataError

from .conftest import assert_same


def batch_of(*sentences, language="eng_Latn"):
    return TokenBatch.from_lists(sentences, [language] * len(sentences))


def test_join_is_the_batch_of_all_sentences():
    parts = [batch_of([5, 6]), batch_of([7], [8]), batch_of([9, 5, 4], language="deu_Latn")]
    codes = ["eng_Latn"] * 3 + ["deu_Latn"]
    assert_same(join(*parts), TokenBatch.from_lists([[5, 6], [7], [8], [9, 5, 4]], codes))
    assert join(parts[0]) is parts[0]


def test_equal_sentences_have_equal_keys_wherever_they_stand():
    here = sentence_keys(batch_of([3], [4, 5, 6]))
    there = sentence_keys(batch_of([4, 5, 6], [9, 9], [3]))
    assert here.tolist() == [there[2], there[0]]


def test_order_length_and_tokens_matter():
    sentences = [[1, 2], [2, 1], [1], [1, 1], [1, 1, 1], [0, 3], [0], [0, 0]]
    assert len(set(sentence_keys(batch_of(*sentences)).tolist())) == len(sentences)


def test_a_hundred_thousand_short_sentences_do_not_collide():
    first, second = torch.meshgrid(torch.arange(320), torch.arange(320), indexing="ij")
    ids = torch.stack([first, second], dim=2).reshape(-1, 2)
    keys = sentence_keys(
        TokenBatch.from_flat(ids.flatten().numpy(), np.full(len(ids), 2), ["eng_Latn"] * len(ids))
    )
    assert len(keys.unique()) == len(ids)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_parts_are_batches_of_their_own_and_join_to_the_whole(size):
    sentences = [[5, 6], [7], [8, 9, 5], [4, 4, 4, 4], [6]]
    codes = ["eng_Latn", "deu_Latn", "fra_Latn", "eng_Latn", "deu_Latn"]
    parts = split_batch(TokenBatch.from_lists(sentences, codes), size)
    assert len(parts) == -(-5 // size)
    for place, part in enumerate(parts):
        rows = slice(place * size, (place + 1) * size)
        assert_same(part, TokenBatch.from_lists(sentences[rows], codes[rows]))
    assert_same(join(*parts), TokenBatch.from_lists(sentences, codes))


def test_sentences_can_be_taken_in_any_order_and_twice():
    sentences, codes = [[5, 6], [7], [8, 9, 5]], ["eng_Latn", "deu_Latn", "fra_Latn"]
    rows = [2, 0, 2, 1]
    expected = TokenBatch.from_lists([sentences[row] for row in rows], [codes[row] for row in rows])
    assert_same(take(TokenBatch.from_lists(sentences, codes), rows), expected)


def test_the_pivot_is_found_on_either_side():
    a = TokenBatch.from_lists(
        [[1], [2, 2], [3], [4]], ["deu_Latn", "eng_Latn", "fra_Latn", "eng_Latn"]
    )
    b = TokenBatch.from_lists(
        [[5, 5], [6], [7, 7, 7], [8]], ["eng_Latn", "swh_Latn", "eng_Latn", "eng_Latn"]
    )
    others, pivots = by_pivot(ParallelBatch(a, b, 0), "eng_Latn")
    codes = ["deu_Latn", "swh_Latn", "fra_Latn", "eng_Latn"]
    assert_same(others, TokenBatch.from_lists([[1], [6], [3], [4]], codes))
    assert_same(pivots, TokenBatch.from_lists([[5, 5], [2, 2], [7, 7, 7], [8]], ["eng_Latn"] * 4))


def test_a_batch_whose_targets_are_all_in_the_pivot_is_left_alone():
    a, b = batch_of([1], [2], language="deu_Latn"), batch_of([3], [4])
    others, pivots = by_pivot(ParallelBatch(a, b, 0), "eng_Latn")
    assert others is a
    assert pivots is b
    others, pivots = by_pivot(ParallelBatch(b, a, 0), "eng_Latn")
    assert_same(others, a)
    assert_same(pivots, b)


def test_a_pair_without_the_pivot_is_an_error():
    a = batch_of([1], [2], language="deu_Latn")
    b = TokenBatch.from_lists([[3], [4]], ["eng_Latn", "fra_Latn"])
    with pytest.raises(DataError, match=r"deu_Latn-fra_Latn .*eng_Latn"):
        by_pivot(ParallelBatch(a, b, 0), "eng_Latn")


def naive_groups(pairs):
    """Merge sets of sentences until no two share a sentence."""
    groups = [set(pair) for pair in pairs]
    merged = True
    while merged:
        merged = False
        for one in groups:
            for other in groups:
                if one is not other and one & other:
                    one |= other
                    groups.remove(other)
                    merged = True
                    break
            if merged:
                break
    place = {sentence: number for number, group in enumerate(groups) for sentence in group}
    return [place[a] for a, _ in pairs]


def same(a, b):
    return Meanings.of(a, b).are_same(torch.device("cpu"))


@pytest.mark.parametrize("seed", range(20))
def test_same_meanings_are_the_naive_merging_of_sets(seed):
    generator = np.random.default_rng(seed)
    pairs = [(int(a), int(b)) for a, b in generator.integers(0, 24, size=(16, 2))]
    groups = naive_groups(pairs)
    found = same(batch_of(*([a] for a, _ in pairs)), batch_of(*([b] for _, b in pairs)))
    assert found.tolist() == [[one == other for other in groups] for one in groups]
    assert 1 < len(set(groups)) < 16


def test_pairs_without_a_sentence_in_common_say_different_things():
    assert torch.equal(
        same(batch_of([1], [2], [3]), batch_of([4], [5], [6])),
        torch.eye(3, dtype=torch.bool),
    )


def test_a_long_chain_of_pairs_says_one_thing():
    numbers = [[number] for number in range(33)]
    order = torch.randperm(32, generator=torch.Generator().manual_seed(0)).tolist()
    chain = same(batch_of(*(numbers[i] for i in order)), batch_of(*(numbers[i + 1] for i in order)))
    assert chain.all()


def test_meanings_are_compared_over_all_processes():
    here, there = (batch_of([1], [2]), batch_of([7], [8])), (batch_of([3], [8]), batch_of([1], [9]))
    keys = Meanings.of(*there).keys
    gathered = Meanings.of(*here).gathered(lambda own: torch.cat([own, keys]))
    found = gathered.are_same(torch.device("cpu"))
    assert torch.equal(found, same(*map(join, here, there)))
    assert found.tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]


def test_first_occurrences_by_hand():
    batch = batch_of([5, 6], [7], [5, 6], [6, 5], [7], [7])
    assert first_occurrences(batch).tolist() == [0, 1, 3]


def test_chained_batches_stand_side_by_side():
    a, b, c = batch_of([1, 2], [3]), batch_of([4], [5, 6, 7]), batch_of([8], [9])
    order, cu_seqlens = chained(a.cu_seqlens, b.cu_seqlens, c.cu_seqlens)
    ids = torch.cat([part.input_ids for part in (a, b, c)])[order]
    assert [part.tolist() for part in ids.split(cu_seqlens.diff().tolist())] == [
        [1, 2, 4, 8],
        [3, 5, 6, 7, 9],
    ]
    assert cu_seqlens.dtype == torch.int32


def test_chained_parts_may_be_empty():
    order, cu_seqlens = chained(torch.tensor([0, 0, 2]), torch.tensor([0, 1, 1]))
    assert order.tolist() == [2, 0, 1]
    assert cu_seqlens.tolist() == [0, 1, 3]


@pytest.mark.parametrize("skip", [0, 1, 2])
def test_tails_are_sentences_without_their_first_tokens(skip):
    batch = batch_of([1, 2, 3], [4, 5], [6, 7, 8, 9])
    tails = Tails.of(batch.cu_seqlens, skip)
    kept = batch.input_ids[tails.kept].split(tails.cu_seqlens.diff().tolist())
    sentences = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
    assert [part.tolist() for part in kept] == [ids[skip:] for ids in sentences]
    assert tails.rows.tolist() == [row for row, ids in enumerate(sentences) for _ in ids[skip:]]
    assert tails.positions.tolist() == [
        place for ids in sentences for place in range(skip, len(ids))
    ]
    assert tails.cu_seqlens.dtype == batch.cu_seqlens.dtype


def test_a_language_has_one_number_everywhere():
    mixed = TokenBatch.from_lists([[1], [2], [3]], ["eng_Latn", "deu_Latn", "eng_Latn"])
    codes = language_codes(mixed).tolist()
    assert codes[0] == codes[2] == language_codes(batch_of([4]))[0] != codes[1]


def test_pairs_that_share_a_sentence_have_one_group():
    groups = meaning_groups(torch.tensor([[1, 10], [2, 20], [3, 10], [4, 30], [3, 40]])).tolist()
    assert groups[0] == groups[2] == groups[4]
    assert len({groups[0], groups[1], groups[3]}) == 3
