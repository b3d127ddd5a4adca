"""Teacher, optimizer and schedule of calibrated similarity on fixed numbers, computed independently
in float64."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from interlingua.functional.distillation import mean_squared_error
from interlingua.methods.teachers.ema import EmaTeacher, cosine_decay
from interlingua.training.config import OptimizerConfig, ScheduleConfig
from interlingua.training.optimization.optim import build_optimizer, trust_ratios
from interlingua.training.optimization.schedules import learning_rate_factor, peak_learning_rate
from tests.methods.conftest import tiny_encoder

CASES = json.loads((Path(__file__).parent / "calibrated.json").read_text())
TOLERANCE = 1e-11


def tensor(rows, **options):
    return torch.tensor(rows, dtype=torch.float64, **options)


def test_decay():
    case = CASES["decay"]
    base, steps = case["base"], case["total_steps"]
    for step, expected in case["at"].items():
        assert cosine_decay(int(step), base=base, total_steps=steps) == pytest.approx(
            expected, abs=1e-12
        )
    kept = [cosine_decay(step, base=base, total_steps=steps) for step in range(steps)]
    assert sum(1 - decay for decay in kept) == pytest.approx(case["sum_of_1_minus_decay"], abs=1e-9)
    assert math.prod(kept) == pytest.approx(case["product"], abs=1e-9)
    small = case["small"]
    found = [cosine_decay(step, base=small["base"], total_steps=4) for step in range(5)]
    assert found == pytest.approx(small["all"], abs=1e-12)


def test_teacher_step():
    case, student = CASES["teacher_step"], tiny_encoder()
    values = student.backbone.embedding_norm.bias
    with torch.no_grad():
        values[:4] = torch.tensor(case["teacher"])
        teacher = EmaTeacher(student)
        values[:4] = torch.tensor(case["student_after_the_step"])
    teacher.update(student, case["decay"])
    found = teacher.encoder.backbone.embedding_norm.bias[:4]
    torch.testing.assert_close(found, torch.tensor(case["teacher_after"]), rtol=0, atol=1e-7)


def test_mean_squared_error():
    case = CASES["mean_squared_error"]
    student = tensor(case["student"], requires_grad=True)
    loss = mean_squared_error(student, tensor(case["teacher"]))
    loss.backward()
    assert loss.item() == pytest.approx(case["loss"], abs=1e-9)
    torch.testing.assert_close(student.grad, tensor(case["grad_student"]), rtol=0, atol=1e-9)


def test_lars_first_and_second_step():
    case = CASES["lars"]
    weight, spared = (
        nn.Parameter(tensor(values)) for values in (case["weight"], case["spared"]["weight"])
    )
    names = ("learning_rate", "momentum", "weight_decay", "trust_coefficient")
    config = OptimizerConfig(name="lars", **{name: case[name] for name in names})
    stated = {name: case[name] for name in ("learning_rate", "weight_decay")}
    assert config == OptimizerConfig(name="lars", **stated)  # BYOL's other numbers are the defaults
    optimizer = build_optimizer(nn.ParameterList([weight, spared]), config)
    for step, gradient in enumerate(case["gradients"]):
        update = tensor(gradient) + case["weight_decay"] * weight.detach()
        ratio = trust_ratios([weight.detach()], [update], case["trust_coefficient"])[0]
        assert ratio.item() == pytest.approx(case["ratios"][step], abs=TOLERANCE)
        weight.grad = tensor(gradient)
        spared.grad = tensor(case["spared"]["gradient"]) if step == 0 else None
        optimizer.step()
        torch.testing.assert_close(
            weight.detach(), tensor(case["weights_after"][step]), rtol=0, atol=TOLERANCE
        )
        if step == 0:
            momentum = optimizer.state[weight]["momentum"]
            torch.testing.assert_close(
                momentum, tensor(case["momentum_after_1"]), rtol=0, atol=TOLERANCE
            )
            torch.testing.assert_close(
                spared.detach(), tensor(case["spared"]["after_1"]), rtol=0, atol=TOLERANCE
            )


def test_learning_rate():
    case = CASES["learning_rate"]
    schedule = ScheduleConfig(name="cosine", warmup_steps=case["warmup_steps"], warmup_start=0.0)
    optimizer = OptimizerConfig(
        name="lars", learning_rate=case["peak"], learning_rate_steps=case["max_steps"]
    )
    peak = peak_learning_rate(optimizer, case["max_steps"])
    for step, expected in case["at"].items():
        factor = learning_rate_factor(int(step), config=schedule, max_steps=case["max_steps"])
        assert peak * factor == pytest.approx(expected, abs=1e-12)
