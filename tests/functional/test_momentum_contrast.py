"""Contrast with a queue against a loop, a number worked by hand, and limit cases."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.functional.momentum_contrast import momentum_contrast
from tests.functional.draws import draw


def test_by_hand():
    """Use q = (1, 0), k = (1/2, 1), queue (0, 1) and (-1/2, 3); tau = 1/2: logits 1, 0, -1."""
    loss = momentum_contrast(
        torch.tensor([[1.0, 0.0]]),
        torch.tensor([[0.5, 1.0]]),
        torch.tensor([[0.0, 1.0], [-0.5, 3.0]]),
        temperature=0.5,
    )
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-1) + math.exp(-2)), abs=1e-6)
    assert float(loss) == pytest.approx(0.407606, abs=1e-6)


@pytest.mark.parametrize("temperature", [0.25, 1.0])
def test_against_a_loop(temperature):
    q, k, queue = draw(4, 3), draw(4, 3, seed=1), draw(6, 3, seed=2)
    total = 0.0
    for row in range(4):
        positive = float(q[row] @ k[row]) / temperature
        negatives = [float(q[row] @ other) / temperature for other in queue]
        total -= positive - math.log(sum(map(math.exp, [positive, *negatives])))
    assert float(momentum_contrast(q, k, queue, temperature=temperature)) == pytest.approx(
        total / 4
    )


def test_gradient_flows_into_queries_alone():
    q, k, queue = (x.requires_grad_() for x in (draw(3, 3), draw(3, 3, seed=1), draw(5, 3, seed=2)))
    momentum_contrast(q, k, queue).backward()
    assert k.grad is queue.grad is None
    assert torch.autograd.gradcheck(lambda x: momentum_contrast(x, k.detach(), queue.detach()), q)


def test_an_empty_queue_teaches_nothing():
    q = draw(3, 3).requires_grad_()
    loss = momentum_contrast(q, draw(3, 3, seed=1), draw(0, 3))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert q.grad.abs().sum() == 0


def test_a_key_in_the_queue_ties_with_itself():
    q, k = draw(1, 3), draw(1, 3, seed=1)
    assert float(momentum_contrast(q, k, k)) == pytest.approx(math.log(2))


def test_sums_stay_in_float32_under_autocast():
    q, k, queue = (x.float() for x in (draw(4, 3), draw(4, 3, seed=1), draw(6, 3, seed=2)))
    exact = momentum_contrast(q, k, queue)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(momentum_contrast(q, k, queue), exact)


def test_the_temperature_is_positive():
    with pytest.raises(ValueError, match="temperature: expected"):
        momentum_contrast(draw(2, 3), draw(2, 3), draw(2, 3), temperature=0.0)
