"""Regression of the cosine and CoSENT against loops, and the limits of both."""

import math

import pytest
import torch

from interlingua.batches.feeds import LabeledBatch
from interlingua.errors import ConfigError
from interlingua.methods.sts import STSConfig
from tests.methods.harness import sentences, share_of, tiny_batch, tiny_objective


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


ORDER = {"sts_weight": 0.0, "cosent_weight": 2.0, "temperature": 0.1}


def test_cosent_is_that_of_a_loop():
    objective, batch = tiny_objective("sts", ORDER), tiny_batch("sts", ORDER)
    u, v = objective.encoder(batch.a).tolist(), objective.encoder(batch.b).tolist()
    cosines = [cosine(*pair) for pair in zip(u, v, strict=True)]
    scored = list(zip(cosines, batch.labels.tolist(), strict=True))
    total = 1 + sum(
        math.exp((low - high) / 0.1) for high, y in scored for low, z in scored if y > z
    )
    output = objective(batch)
    assert output.loss.item() == pytest.approx(2 * math.log(total), rel=1e-4)
    assert set(output.terms) == {"cosent"}


def test_regression_and_cosent_add_up():
    batch = tiny_batch("sts")
    both = tiny_objective("sts", {**ORDER, "sts_weight": 0.5})(batch)
    only_order, only_regression = tiny_objective("sts", ORDER), tiny_objective("sts")
    assert both.terms["cosent"].item() == pytest.approx(only_order(batch).loss.item(), rel=1e-6)
    assert both.terms["sts"].item() == pytest.approx(
        0.5 * only_regression(batch).loss.item(), rel=1e-6
    )
    assert both.loss.item() == pytest.approx(sum(term.item() for term in both.terms.values()))


def test_cosent_compares_the_pairs_of_all_processes():
    """Give each of two processes its gathered pairs, as ``all_gather`` does in a run."""
    whole = tiny_batch("sts", ORDER)
    expected = tiny_objective("sts", ORDER)(whole).loss.item()
    others = share_of(whole, 1)
    objective = tiny_objective("sts", ORDER)
    gathered = iter([objective.encoder(others.a), objective.encoder(others.b), others.labels])
    objective.all_gather = lambda own: torch.cat([own, next(gathered)])
    assert objective(share_of(whole, 0)).loss.item() == pytest.approx(expected, rel=1e-5)


def test_cosent_of_a_single_pair_is_refused():
    one = sentences(1, seed=1)
    batch = LabeledBatch(one, one, torch.ones(1), step=0)
    with pytest.raises(ConfigError, match=r"data.labeled.batch_size"):
        tiny_objective("sts", ORDER)(batch)


@pytest.mark.parametrize(
    ("options", "key"),
    [({"sts_weight": 0.0}, "sts_weight"), ({"temperature": 0.1}, "temperature")],
)
def test_options_without_effect_are_refused(options, key):
    with pytest.raises(ConfigError, match=key):
        STSConfig(**options)
