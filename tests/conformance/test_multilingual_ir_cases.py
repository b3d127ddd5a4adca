"""Language contrast and whole loss of multilingual IR on fixed vectors.

Eq. (1)-(2) are in ``test_loss_cases.py``.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from interlingua.batches.feeds import QuestionBatch, SentenceBatch
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.functional.contrastive import language_contrastive
from interlingua.methods.multilingual_ir import MultilingualIR, MultilingualIRConfig
from tests.conformance.test_loss_cases import CASES, assert_near, tensor

CASE = CASES["language_contrastive"]


@pytest.mark.parametrize("name", ["parallel_only", "with_others"])
def test_language_contrastive_eq3(name):
    expected = CASE[name]
    inputs = [
        tensor("A"),
        tensor("B"),
        *([tensor(CASE["others"])] if name == "with_others" else []),
    ]
    loss = language_contrastive(*inputs)
    loss.backward()
    assert_near(loss, expected["mean"])
    sides = ("grad_x", "grad_y", "grad_others")[: len(inputs)]
    for tensor_, side in zip(inputs, sides, strict=True):
        assert_near(tensor_.grad, expected[side])


@pytest.mark.parametrize("name", ["parallel_only", "with_others"])
def test_language_contrastive_eq3_as_printed(name):
    others = tensor(CASE["others"]) if name == "with_others" else None
    loss = language_contrastive(tensor("A"), tensor("B"), others, reduction="literal")
    sentences = 6 + (0 if others is None else 2)
    assert_near(loss, CASE[name]["literal"])
    assert_near(loss * sentences * (sentences - 2), CASE[name]["sum"])


class Table(nn.Module):
    """Encoder of sentences of one token each: the vector is a row of a table."""

    def __init__(self, rows):
        super().__init__()
        self.rows, self.settings = nn.Parameter(rows), EncodingSettings()

    def forward(self, batch):
        return self.rows[batch.input_ids]

    def clone(self):
        return Table(self.rows.detach().clone())


def sentences(*ids):
    return TokenBatch.from_lists([[i] for i in ids], ["eng_Latn"] * len(ids))


def test_joint_loss_eq4():
    case = CASES["multilingual_ir_joint_eq4"]
    rows = torch.cat([tensor("A"), tensor("B"), tensor(CASE["others"])]).detach()
    weights = {
        name: case[name] for name in ("semantic_weight", "language_weight", "semantic_temperature")
    }
    averaged = {"monolingual": True, "language_reduction": "mean"}
    config = MultilingualIRConfig(**weights, **averaged)
    assert config == MultilingualIRConfig(**averaged)  # the paper's weights are the defaults
    objective = MultilingualIR(config, Table(rows))
    feeds = {
        "questions": QuestionBatch(sentences(0, 1, 2), sentences(3, 4, 5), 0),
        "parallel": ParallelBatch(sentences(0, 1, 2), sentences(3, 4, 5), 0),
        "monolingual": SentenceBatch(sentences(6, 7), 0),
    }
    without_others = MultilingualIR(MultilingualIRConfig(language_reduction="mean"), Table(rows))
    assert_near(
        objective(feeds).terms["language"], weights["language_weight"] * CASE["with_others"]["mean"]
    )
    assert_near(objective(feeds).terms["retrieval"], CASES["infonce"]["loss"])
    assert_near(objective(feeds).loss, case["loss"])
    del feeds["monolingual"]
    gap = weights["language_weight"] * (CASE["parallel_only"]["mean"] - CASE["with_others"]["mean"])
    assert_near(without_others(feeds).loss, case["loss"] + gap)
