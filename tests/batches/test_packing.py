from __future__ import annotations

import itertools

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.batches.packing import LengthGroup, length_groups


def cumulative(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int()


def test_a_small_batch_by_hand():
    # Sequences of 2, 1, 2 tokens: the single one first, the two others in their order behind it.
    found = length_groups(cumulative([2, 1, 2]))
    assert found.permutation.tolist() == [2, 0, 1, 3, 4]
    assert found.inverse.tolist() == [1, 2, 0, 3, 4]
    assert found.groups == (LengthGroup(0, 1, 1), LengthGroup(1, 2, 2))
    assert found.order.tolist() == [1, 0, 2]
    assert found.sizes == [1, 4]
    assert found.cu_seqlens.tolist() == [0, 1, 3, 5]


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=40))
def test_groups_hold_whole_sequences_in_order(lengths):
    cu_seqlens = cumulative(lengths)
    tokens = torch.arange(int(cu_seqlens[-1])) * 10
    found = length_groups(cu_seqlens)
    assert torch.equal(tokens[found.permutation][found.inverse], tokens)
    assert sum(found.sizes) == len(tokens)
    sequences = [tokens[a:b].tolist() for a, b in itertools.pairwise(cu_seqlens)]
    for group, part in zip(found.groups, tokens[found.permutation].split(found.sizes), strict=True):
        expected = [sequence for sequence in sequences if len(sequence) == group.length]
        assert part.view(group.sequences, group.length).tolist() == expected
