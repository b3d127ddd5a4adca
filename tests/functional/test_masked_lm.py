"""The tiled cross-entropy against torch's over all logits, its gradients, and what it keeps in
memory."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from interlingua.functional import masked_lm
from interlingua.functional.masked_lm import SMALLEST_TILE, group_means, linear_cross_entropy
from interlingua.kernels import library


@pytest.fixture(params=["plain torch", "compiled"])
def path(request, monkeypatch):
    """Both ways from products to losses and slopes."""
    if request.param == "plain torch":
        monkeypatch.setattr(masked_lm, "can_use_training_kernel", lambda like: False)
    elif library("training") is None:
        pytest.skip("needs the compiled kernel and AVX-512 BF16")


def inputs(tokens=7, words=23, width=5, *, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = (tokens, width), (words, width), (words,)
    h, w, b = (
        torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes
    )
    return h, w, b, torch.randint(0, words, (tokens,), generator=generator)


@pytest.mark.parametrize("tile", [1, 4, 22, 23, 24, 1000, None])
def test_it_is_the_cross_entropy_of_all_logits(tile):
    h, w, b, y = inputs()
    expected = F.cross_entropy(F.linear(h, w, b), y, reduction="none")
    upstream = torch.linspace(-1, 2, len(y), dtype=torch.float64)
    wanted = torch.autograd.grad(expected, (h, w, b), upstream)
    found = linear_cross_entropy(h, w, b, y, tile=tile)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, (h, w, b), upstream), wanted)


def test_gradients():
    h, w, b, y = inputs(3, 6, 2)
    assert torch.autograd.gradcheck(lambda *xs: linear_cross_entropy(*xs, y, tile=4), (h, w, b))


def test_by_hand(path):
    # logits 0 and ln 3, so probabilities 1/4 and 3/4
    h, w, b = (
        torch.ones(1, 1),
        torch.tensor([[0.0], [math.log(2)]]),
        torch.tensor([0.0, math.log(1.5)]),
    )
    assert float(linear_cross_entropy(h, w, b, torch.tensor([1]), tile=1)) == pytest.approx(
        math.log(4 / 3)
    )
    assert float(linear_cross_entropy(h, w, b, torch.tensor([0]), tile=1)) == pytest.approx(
        math.log(4)
    )


def test_large_logits_stay_finite(path):
    h, w, b, y = inputs(dtype=torch.float32)
    losses = linear_cross_entropy(h * 1e4, w, b, y, tile=5)
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert all(torch.isfinite(tensor.grad).all() for tensor in (h, w, b))


def test_without_tokens_there_is_no_loss_and_no_gradient(path):
    h, w, b, y = inputs(tokens=0)
    losses = linear_cross_entropy(h, w, b, y)
    losses.sum().backward()
    assert losses.shape == (0,)
    assert w.grad.abs().sum() == 0
    assert b.grad.abs().sum() == 0


def test_under_autocast_products_are_half_and_sums_are_not(path):
    h, w, b, y = inputs(50, 300, 32, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = linear_cross_entropy(h, w, b, y, tile=64)
        plain = F.cross_entropy(F.linear(h, w).float() + b, y, reduction="none")
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plain, rtol=1e-5, atol=1e-5)
    gradients = torch.autograd.grad(found.mean(), (h, w, b))
    wanted = torch.autograd.grad(F.cross_entropy(F.linear(h, w, b), y), (h, w, b))
    for one, other in zip(gradients, wanted, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0.05, atol=2e-3)


def test_a_model_in_half_precision_is_near(path):
    h, w, b, y = inputs(50, 300, 32, dtype=torch.bfloat16)
    losses = linear_cross_entropy(h, w, b, y, tile=64)
    assert losses.dtype == torch.bfloat16
    wanted = F.cross_entropy(F.linear(h.float(), w.float(), b.float()), y, reduction="none")
    torch.testing.assert_close(losses.float(), wanted, rtol=0.05, atol=0.1)


@pytest.mark.parametrize(("tokens", "tiles"), [(1, 1), (256, 1), (512, 2), (4096, 4)])
def test_a_default_tile_has_a_million_logits_or_1024_words(tokens, tiles, monkeypatch):
    h, w, b, y = inputs(tokens, 4096, 1, dtype=torch.float32)
    made, product = [], masked_lm._product
    monkeypatch.setattr(masked_lm, "_product", lambda *xs: made.append(1) or product(*xs))
    linear_cross_entropy(h, w, b, y)
    assert len(made) == tiles


def test_both_paths_give_the_same(monkeypatch):
    if library("training") is None:
        pytest.skip("needs the compiled kernel and AVX-512 BF16")
    h, w, b, y = inputs(37, 1000, 16, dtype=torch.float32)
    upstream, found = torch.linspace(-1, 2, 37), []
    for compiled in (True, False):
        if not compiled:
            monkeypatch.setattr(masked_lm, "can_use_training_kernel", lambda like: False)
        losses = linear_cross_entropy(h, w, b, y, tile=300)
        found.append((losses.detach(), *torch.autograd.grad(losses, (h, w, b), upstream)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kept_bytes", [0, 2 * 40 * SMALLEST_TILE * 4, 10**9])
def test_what_is_kept_for_the_backward_pass_is_bounded_and_changes_nothing(
    path, monkeypatch, kept_bytes
):
    h, w, b, y = inputs(40, 5 * SMALLEST_TILE, 4, dtype=torch.float32)
    made, product = [], masked_lm._product
    monkeypatch.setattr(masked_lm, "_product", lambda *xs: made.append(1) or product(*xs))
    losses = linear_cross_entropy(h, w, b, y, tile=SMALLEST_TILE, kept_bytes=kept_bytes)
    assert len(made) == 5
    gradients = torch.autograd.grad(losses.sum(), (h, w, b), retain_graph=True)
    assert len(made) == 10 - min(5, kept_bytes // (40 * SMALLEST_TILE * 4))
    wanted = torch.autograd.grad(F.cross_entropy(F.linear(h, w, b), y, reduction="sum"), (h, w, b))
    for again in (gradients, torch.autograd.grad(losses.sum(), (h, w, b))):
        for one, other in zip(again, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_what_is_kept_is_freed_by_the_backward_pass_though_the_loss_lives_on(path):
    h, w, b, y = inputs(40, 2 * SMALLEST_TILE, 4, dtype=torch.float32)
    losses = linear_cross_entropy(h, w, b, y, tile=SMALLEST_TILE)
    assert [tuple(x.shape) for x in losses.grad_fn.saved_tensors[-2:]] == 2 * [(40, SMALLEST_TILE)]
    losses.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = losses.grad_fn.saved_tensors


def test_output_embeddings_that_rest_cost_no_gradient(path, monkeypatch):
    h, w, b, y = inputs(dtype=torch.float32)
    wanted = torch.autograd.grad(linear_cross_entropy(h, w, b, y, tile=5).sum(), (h, b))
    losses = linear_cross_entropy(h, w.detach(), b, y, tile=5)
    made, empty_like = [], torch.empty_like
    monkeypatch.setattr(
        torch, "empty_like", lambda x, **options: made.append(x.shape) or empty_like(x, **options)
    )
    torch.testing.assert_close(torch.autograd.grad(losses.sum(), (h, b)), wanted)
    assert w.shape not in made


def test_a_tile_may_be_larger_than_the_stack_of_a_thread(path):
    h, w, b = torch.ones(2, 1), torch.zeros(5_000_000, 1), torch.zeros(5_000_000)
    losses = linear_cross_entropy(h, w, b, torch.tensor([0, 4_999_999]), tile=5_000_000)
    assert losses.tolist() == pytest.approx([math.log(5e6)] * 2, rel=1e-5)


def test_group_means_by_hand():
    losses = torch.tensor([1.0, 3.0, 5.0], requires_grad=True)
    means = group_means(losses, torch.tensor([0, 2, 0]), 3)
    assert means.tolist() == [3.0, 0.0, 3.0]
    means.sum().backward()
    assert losses.grad.tolist() == [0.5, 1.0, 0.5]
