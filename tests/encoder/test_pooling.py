from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from interlingua.encoder import pooling as pooling_module
from interlingua.encoder.pooling import HiddenStates

BOUNDS = torch.tensor([0, 3, 4, 9], dtype=torch.int32)
SPECIAL = torch.tensor([True, False, True, False, True, False, False, False, True])


@pytest.fixture
def hidden():
    return HiddenStates(
        torch.randn(9, 4, generator=torch.Generator().manual_seed(0)), BOUNDS, SPECIAL
    )


def sentences(hidden, *, include_special):
    bounds = hidden.cu_seqlens.tolist()
    for start, end in pairwise(bounds):
        kept = include_special | ~hidden.special[start:end]
        yield hidden.states[start:end][kept]


@pytest.mark.parametrize("include_special", [True, False])
def test_pooling_is_the_naive_one(hidden, include_special):
    parts = list(sentences(hidden, include_special=include_special))
    mean = hidden.mean(include_special=include_special)
    most = hidden.max(include_special=include_special)
    assert torch.allclose(mean, torch.stack([part.mean(0) for part in parts]))
    assert torch.allclose(most, torch.stack([part.amax(0) for part in parts]))
    assert torch.equal(hidden.cls(), hidden.states[[0, 3, 4]])


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_pool_by_name(hidden, mode):
    assert torch.equal(hidden.pool(mode), getattr(hidden, mode)())
    if mode != "cls":
        assert not torch.equal(hidden.pool(mode, include_special=False), hidden.pool(mode))


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_a_sentence_without_tokens_is_a_zero_vector(hidden, mode):
    gapped = hidden._replace(cu_seqlens=torch.tensor([0, 0, 3, 9, 9]))
    pooled = gapped.pool(mode)
    assert not pooled[[0, 3]].any()
    assert pooled[[1, 2]].abs().sum() > 0
    empty = hidden._replace(states=hidden.states[:0], cu_seqlens=torch.tensor([0, 0]))
    assert not empty.pool(mode).any()


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_gradients(mode):
    states = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda s: HiddenStates(s, BOUNDS, SPECIAL).pool(mode), (states,)
    )


def test_half_precision_states_are_pooled_in_float32():
    states = torch.full((4096, 1), 1.001, dtype=torch.bfloat16)
    mean = HiddenStates(states, torch.tensor([0, 4096])).mean()
    assert mean.dtype == torch.float32
    assert float(mean) == float(states[0])


def test_few_states_are_added_up_as_many_are(monkeypatch):
    """Check the same order of sums to the last bit, and the same gradients."""
    torch.manual_seed(0)
    states, bounds = torch.randn(30, 7, requires_grad=True), torch.tensor([0, 12, 12, 29, 30, 30])
    found = []
    for limit in (10**6, 0):
        monkeypatch.setattr(pooling_module, "SEVERAL_THREADS", limit)
        means = HiddenStates(states, bounds).mean()
        (gradient,) = torch.autograd.grad((means * torch.arange(7)).square().sum(), states)
        found.append((means, gradient))
    few, many = found
    assert torch.equal(few[0], many[0])
    assert torch.equal(few[1], many[1])
