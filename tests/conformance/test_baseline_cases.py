"""Losses of the baselines on fixed tensors, computed independently in float64."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from interlingua.functional.contrastive import bidirectional_contrastive
from interlingua.functional.distillation import mean_squared_error

CASES = json.loads((Path(__file__).parent / "baselines.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-9


def tensor(name):
    return torch.tensor(CASES[name], dtype=torch.float64, requires_grad=True)


def test_distance_to_the_teacher():
    case, student, teacher = CASES["mean_squared_error"], tensor("A"), tensor("B")
    loss = mean_squared_error(student, teacher.detach())
    loss.backward()
    assert loss.item() == pytest.approx(case["loss"], abs=TOLERANCE)
    assert (len(student[0]) * loss).item() == pytest.approx(
        case["sum_over_dimensions"], abs=TOLERANCE
    )
    expected = torch.tensor(case["grad_A"], dtype=torch.float64)
    torch.testing.assert_close(student.grad, expected, rtol=0, atol=TOLERANCE)
    assert teacher.grad is None


@pytest.mark.parametrize("side", ["B", "B_hard"])
@pytest.mark.parametrize("temperature", ["0.05", "0.1", "1.0"])
def test_infonce_in_both_directions(side, temperature):
    loss = bidirectional_contrastive(tensor("A"), tensor(side), temperature=float(temperature)) / 2
    assert loss.item() == pytest.approx(
        CASES["symmetric_infonce"][side][temperature], abs=TOLERANCE
    )
