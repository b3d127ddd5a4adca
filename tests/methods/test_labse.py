"""LaBSE's ranking task against its equations, sentence by sentence, and where its negatives come
from."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.batches.tokens import TokenBatch
from interlingua.methods.labse import LaBSE, LaBSEConfig
from tests.methods.conftest import tiny_encoder, tiny_pairs
from tests.methods.harness import cosine, token_lists


def build(**options):
    return LaBSE(LaBSEConfig(**options), tiny_encoder()).eval()


def vectors(encoder, batch):
    return [encoder(TokenBatch.from_lists([ids], ["eng_Latn"]))[0] for ids in token_lists(batch)]


def reference(objective, batch, *, margin=0.3, temperature=0.1, after=False, excluded=()):
    """Compute Eq. (1)-(2) with loops; ``excluded`` contains unordered pairs of rows."""
    x, y = (vectors(objective.encoder, side) for side in (batch.a, batch.b))
    phi = [[cosine(u, v) for v in y] for u in x]
    size, total = len(x), 0.0
    for i in range(size):
        positive = phi[i][i] / temperature - margin if after else (phi[i][i] - margin) / temperature
        others = [n for n in range(size) if n != i and {i, n} not in excluded]
        for row in ([phi[i][n] for n in others], [phi[n][i] for n in others]):
            total -= math.log(
                math.exp(positive)
                / (math.exp(positive) + sum(math.exp(p / temperature) for p in row))
            )
    return total / size


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"margin": 0.0}, {"margin": 0.0}),
        ({"margin": 0.2, "temperature": 0.5}, {"margin": 0.2, "temperature": 0.5}),
        ({"margin_after_temperature": True}, {"after": True}),
    ],
)
@torch.no_grad()
def test_the_loss_is_equations_1_and_2(options, expected):
    objective, pairs = build(**options), tiny_pairs()
    output = objective(pairs)
    assert list(output.terms) == ["ranking"]
    assert float(output.loss) == pytest.approx(reference(objective, pairs, **expected), rel=1e-4)


def test_a_pair_has_those_of_other_processes_to_rank():
    objective = build()
    objective.all_gather = lambda tensor: torch.cat(
        [tensor, 1 - tensor]
    )  # another process has another pair
    assert objective(tiny_pairs(1)).loss > 0


@torch.no_grad()
def test_sides_can_be_exchanged():
    objective, pairs = build(), tiny_pairs()
    torch.testing.assert_close(
        objective(pairs._replace(a=pairs.b, b=pairs.a)).loss, objective(pairs).loss
    )


@torch.no_grad()
def test_other_translations_of_a_sentence_are_no_negatives_if_so_asked():
    pairs = tiny_pairs(5)
    english = token_lists(pairs.b)
    english[3] = english[1]
    pairs = pairs._replace(b=TokenBatch.from_lists(english, pairs.b.languages))
    objective = build(exclude_repeats=True)
    expected = reference(objective, pairs, excluded=[{1, 3}])
    assert float(objective(pairs).loss) == pytest.approx(expected, rel=1e-4)
    assert float(build()(pairs).loss) == pytest.approx(reference(objective, pairs), rel=1e-4)
    assert expected < reference(objective, pairs)
