"""The language contrast of multilingual IR against three loops, hand-worked numbers and its
limits."""

from __future__ import annotations

import math
from itertools import combinations, product

import pytest
import torch

from interlingua.functional import contrastive
from interlingua.functional.contrastive import language_contrastive
from tests.functional.draws import cosine, embeddings


def naive_brackets(x, y, others):
    """Compute the brackets of Eq. (3), one for each pair and each other sentence."""
    z = [*x, *y, *others]
    brackets = []
    for i in range(len(x)):
        j = i + len(x)
        for k in range(len(z)):
            if k not in (i, j):
                near_i, near_j = math.exp(cosine(z[i], z[k])), math.exp(cosine(z[j], z[k]))
                brackets.append(
                    -math.log(near_i / (near_i + near_j)) - math.log(near_j / (near_i + near_j))
                )
    return brackets


@pytest.mark.parametrize("others", [0, 1, 5])
def test_it_is_the_naive_loop(others):
    x, y, q = embeddings(4), embeddings(4, seed=1), embeddings(others, seed=2)
    brackets, sentences = naive_brackets(x, y, q), 8 + others
    assert len(brackets) == 4 * (sentences - 2)
    mean = language_contrastive(x, y, q if others else None)
    literal = language_contrastive(x, y, q if others else None, reduction="literal")
    assert float(mean) == pytest.approx(sum(brackets) / (2 * len(brackets)), abs=1e-12)
    assert float(literal) == pytest.approx(sum(brackets) / (sentences * (sentences - 2)), abs=1e-12)
    total = language_contrastive(x, y, q if others else None, reduction="sum")
    assert float(total) == pytest.approx(sum(brackets), abs=1e-11)


def test_the_mean_does_not_shrink_as_sentences_without_translation_are_added():
    x, y = embeddings(4), embeddings(4, seed=1)
    few, many = embeddings(3, seed=2), embeddings(3, seed=2).repeat(40, 1)
    only = (
        2 * 4 * 9 * language_contrastive(x, y, few) - 2 * 4 * 6 * language_contrastive(x, y)
    ) / (2 * 4 * 3)
    assert float(language_contrastive(x, y, many)) == pytest.approx(float(only), rel=0.01)
    assert language_contrastive(x, y, many, reduction="literal") < 0.1 * language_contrastive(
        x, y, many
    )


def gradient_of(pairs, others, reduction):
    """Compute the gradient at a head that all sentences share."""
    head = embeddings(6, dim=5, seed=9).requires_grad_()
    x, y = (torch.stack(side) @ head for side in zip(*pairs, strict=True))
    q = torch.stack(others) @ head if others else None
    return torch.autograd.grad(language_contrastive(x, y, q, reduction=reduction), head)[0]


@pytest.mark.parametrize("others", [(0, 0), (4, 2)])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_mean_pulls_alike_at_any_batch_size(reduction, others):
    """Compare the mean over the gradients of all smaller batches with that of the whole one.

    It is a U-statistic: each pair meets each other sentence in as many of the smaller batches.
    Pairs and texts are drawn so that their share of the other sentences, (2n - 2) : M, stays
    8 : 4 = 4 : 2. Under the sum the gradient grows by n (N - 2).
    """
    whole, part = others
    pairs = list(zip(embeddings(5, dim=6), embeddings(5, dim=6, seed=1), strict=True))
    texts = list(embeddings(whole, dim=6, seed=2))
    batches = product(combinations(pairs, 3), combinations(texts, part))
    gradients = [gradient_of(some, list(few), reduction) for some, few in batches]
    growth = {"mean": 1.0, "sum": 5 * (10 + whole - 2) / (3 * (6 + part - 2))}
    expected = torch.stack(gradients).mean(0) * growth[reduction]
    assert len(gradients) == 10 * math.comb(whole, part)
    torch.testing.assert_close(gradient_of(pairs, texts, reduction), expected)
    assert expected.abs().max() > 1e-3


@pytest.mark.parametrize(("reduction", "factor"), [("mean", 0.5), ("sum", 1)])
def test_one_pair_and_one_sentence_by_hand(reduction, factor):
    # cosines of z_k with the pair are 1 and 0: -(log s(1) + log s(-1)) = log(1 + 1/e) + log(1 + e)
    eye = torch.eye(2, dtype=torch.float64)
    found = language_contrastive(eye[:1], eye[1:], eye[:1], reduction=reduction)
    expected = factor * (math.log(1 + math.exp(-1)) + math.log(1 + math.e))
    assert float(found) == pytest.approx(expected)


def test_translations_that_are_alike_cost_log_2_and_pull_nowhere():
    x, q = embeddings(4).requires_grad_(), embeddings(3, seed=2).requires_grad_()
    loss = language_contrastive(x, 2 * x, q)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert x.grad.abs().max() < 1e-12
    assert q.grad.abs().max() < 1e-12


def test_gradients_reach_pairs_and_other_sentences():
    inputs = [embeddings(count, seed=seed).requires_grad_() for seed, count in enumerate((3, 3, 2))]
    assert torch.autograd.gradcheck(language_contrastive, inputs)
    assert torch.autograd.gradcheck(language_contrastive, inputs[:2])
    language_contrastive(*inputs).backward()
    assert all(tensor.grad.abs().min() > 0 for tensor in inputs)


@pytest.mark.parametrize("cosines", [1, 13, 30])
def test_chunks_change_nothing(cosines, monkeypatch):
    def loss_and_gradients():
        inputs = [
            embeddings(count, seed=seed).requires_grad_() for seed, count in enumerate((5, 5, 3))
        ]
        loss = language_contrastive(*inputs)
        return [loss, *torch.autograd.grad(loss, inputs)]

    whole = loss_and_gradients()
    monkeypatch.setattr(contrastive, "CHUNK_COSINES", cosines)
    torch.testing.assert_close(loss_and_gradients(), whole)


def test_no_matrix_of_pairs_and_sentences_is_kept_for_backward():
    kept = []
    x, y, q = (embeddings(count, dim=4, seed=count).requires_grad_() for count in (64, 64, 500))
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()) or tensor, lambda t: t
    ):
        language_contrastive(x, y, q)
    assert max(kept) <= 4 * (64 + 64 + 500)


def test_lengths_and_sides_are_of_no_matter():
    x, y, q = embeddings(4), embeddings(4, seed=1), embeddings(3, seed=2)
    torch.testing.assert_close(
        language_contrastive(3 * x, 0.1 * y, 7 * q), language_contrastive(x, y, q)
    )
    torch.testing.assert_close(language_contrastive(y, x, q), language_contrastive(x, y, q))


def test_half_precision_and_autocast_give_a_float32_loss():
    x, y, q = (embeddings(3, seed=seed).bfloat16() for seed in range(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = language_contrastive(x, y, q)
    torch.testing.assert_close(
        loss, language_contrastive(x.float(), y.float(), q.float()), rtol=0, atol=0
    )


def test_a_single_pair_alone_has_nothing_to_compare():
    x, y = embeddings(1), embeddings(1, seed=1)
    with pytest.raises(ValueError, match="one other sentence"):
        language_contrastive(x, y)
