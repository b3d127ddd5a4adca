"""The cross-encoder against a loop over pairs and orders."""

import math

import pytest
import torch

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.pair_scorer import PairScorer
from tests.methods.harness import tiny_batch, tiny_objective, token_lists


@pytest.mark.parametrize("both_orders", [True, False])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_loss_is_that_of_a_loop(both_orders, pooling):
    objective = tiny_objective(
        "cross_encoder", {"both_orders": both_orders, "pooling": pooling, "head_dropout": 0.0}
    )
    batch, head = tiny_batch("cross_encoder"), objective.scorer.head
    mask = (
        objective.encoder.vocabulary.mask_id
    )  # the tiny tokenizer puts nothing between two sentences
    losses = []
    for a, b, score in zip(
        token_lists(batch.a), token_lists(batch.b), batch.labels.tolist(), strict=True
    ):
        for first, second in ((a, b), (b, a)) if both_orders else ((a, b),):
            states = objective.encoder.tokens(
                TokenBatch.from_lists([[*first, mask, *second]], ["eng_Latn"])
            ).states
            pooled = states[0] if pooling == "cls" else states.mean(0)
            logit = head.output.weight[0] @ torch.tanh(head.dense.weight @ pooled + head.dense.bias)
            probability = 1 / (1 + math.exp(-(logit + head.output.bias[0]).item()))
            losses.append(-score * math.log(probability) - (1 - score) * math.log(1 - probability))
    assert objective(batch).loss.item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)


def test_both_orders_do_not_care_which_side_is_which():
    objective, batch = (
        tiny_objective("cross_encoder", {"head_dropout": 0.0}),
        tiny_batch("cross_encoder"),
    )
    turned = batch._replace(a=batch.b, b=batch.a)
    assert objective(turned).loss.item() == pytest.approx(objective(batch).loss.item(), rel=1e-6)
    one = tiny_objective("cross_encoder", {"head_dropout": 0.0, "both_orders": False})
    assert one(turned).loss.item() != pytest.approx(one(batch).loss.item(), rel=1e-6)


def test_what_is_exported_scores_as_what_was_trained(tmp_path):
    objective = tiny_objective("cross_encoder", {"pooling": "mean"}).eval()
    objective.save(tmp_path / "model")
    texts = ["w1 w2", "w3"], ["w4", "w5 w6 w7"]
    assert (
        PairScorer.load(tmp_path / "model").score(*texts).tolist()
        == objective.evaluated.score(*texts).tolist()
    )
