"""Contrastive losses against naive loops, hand-worked numbers and their limits."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from interlingua.functional import contrastive
from interlingua.functional.contrastive import (
    additive_margin_softmax,
    bidirectional_contrastive,
    cosine_similarities,
    infonce,
    semantic_contrastive,
)
from interlingua.functional.momentum_contrast import momentum_contrast
from tests.functional.draws import cosine, embeddings

LOSSES = [bidirectional_contrastive, additive_margin_softmax, infonce, semantic_contrastive]


def naive_margin_softmax(x, y, margin, temperature, excluded=frozenset(), *, after=False):
    total = 0.0
    for i in range(len(x)):
        for anchor, others in ((x, y), (y, x)):
            positive = cosine(anchor[i], others[i]) / temperature - (
                margin if after else margin / temperature
            )
            normalizer = math.exp(positive)
            for k in range(len(x)):
                pair = (i, k) if anchor is x else (k, i)
                if k != i and pair not in excluded:
                    normalizer += math.exp(cosine(anchor[i], others[k]) / temperature)
            total -= positive - math.log(normalizer)
    return total / len(x)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("margin", "temperature"), [(0.3, 0.1), (0.0, 1.0), (0.5, 0.7)])
def test_additive_margin_softmax_is_the_naive_loop(margin, temperature, after):
    x, y = embeddings(4), embeddings(4, seed=1)
    loss = additive_margin_softmax(
        x, y, margin=margin, temperature=temperature, margin_after_temperature=after
    )
    expected = naive_margin_softmax(x, y, margin, temperature, after=after)
    assert float(loss) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("pairs", [frozenset(), frozenset({(0, 2), (3, 1)})])
def test_bidirectional_contrastive_is_the_naive_loop(pairs):
    x, y = embeddings(4), embeddings(4, seed=1)
    excluded = torch.tensor([[(i, k) in pairs for k in range(4)] for i in range(4)])
    loss = bidirectional_contrastive(x, y, temperature=0.2, excluded=excluded)
    assert float(loss) == pytest.approx(naive_margin_softmax(x, y, 0.0, 0.2, pairs), abs=1e-12)


def test_the_positive_is_never_excluded():
    x, y = embeddings(4), embeddings(4, seed=1)
    everything = torch.ones(4, 4, dtype=torch.bool)
    assert float(bidirectional_contrastive(x, y, excluded=everything)) == pytest.approx(
        0, abs=1e-12
    )


def test_two_orthogonal_pairs_by_hand():
    # cosines 1 and 0 at T = 1: each of the two terms is log(1 + 1/e)
    eye = torch.eye(2, dtype=torch.float64)
    assert float(bidirectional_contrastive(eye, eye, temperature=1.0)) == pytest.approx(
        2 * math.log(1 + math.exp(-1))
    )
    # with margin 0.5 the positive is 0.5: log(1 + e^-0.5)
    loss = additive_margin_softmax(eye, eye, margin=0.5, temperature=1.0)
    assert float(loss) == pytest.approx(2 * math.log(1 + math.exp(-0.5)))


def test_a_single_pair_has_no_loss():
    x, y = embeddings(1), embeddings(1, seed=1)
    assert float(bidirectional_contrastive(x, y)) == 0


def test_all_alike_costs_the_logarithm_of_the_batch():
    x = torch.ones(8, 3, dtype=torch.float64)
    assert float(bidirectional_contrastive(x, x)) == pytest.approx(2 * math.log(8))
    assert float(infonce(x, x, hard_negatives=x[:3])) == pytest.approx(math.log(11))
    assert float(semantic_contrastive(x, x)) == pytest.approx(math.log(15))


def test_length_of_embeddings_is_of_no_matter_under_the_cosine():
    x, y = embeddings(4), embeddings(4, seed=1)
    for loss in LOSSES:
        torch.testing.assert_close(loss(3 * x, 0.1 * y), loss(x, y))


def test_sides_can_be_exchanged():
    x, y = embeddings(4), embeddings(4, seed=1)
    for loss in (bidirectional_contrastive, additive_margin_softmax, semantic_contrastive):
        torch.testing.assert_close(loss(x, y), loss(y, x))


@pytest.mark.parametrize("cosines", [False, True])
@pytest.mark.parametrize("pairs", [set(), {(0, 2), (3, 1), (1, 1), (2, 5)}])
def test_infonce_is_the_naive_loop(pairs, cosines):
    q, p, negatives = embeddings(4), embeddings(4, seed=1), embeddings(2, seed=2)
    excluded = torch.tensor([[(i, k) in pairs for k in range(6)] for i in range(4)])
    total = 0.0
    for i in range(4):
        scores = {}
        for k, candidate in enumerate([*p, *negatives]):
            if k == i or (i, k) not in pairs:
                scores[k] = (cosine(q[i], candidate) if cosines else float(q[i] @ candidate)) / 0.7
        total -= scores[i] - math.log(sum(map(math.exp, scores.values())))
    loss = infonce(
        q, p, hard_negatives=negatives, temperature=0.7, cosine=cosines, excluded=excluded
    )
    assert float(loss) == pytest.approx(total / 4, abs=1e-12)


@pytest.mark.parametrize("pairs", [set(), {(0, 2), (2, 0), (1, 1)}])
def test_semantic_contrastive_is_the_naive_double_sum(pairs):
    x, y = embeddings(4), embeddings(4, seed=1)
    excluded = torch.tensor([[(i, k) in pairs for k in range(4)] for i in range(4)])
    z, total = [*x, *y], 0.0
    for i in range(8):
        kept = [k for k in range(8) if k != i and (k % 4 == i % 4 or (i % 4, k % 4) not in pairs)]
        scores = {k: cosine(z[i], z[k]) / 0.1 for k in kept}
        total -= scores[(i + 4) % 8] - math.log(sum(map(math.exp, scores.values())))
    loss = semantic_contrastive(x, y, excluded=excluded)
    assert float(loss) == pytest.approx(total / 8, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients(loss):
    x, y = embeddings(3).requires_grad_(), embeddings(3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: loss(x, y, temperature=0.5), (x, y))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_temperature_must_be_positive(loss, temperature):
    with pytest.raises(ValueError, match="temperature: expected"):
        loss(embeddings(2), embeddings(2), temperature=temperature)


@pytest.mark.parametrize("loss", LOSSES)
def test_half_precision_embeddings_and_autocast_give_a_float32_loss(loss):
    x, y = embeddings(4).bfloat16(), embeddings(4, seed=1).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(loss(x, y), loss(x.float(), y.float()), rtol=0, atol=0)


def test_inner_products_are_not_rounded_under_autocast():
    x, y = 20 * embeddings(6, dim=64).float(), 20 * embeddings(6, dim=64, seed=1).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = infonce(x, y, cosine=False, temperature=1000.0)
    torch.testing.assert_close(
        found, infonce(x, y, cosine=False, temperature=1000.0), rtol=0, atol=0
    )


def test_the_zero_vector_has_cosine_zero():
    x = torch.zeros(1, 4)
    assert cosine_similarities(x, torch.ones(2, 4)).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("loss", LOSSES)
def test_excluded_pairs_get_no_gradient_and_the_others_theirs(loss):
    x, y = embeddings(4).requires_grad_(), embeddings(4, seed=1).requires_grad_()
    excluded = torch.zeros(4, 4, dtype=torch.bool)
    excluded[0, 1] = excluded[1, 0] = True
    assert torch.autograd.gradcheck(
        lambda x, y: loss(x, y, temperature=0.5, excluded=excluded), (x, y)
    )
    everything = torch.ones(4, 4, dtype=torch.bool)
    torch.testing.assert_close(
        loss(x, y, temperature=0.5, excluded=everything), torch.zeros((), dtype=torch.float64)
    )


def losses_of(x, y, negatives, excluded):
    """Compute every loss that has a chunked form."""
    wide = torch.cat([excluded, torch.zeros(len(x), len(negatives), dtype=torch.bool)], dim=1)
    wide[0, -1] = True
    return {
        "additive": additive_margin_softmax(x, y, margin=0.3, temperature=0.1, excluded=excluded),
        "after": additive_margin_softmax(
            x, y, margin=0.3, temperature=0.5, margin_after_temperature=True
        ),
        "plain": bidirectional_contrastive(x, y, temperature=0.2),
        "infonce": infonce(x, y, hard_negatives=negatives, temperature=0.3, excluded=wide),
        "products": infonce(x, y, cosine=False),
        "semantic": semantic_contrastive(x, y, excluded=excluded),
        "semantic of all": semantic_contrastive(x, y, temperature=0.3),
        "momentum": momentum_contrast(x, y, torch.cat([negatives, y, x])),
    }


@pytest.mark.parametrize("rows", [1, 3, 7, 14, 100])
def test_logits_in_chunks_give_the_same_losses_and_gradients(rows, monkeypatch):
    inputs = [embeddings(count, seed=seed).requires_grad_() for seed, count in enumerate((7, 7, 4))]
    excluded = (
        torch.rand(7, 7, generator=torch.Generator().manual_seed(3)) < 0.4
    )  # the diagonal is never excluded
    before = excluded.clone()
    whole = losses_of(*inputs, excluded)
    monkeypatch.setattr(contrastive, "WHOLE_LOGITS", 0)
    monkeypatch.setattr(contrastive, "CHUNK_LOGITS", 11 * rows)
    for name, loss in losses_of(*inputs, excluded).items():
        torch.testing.assert_close(loss, whole[name], rtol=1e-12, atol=1e-12)
        found = torch.autograd.grad(2 * loss, inputs, allow_unused=True)
        expected = torch.autograd.grad(2 * whole[name], inputs, allow_unused=True)
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12, msg=name)
    assert torch.equal(excluded, before)


@pytest.mark.parametrize("loss", [partial(additive_margin_softmax, margin=0.2), *LOSSES[2:]])
def test_chunked_gradients_are_those_of_differences(loss, monkeypatch):
    monkeypatch.setattr(contrastive, "WHOLE_LOGITS", 0)
    monkeypatch.setattr(contrastive, "CHUNK_LOGITS", 10)
    x, y = embeddings(5).requires_grad_(), embeddings(5, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: loss(x, y, temperature=0.5), (x, y))


def test_chunks_of_the_queue_give_queries_their_gradients(monkeypatch):
    monkeypatch.setattr(contrastive, "WHOLE_LOGITS", 0)
    monkeypatch.setattr(contrastive, "CHUNK_LOGITS", 14)
    keys, queue = embeddings(5, seed=1), embeddings(7, seed=2)
    queries = embeddings(5).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: momentum_contrast(x, keys, queue), queries)


class LargestTensor(TorchDispatchMode):
    """Dispatch mode that records the most elements of an operation's result."""

    most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        tensors = [
            leaf
            for leaf in (out if isinstance(out, tuple | list) else [out])
            if isinstance(leaf, torch.Tensor)
        ]
        self.most = max([self.most, *(tensor.numel() for tensor in tensors)])
        return out


