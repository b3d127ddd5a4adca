"""KoLeo against a naive loop, by hand, and at its limits."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.functional.uniformity import koleo
from tests.functional.draws import embeddings


@pytest.mark.parametrize("normalize", [True, False])
def test_it_is_the_naive_loop(normalize):
    x = embeddings(6)
    points = (x / x.norm(dim=1, keepdim=True) if normalize else x).tolist()
    nearest = [min(math.dist(p, q) for q in points if q is not p) for p in points]
    expected = -sum(math.log(distance) for distance in nearest) / 6
    assert float(koleo(x, normalize=normalize)) == pytest.approx(expected, abs=1e-6)


def test_two_opposite_vectors_by_hand():
    # the distance is 2 both ways
    x = torch.tensor([[3.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    assert float(koleo(x)) == pytest.approx(-math.log(2), abs=1e-7)


def test_gradients():
    assert torch.autograd.gradcheck(koleo, embeddings(4).requires_grad_())


def test_repeats_are_finite():
    x = embeddings(3)[[0, 0, 1]].requires_grad_()
    loss = koleo(x)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(x.grad).all()


def test_one_row_has_no_neighbor():
    with pytest.raises(ValueError, match="at least 2"):
        koleo(embeddings(1))


def test_half_precision_does_not_get_in():
    x = (1 + 1e-3 * embeddings(6)).float()  # in bfloat16 most of these rows are equal
    expected = koleo(x)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(koleo(x), expected)
    assert koleo(x.bfloat16()).dtype == torch.float32
