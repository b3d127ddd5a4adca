"""CoSENT against a loop, sentence-transformers' loss, by hand, at its limits, and its gradient."""

import importlib
import math

import pytest
import torch

from interlingua.functional.score_ranking import cosent


def loop(cosines, scores, temperature):
    total = 1.0
    for i, high in enumerate(scores):
        for j, low in enumerate(scores):
            if high > low:
                total += math.exp((cosines[j] - cosines[i]) / temperature)
    return math.log(total)


def draw(seed, count=9):
    generator = torch.Generator().manual_seed(seed)
    cosines = 2 * torch.rand(count, generator=generator, dtype=torch.float64) - 1
    scores = torch.randint(0, 4, (count,), generator=generator) / 3  # some are equal
    return cosines, scores


@pytest.mark.parametrize("temperature", [0.05, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_a_loop(seed, temperature):
    cosines, scores = draw(seed)
    expected = loop(cosines.tolist(), scores.tolist(), temperature)
    assert cosent(cosines, scores, temperature=temperature).item() == pytest.approx(
        expected, rel=1e-12
    )


def losses_of_sentence_transformers():
    for name in (
        "sentence_transformers.sentence_transformer.losses",
        "sentence_transformers.losses",
    ):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    pytest.skip("no losses in this version of sentence-transformers")


def test_it_is_that_of_sentence_transformers():
    losses = losses_of_sentence_transformers()
    cosines, scores = draw(5, count=32)
    theirs = losses.CoSENTLoss(torch.nn.Module(), similarity_fct=lambda u, v: u)
    expected = theirs.compute_loss_from_embeddings([cosines, cosines], scores)
    assert cosent(cosines, scores).item() == pytest.approx(expected.item(), rel=1e-9)


def test_two_pairs_by_hand():
    """Use cosines 0.1 and 0.3 in the wrong order at T = 0.2: log(1 + e^1)."""
    cosines = torch.tensor([0.1, 0.3])
    found = cosent(cosines, torch.tensor([1.0, 0.5]), temperature=0.2)
    assert found.item() == pytest.approx(math.log(1 + math.e), rel=1e-6)
    ordered = cosent(cosines, torch.tensor([0.5, 1.0]), temperature=0.2)
    assert ordered.item() == pytest.approx(math.log(1 + math.exp(-1)), rel=1e-6)


def test_only_the_order_of_the_scores_matters():
    cosines, scores = draw(1)
    assert cosent(cosines, scores**3 * 5) == cosent(cosines, scores)


def test_equal_scores_are_0_without_a_gradient():
    cosines = torch.tensor([0.2, -0.4, 0.9], requires_grad=True)
    loss = cosent(cosines, torch.full((3,), 0.6))
    loss.backward()
    assert loss.item() == 0
    assert cosines.grad.tolist() == [0, 0, 0]


def test_far_cosines_do_not_overflow():
    cosines = torch.tensor([-1.0, 1.0], dtype=torch.float16, requires_grad=True)
    loss = cosent(cosines, torch.tensor([1.0, 0.0]), temperature=1e-3)
    loss.backward()
    assert loss.item() == pytest.approx(2000, rel=1e-3)
    assert cosines.grad.isfinite().all()


@pytest.mark.parametrize("seed", range(3))
def test_gradient(seed):
    cosines, scores = draw(seed)
    assert torch.autograd.gradcheck(lambda c: cosent(c, scores), cosines.requires_grad_())
