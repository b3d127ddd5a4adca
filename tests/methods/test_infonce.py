"""InfoNCE over translations, and over sentences and themselves, against loops."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.batches.feeds import SentenceBatch
from interlingua.batches.sentences import join
from interlingua.batches.tokens import TokenBatch
from interlingua.methods.infonce import InfoNCE, InfoNCEConfig
from tests.methods.conftest import tiny_encoder, tiny_pairs
from tests.methods.harness import cosine, token_lists


def build(*, dropout=0.0, **options):
    encoder = tiny_encoder(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    torch.manual_seed(1)
    return InfoNCE(InfoNCEConfig(**options), encoder)


def vectors(objective, batch):
    return [
        objective.project(objective.encoder(TokenBatch.from_lists([ids], ["eng_Latn"]))[0])
        for ids in token_lists(batch)
    ]


def ranked(anchor, positive, others, temperature):
    """Compute -log of the positive's share."""
    scores = [math.exp(cosine(anchor, other) / temperature) for other in others]
    right = math.exp(cosine(anchor, positive) / temperature)
    return -math.log(right / (right + sum(scores)))


def reference(h, positive, *, direction="both", temperature=0.05, excluded=()):
    size = len(h)
    kept = {i: [n for n in range(size) if n != i and {i, n} not in excluded] for i in range(size)}
    forward = (
        sum(ranked(h[i], positive[i], [positive[n] for n in kept[i]], temperature) for i in kept)
        / size
    )
    backward = (
        sum(ranked(positive[i], h[i], [h[n] for n in kept[i]], temperature) for i in kept) / size
    )
    if direction == "forward":
        return forward
    if direction == "both":
        return (forward + backward) / 2
    total = 0.0
    for i in kept:
        others = [z[n] for z in (h, positive) for n in kept[i]]
        total += ranked(h[i], positive[i], others, temperature) + ranked(
            positive[i], h[i], others, temperature
        )
    return total / (2 * size)


@pytest.mark.parametrize("direction", ["both", "forward", "all"])
@pytest.mark.parametrize("projection", [False, True])
@torch.no_grad()
def test_translations_are_found(direction, projection):
    objective, pairs = (
        build(direction=direction, projection=projection, temperature=0.2),
        tiny_pairs(),
    )
    expected = reference(
        vectors(objective, pairs.a),
        vectors(objective, pairs.b),
        direction=direction,
        temperature=0.2,
    )
    output = objective(pairs)
    assert list(output.terms) == ["infonce"]
    assert float(output.loss) == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_the_default_temperature_is_simcse_s():
    objective, pairs = build(), tiny_pairs()
    expected = reference(vectors(objective, pairs.a), vectors(objective, pairs.b))
    assert float(objective(pairs).loss) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("direction", ["both", "forward", "all"])
@torch.no_grad()
def test_other_translations_of_a_sentence_are_no_negatives_if_so_asked(direction):
    pairs = tiny_pairs(5)
    english = token_lists(pairs.b)
    english[3] = english[1]
    pairs = pairs._replace(b=TokenBatch.from_lists(english, pairs.b.languages))
    objective = build(direction=direction, exclude_repeats=True)
    h, positive = vectors(objective, pairs.a), vectors(objective, pairs.b)
    expected = reference(h, positive, direction=direction, excluded=[{1, 3}])
    assert float(objective(pairs).loss) == pytest.approx(expected, rel=1e-4)
    assert expected < reference(h, positive, direction=direction)


@torch.no_grad()
def test_msimcse_finds_the_sentence_itself_through_other_dropout():
    objective = build(
        dropout=0.2, positives="dropout", direction="forward", projection=True, temperature=0.5
    ).train()
    batch = SentenceBatch(tiny_pairs().a, 0)
    torch.manual_seed(7)
    loss = objective(batch).loss
    torch.manual_seed(7)
    h, other = objective.project(objective.encoder(join(batch.sentences, batch.sentences))).chunk(2)
    assert not torch.equal(h, other)
    assert float(loss) == pytest.approx(
        reference(h, other, direction="forward", temperature=0.5), rel=1e-4
    )


@torch.no_grad()
def test_without_dropout_only_the_negatives_are_left():
    objective = build(positives="dropout", direction="forward").eval()
    batch = SentenceBatch(tiny_pairs().a, 0)
    h = vectors(objective, batch.sentences)
    assert float(objective(batch).loss) == pytest.approx(
        reference(h, h, direction="forward"), rel=1e-3, abs=1e-6
    )


def test_the_projection_learns_and_is_not_exported(tmp_path):
    objective = build(projection=True).train()
    objective(tiny_pairs()).loss.backward()
    assert all(weight.grad.abs().sum() > 0 for weight in objective.project.parameters())
    objective.save(tmp_path / "model")
    assert not [name for name in (tmp_path / "model").iterdir() if "project" in name.name]
    assert list(build().project.parameters()) == []


def test_positives_decide_about_the_data():
    assert InfoNCE.feeds_for(InfoNCEConfig()) == ("parallel",)
    assert InfoNCE.feeds_for(InfoNCEConfig(positives="dropout")) == ("monolingual",)
