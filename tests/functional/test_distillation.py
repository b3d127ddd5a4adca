"""The distance between student and teacher."""

from __future__ import annotations

import pytest
import torch

from interlingua.functional.distillation import mean_squared_error
from tests.functional.draws import draw


def test_it_is_the_naive_double_sum():
    s, t = draw(3, 4), draw(3, 4, seed=1)
    total = sum(
        (a - b) ** 2
        for x, y in zip(s.tolist(), t.tolist(), strict=True)
        for a, b in zip(x, y, strict=True)
    )
    assert float(mean_squared_error(s, t)) == pytest.approx(total / 12, abs=1e-12)


def test_two_vectors_by_hand():
    # differences (1, 0) and (0, 3) over B = 2 and d = 2: (1 + 9) / 4
    student, teacher = (
        torch.tensor([[1.0, 2.0], [0.0, 3.0]]),
        torch.tensor([[0.0, 2.0], [0.0, 0.0]]),
    )
    assert float(mean_squared_error(student, teacher)) == 2.5


def test_length_matters():
    s = draw(3, 4)
    assert float(mean_squared_error(s, s)) == 0
    assert float(mean_squared_error(2 * s, s)) == pytest.approx(float(s.square().mean()))


def test_gradients():
    s, t = draw(3, 4).requires_grad_(), draw(3, 4, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(mean_squared_error, (s, t))
    assert torch.autograd.gradcheck(lambda s: mean_squared_error(s, t.detach()), (s,))


def test_half_precision_is_widened_first():
    s, t = torch.full((2, 2), 1.0).bfloat16(), torch.full((2, 2), 1 + 2**-7).bfloat16()
    loss = mean_squared_error(s, t)
    assert loss.dtype == torch.float32
    assert float(loss) == 2**-14
