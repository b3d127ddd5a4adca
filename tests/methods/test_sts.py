"""Regression of the cosine against a loop, and where it is 0."""

import math

import pytest
import torch

from interlingua.batches.feeds import LabeledBatch
from tests.methods.harness import sentences, tiny_batch, tiny_objective


def cosine(u, v):
    products = [sum(x * y for x, y in zip(*pair, strict=True)) for pair in ((u, v), (u, u), (v, v))]
    return products[0] / math.sqrt(products[1] * products[2])


def test_the_loss_is_that_of_a_loop():
    objective, batch = tiny_objective("sts"), tiny_batch("sts")
    u, v = objective.encoder(batch.a).tolist(), objective.encoder(batch.b).tolist()
    errors = [
        (cosine(*pair) - score) ** 2
        for *pair, score in zip(u, v, batch.labels.tolist(), strict=True)
    ]
    output = objective(batch)
    assert output.loss.item() == pytest.approx(sum(errors) / len(errors), rel=1e-5)
    assert set(output.terms) == {"sts"}


@pytest.mark.parametrize(("score", "loss"), [(1.0, 0.0), (0.5, 0.25), (0.0, 1.0)])
def test_a_sentence_with_itself_by_hand(score, loss):
    same = sentences(3, seed=1)
    batch = LabeledBatch(same, same, torch.full((3,), score), step=0)
    assert tiny_objective("sts")(batch).loss.item() == pytest.approx(loss, abs=1e-6)


def test_gradient_by_hand():
    """Derive (cos - y)^2: 2 (cos - y) at cos, and the mean over the pairs."""
    objective, batch = tiny_objective("sts"), tiny_batch("sts")
    u, v = objective.encoder(batch.a), objective.encoder(batch.b)
    cosines = torch.nn.functional.cosine_similarity(u, v)
    objective(batch).loss.backward()
    found = [weight.grad.clone() for weight in objective.parameters()]
    objective.zero_grad()
    cosines.backward(2 * (cosines.detach() - batch.labels) / len(batch.labels))
    for weight, gradient in zip(objective.parameters(), found, strict=True):
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-3, atol=1e-6)
