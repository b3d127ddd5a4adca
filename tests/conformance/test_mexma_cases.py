"""MEXMA's terms, their sum and its learning rates, as the authors' released code gives them on the
same tensors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from interlingua.batches.masking import IGNORED
from interlingua.functional.masked_lm import group_means, linear_cross_entropy
from interlingua.functional.uniformity import koleo
from interlingua.methods.mexma import MEXMA, MEXMAConfig
from interlingua.training.config import ScheduleConfig
from interlingua.training.optimization.schedules import learning_rate_factor
from tests.methods.conftest import tiny_encoder

CASES = json.loads((Path(__file__).parent / "mexma.json").read_text())
TOLERANCE = 1e-9


def tensor(name):
    return torch.tensor(CASES[name], dtype=torch.float64, requires_grad=True)


def near(value, *, tolerance=TOLERANCE):
    return pytest.approx(value, abs=tolerance, rel=0)


def all_logits():
    case = CASES["unmasking"]
    return [
        torch.tensor(case[f"logits_{name}"], dtype=torch.float64, requires_grad=True)
        for name in "ab"
    ]


def unmasking(*given):
    """Return the mean cross-entropy of each side's masked tokens.

    The identity for a vocabulary matrix leaves the logits.
    """
    case, losses, side = CASES["unmasking"], [], []
    for place, (name, logits) in enumerate(zip("ab", given or all_logits(), strict=True)):
        labels = torch.tensor(case[f"labels_{name}"]).flatten()
        at = labels != IGNORED
        eye, zeros = torch.eye(6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
        losses.append(
            linear_cross_entropy(logits.flatten(0, 1)[at], eye, zeros, labels[at], tile=4)
        )
        side += [place] * int(at.sum())
    return group_means(torch.cat(losses), torch.tensor(side), 2)


def test_alignment():
    a, b = tensor("S_A"), tensor("S_B")
    loss = F.mse_loss(a, b)
    loss.backward()
    assert loss.item() == near(CASES["alignment"]["loss"])
    assert a.grad.flatten().tolist() == near(
        [number for row in CASES["alignment"]["grad_A"] for number in row]
    )
    assert b.grad.flatten().tolist() == near((-a.grad).flatten().tolist())


def test_unmasking():
    assert unmasking().tolist() == near(
        [CASES["unmasking"]["loss_a"], CASES["unmasking"]["loss_b"]]
    )
    assert unmasking().mean().item() == near(CASES["unmasking"]["loss"])


@pytest.fixture
def objective():
    return MEXMA(MEXMAConfig(pooling="any"), tiny_encoder())


def test_total(objective):
    a, b = tensor("S_A"), tensor("S_B")
    spread = objective.spread(a, b, None)
    assert spread.item() == near((koleo(a) + koleo(b)).item() / 2)
    assert spread.item() == near(CASES["koleo_mean"])

    def total(a, b, *logits):
        spread = objective.spread(a, b, None)
        align, mlm = objective.align(a, b, None), unmasking(*logits).mean()
        return objective.weighted(align=align, mlm=mlm, koleo=spread).loss

    inputs = (a, b, *all_logits())
    assert total(*inputs).item() == near(CASES["total"])
    assert torch.autograd.gradcheck(total, inputs)


@pytest.mark.parametrize("temperature", ["0.05", "0.1", "1.0"])
@pytest.mark.parametrize("side", ["S_B", "B_hard"])
def test_contrastive_variant(side, temperature):
    a, b = tensor("S_A"), tensor(side)
    expected = CASES["contrastive"][side][temperature]
    config = MEXMAConfig(
        pooling="any", alignment="contrastive", temperature=float(temperature), koleo_weight=0
    )
    objective = MEXMA(config, tiny_encoder())
    assert objective.align(a, b, None).item() == near(expected)
    assert torch.autograd.gradcheck(lambda x, y: objective.align(x, y, None), (a, b))


def test_learning_rates_of_the_readme():
    case = CASES["readme_schedule"]
    config = ScheduleConfig(name="cosine", warmup_steps=0.3, warmup_start=0.1)
    for step, expected in case["learning_rates"].items():
        factor = learning_rate_factor(int(step), config=config, max_steps=case["steps"])
        assert case["peak"] * factor == near(expected, tolerance=1e-13)