@pytest.mark.parametrize("loss", [additive_margin_softmax, bidirectional_contrastive, infonce])
def test_only_what_is_too_large_is_made_in_chunks(loss, monkeypatch):
    x, y = embeddings(64).requires_grad_(), embeddings(64, seed=1).requires_grad_()
    monkeypatch.setattr(contrastive, "CHUNK_LOGITS", 8 * 64)
    for whole, most in ((64 * 64, 64 * 64), (64 * 64 - 1, 8 * 64)):
        monkeypatch.setattr(contrastive, "WHOLE_LOGITS", whole)
        with LargestTensor() as seen:
            loss(x, y).backward()
        assert seen.most == most


@pytest.mark.parametrize(
    ("loss", "sizes"), [(semantic_contrastive, (32, 32)), (momentum_contrast, (64, 64, 64))]
)
def test_only_rows_that_are_too_many_are_made_in_chunks(loss, sizes, monkeypatch):
    inputs = [embeddings(size, seed=seed).requires_grad_() for seed, size in enumerate(sizes)]
    monkeypatch.setattr(contrastive, "CHUNK_LOGITS", 8 * 64)
    for whole, rows in ((64 * 64, 64), (64 * 64 - 1, 8)):
        monkeypatch.setattr(contrastive, "WHOLE_LOGITS", whole)
        with LargestTensor() as seen:
            loss(*inputs).backward()
        # The positives have a column of their own before the queue.
        assert rows * 64 <= seen.most <= rows * 65


def test_sixteen_thousand_pairs_are_the_last_that_are_kept_whole():
    assert contrastive.WHOLE_LOGITS == 16_384**2
