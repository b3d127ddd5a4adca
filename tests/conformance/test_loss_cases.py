"""Losses and gradients on fixed tensors, computed independently in float64 and checked against the
released code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from interlingua.functional.contrastive import (
    additive_margin_softmax,
    bidirectional_contrastive,
    infonce,
    semantic_contrastive,
)
from interlingua.functional.token import linear_token_divergence, token_divergence, token_targets
from interlingua.functional.uniformity import koleo

CASES = json.loads((Path(__file__).parent / "losses.json").read_text())
TOLERANCE = 1e-7


def tensor(name_or_rows):
    rows = CASES[name_or_rows] if isinstance(name_or_rows, str) else name_or_rows
    return torch.tensor(rows, dtype=torch.float64, requires_grad=True)


def assert_near(actual, expected):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual.detach(), expected, rtol=0, atol=TOLERANCE)


def assert_loss_and_gradients(loss_function, x, y, expected):
    loss = loss_function(x, y)
    loss.backward()
    assert_near(loss, expected["loss"])
    assert_near(x.grad, expected["grad_x"])
    assert_near(y.grad, expected["grad_y"])


def assert_loss_and_slopes(loss_function, inputs, expected):
    """Compare the gradients of cases without stored ones with finite differences."""
    assert_near(loss_function(*inputs), expected)
    assert torch.autograd.gradcheck(loss_function, inputs)


def test_infonce_eq1():
    case = CASES["infonce"]
    assert_loss_and_gradients(infonce, tensor("A"), tensor("B"), case)
    a, b = tensor("A"), tensor("B")
    assert_loss_and_slopes(lambda x, y: infonce(x, y, cosine=False), (a, b), case["dot_product"])
    assert_loss_and_slopes(
        lambda x, y: infonce(x, y, temperature=0.05), (a, b), case["temperature_0.05"]
    )
    inputs = (a, b, tensor("hard_negatives"))
    assert_loss_and_slopes(
        lambda x, y, n: infonce(x, y, hard_negatives=n), inputs, case["with_hard_negatives"]
    )
    assert_loss_and_slopes(infonce, (a, tensor("B_hard")), case["B_hard"])


@pytest.mark.parametrize("temperature", ["0.05", "0.1", "1.0"])
@pytest.mark.parametrize("side", ["B", "B_hard"])
def test_semantic_contrastive_eq2(side, temperature):
    expected = CASES["semantic_contrastive"][side][temperature]

    def loss(x, y):
        return semantic_contrastive(x, y, temperature=float(temperature))

    assert_loss_and_gradients(loss, tensor("A"), tensor(side), expected)


@pytest.mark.parametrize("side", ["B", "B_hard"])
def test_ems_contrastive_eq8(side):
    case = CASES["ems_contrastive_eq8"]

    def loss(x, y):
        return bidirectional_contrastive(x, y, temperature=case["temperature"])

    assert_loss_and_gradients(loss, tensor("A"), tensor(side), case[side])


@pytest.mark.parametrize("temperature", ["1.0", "0.1"])
@pytest.mark.parametrize("side", ["B", "B_hard"])
def test_ams_labse(side, temperature):
    case = CASES["ams_labse"]

    def loss(x, y):
        return additive_margin_softmax(x, y, margin=case["margin"], temperature=float(temperature))

    assert_loss_and_slopes(loss, (tensor("A"), tensor(side)), case[side][temperature])


def test_ams_with_the_margin_after_the_temperature():
    case = CASES["ams_labse"]
    after = case["margin_after_temperature"]
    options = {
        "margin": case["margin"],
        "temperature": after["temperature"],
        "margin_after_temperature": True,
    }
    inputs = (tensor("A"), tensor("B"))
    assert_loss_and_slopes(
        lambda x, y: additive_margin_softmax(x, y, **options), inputs, after["B_sum"]
    )


def packed(sentences):
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    ids = torch.tensor([token for sentence in sentences for token in sentence])
    return ids, torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def xtr_inputs(kind):
    """Return logits and targets of both directions: s1 predicts s2, and the reverse."""
    pairs = CASES["ems_xtr_eq6"]["pairs"]
    logits = [pair["logits_from_s1"] for pair in pairs] + [pair["logits_from_s2"] for pair in pairs]
    sentences = [pair["s2"] for pair in pairs] + [pair["s1"] for pair in pairs]
    return tensor(logits), token_targets(*packed(sentences), kind=kind, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["paper", "code"])
def test_ems_token_distributions_eq7(kind):
    case = CASES["ems_xtr_eq6"]
    targets = token_targets(
        *packed([pair["s1"] for pair in case["pairs"]]), kind=kind, dtype=torch.float64
    )
    assert_near(targets.dense(case["vocab_size"]), case[f"targets_{kind}"])


@pytest.mark.parametrize("kind", ["paper", "code"])
def test_ems_xtr_eq6(kind):
    case = CASES["ems_xtr_eq6"]
    logits, targets = xtr_inputs(kind)
    pairs = len(case["pairs"])
    identity = torch.eye(case["vocab_size"], dtype=torch.float64, requires_grad=True)

    def plain(logits):
        return token_divergence(logits, targets).sum() / pairs

    def fused(features, embeddings):
        return linear_token_divergence(features, embeddings, targets).sum() / pairs

    assert_loss_and_slopes(plain, (logits,), case[f"loss_{kind}"])
    assert_loss_and_slopes(fused, (logits, identity), case[f"loss_{kind}"])


@pytest.mark.parametrize("kind", ["paper", "code"])
def test_ems_joint_eq12(kind):
    logits, targets = xtr_inputs(kind)

    def loss(logits, x, y):
        xtr = token_divergence(logits, targets).sum() / len(CASES["ems_xtr_eq6"]["pairs"])
        return xtr + bidirectional_contrastive(x[:2], y[:2], temperature=0.1)

    inputs = (logits, tensor("A"), tensor("B"))
    assert_loss_and_slopes(loss, inputs, CASES["ems_joint_eq12"][f"loss_{kind}"])


@pytest.mark.parametrize("name", ["A", "B"])
def test_koleo(name):
    x = tensor(name)
    loss = koleo(x)
    loss.backward()
    assert_near(loss, CASES["koleo"][name]["loss"])
    assert_near(x.grad, CASES["koleo"][name]["grad"])


@pytest.mark.parametrize("name", ["duplicates", "two_orthogonal"])
def test_koleo_limits(name):
    case = CASES["koleo"][name]
    assert_near(koleo(tensor(case["input"])), case["loss"])


def test_koleo_as_the_paper_prints_it():
    assert_loss_and_slopes(
        lambda x: koleo(x, normalize=False), (tensor("A"),), CASES["koleo"]["A_as_printed"]
    )
