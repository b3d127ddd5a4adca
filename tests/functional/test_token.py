"""Token distributions and their divergence against naive counting, by hand, and the fused form
against autograd."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from interlingua.functional.token import linear_token_divergence, token_divergence, token_targets

SENTENCES = [[3, 1, 1], [0], [2, 2, 2, 2], [4, 0, 5, 0, 6]]
EXTRA = [1, 0, 6, 6]
VOCAB_SIZE = 7


def packed(sentences):
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    ids = torch.tensor([token for sentence in sentences for token in sentence])
    return ids, torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).int()


def targets_of(sentences=SENTENCES, **options):
    return token_targets(*packed(sentences), **{"dtype": torch.float64, **options})


def naive_distributions(sentences, kind):
    rows = []
    for sentence in sentences:
        counts = Counter(sentence)
        rows.append(
            [
                (counts[w] if kind == "paper" else min(counts[w], 1)) / len(sentence)
                for w in range(VOCAB_SIZE)
            ]
        )
    return torch.tensor(rows, dtype=torch.float64)


def naive_divergence(logits, p):
    total = []
    for row, weights in zip(logits.tolist(), p.tolist(), strict=True):
        normalizer = math.log(sum(map(math.exp, row)))
        total.append(
            sum(
                w * (math.log(w) - (z - normalizer)) for w, z in zip(weights, row, strict=True) if w
            )
        )
    return torch.tensor(total, dtype=torch.float64)


def logits():
    return torch.randn(
        len(SENTENCES), VOCAB_SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(5)
    )


@pytest.mark.parametrize("kind", ["paper", "code"])
def test_targets_are_counted_tokens(kind):
    p = naive_distributions(SENTENCES, kind)
    targets = targets_of(kind=kind)
    torch.testing.assert_close(targets.dense(VOCAB_SIZE), p)
    torch.testing.assert_close(targets.mass, p.sum(1))
    torch.testing.assert_close(targets.negative_entropy, torch.special.xlogy(p, p).sum(1))


def test_the_masked_token_counts_as_one_more():
    expected = naive_distributions(
        [[*s, extra] for s, extra in zip(SENTENCES, EXTRA, strict=True)], "paper"
    )
    targets = targets_of(extra_ids=torch.tensor(EXTRA))
    torch.testing.assert_close(targets.dense(VOCAB_SIZE), expected)
    torch.testing.assert_close(targets.mass, torch.ones(len(SENTENCES), dtype=torch.float64))


@pytest.mark.parametrize("kind", ["paper", "code"])
def test_divergence_is_the_naive_sum(kind):
    expected = naive_divergence(logits(), naive_distributions(SENTENCES, kind))
    torch.testing.assert_close(token_divergence(logits(), targets_of(kind=kind)), expected)


def test_by_hand():
    # p = (1/4, 3/4), q = (1/2, 1/2): KL = 1/4 log 1/2 + 3/4 log 3/2
    targets = targets_of([[0, 1, 1, 1]])
    divergence = token_divergence(torch.zeros(1, 2, dtype=torch.float64), targets)
    assert float(divergence) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))


def test_the_true_distribution_has_no_divergence():
    p = naive_distributions(SENTENCES, "paper")
    divergence = token_divergence(torch.log(p.clamp(min=1e-300)), targets_of())
    torch.testing.assert_close(divergence, torch.zeros(len(SENTENCES), dtype=torch.float64))


def test_adding_a_constant_to_the_logits_changes_nothing():
    torch.testing.assert_close(
        token_divergence(logits() + 7, targets_of()), token_divergence(logits(), targets_of())
    )


def test_the_targets_of_the_code_may_go_below_zero():
    # mass 1/4 on one token that is predicted with certainty: 1/4 log 1/4
    targets = targets_of([[0, 0, 0, 0]], kind="code")
    divergence = token_divergence(torch.tensor([[50.0, 0.0]], dtype=torch.float64), targets)
    assert float(divergence) == pytest.approx(0.25 * math.log(0.25))


def test_an_unknown_kind_is_an_error():
    with pytest.raises(ValueError, match="unknown kind"):
        targets_of(kind="papr")


def hidden_and_weight():
    generator = torch.Generator().manual_seed(6)
    hidden = torch.randn(len(SENTENCES), 3, dtype=torch.float64, generator=generator)
    return hidden.requires_grad_(), torch.randn(
        VOCAB_SIZE, 3, dtype=torch.float64, generator=generator
    ).requires_grad_()


@pytest.mark.parametrize("kind", ["paper", "code"])
def test_the_fused_form_is_the_plain_one(kind):
    targets = targets_of(kind=kind)
    upstream = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    results = []
    for form in (
        lambda h, w: token_divergence(h @ w.T, targets),
        lambda h, w: linear_token_divergence(h, w, targets),
    ):
        hidden, weight = hidden_and_weight()
        value = form(hidden, weight)
        (value * upstream).sum().backward()
        results.append((value.detach(), hidden.grad, weight.grad))
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("kind", ["paper", "code"])
def test_gradients(kind):
    targets = targets_of(kind=kind)
    assert torch.autograd.gradcheck(
        lambda z: token_divergence(z, targets), logits().requires_grad_()
    )
    assert torch.autograd.gradcheck(
        lambda h, w: linear_token_divergence(h, w, targets), hidden_and_weight()
    )


def test_backward_can_be_repeated():
    hidden, weight = hidden_and_weight()
    loss = linear_token_divergence(hidden, weight, targets_of()).sum()
    loss.backward(retain_graph=True)
    once = hidden.grad.clone()
    loss.backward()
    torch.testing.assert_close(hidden.grad, 2 * once)


def test_autocast_keeps_the_sums_in_float32():
    hidden, weight = (tensor.detach().float().requires_grad_() for tensor in hidden_and_weight())
    targets = targets_of(dtype=torch.float32)
    exact = linear_token_divergence(hidden, weight, targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = linear_token_divergence(hidden, weight, targets)
        value.sum().backward()
    assert value.dtype == torch.float32
    assert weight.grad.dtype == torch.float32
    torch.testing.assert_close(value, exact, rtol=0.02, atol=0.02)
