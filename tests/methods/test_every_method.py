"""What holds for every training method, whatever it computes."""

from __future__ import annotations

import hashlib
import math

import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.registry import METHODS, resolve
from interlingua.train.checkpoint import TrainState, load_checkpoint, save_checkpoint, weights_of
from tests.encoder.shapes import JINA_BERT_QK_NORM, MODERNBERT
from tests.methods.harness import PREFIXES, _training, optimizer_of, tiny_batch, tiny_objective

NAMES = sorted(METHODS)
CASES = [pytest.param(name, {}, id=name) for name in NAMES]
CASES += [
    pytest.param(name, PREFIXES, id=f"{name} matryoshka")
    for name in NAMES
    if resolve(METHODS, name).nested_terms
]
CASES.append(pytest.param("combination", PREFIXES, id="combination matryoshka"))


def digest(objective):
    found = hashlib.sha256()
    for name, tensor in sorted(weights_of(objective).items()):
        found.update(name.encode() + tensor.detach().numpy().tobytes())
    return found.hexdigest()


@pytest.mark.parametrize(("method", "options"), CASES)
def test_terms_sum_to_the_loss(method, options):
    output = tiny_objective(method, options)(tiny_batch(method))
    assert output.terms
    torch.testing.assert_close(
        sum(output.terms.values()), output.loss.detach(), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize(("method", "options"), CASES)
def test_every_trained_weight_gets_a_finite_gradient(method, options):
    objective = tiny_objective(method, options)
    objective(tiny_batch(method)).loss.backward()
    trained = {
        name: weight for name, weight in objective.named_parameters() if weight.requires_grad
    }
    assert trained
    assert [name for name, weight in trained.items() if weight.grad is None] == []
    assert all(torch.isfinite(weight.grad).all() for weight in trained.values())


# One layer of the two sees a window of four tokens, and sentences are up to eleven long.
LOCAL = {**MODERNBERT, "local_layers": (1,), "local_window": 2, "hidden_act": "gelu"}
ALIBI = {**JINA_BERT_QK_NORM, "hidden_act": "gelu"}


@pytest.mark.parametrize("shape", [LOCAL, ALIBI], ids=["ModernBERT", "JinaBERT"])
@pytest.mark.parametrize(("method", "options"), CASES)
def test_encoders_of_other_shapes_take_two_steps(method, options, shape):
    objective = tiny_objective(method, options, dropout=0.1, **shape)
    before = {
        name: weight.detach().clone()
        for name, weight in objective.named_parameters()
        if weight.requires_grad
    }
    losses = list(_training(objective, optimizer_of(objective), method, options, range(2)))
    assert all(map(math.isfinite, losses))
    stuck = [
        name
        for name, weight in objective.named_parameters()
        if name in before and weight.equal(before[name])
    ]
    # a step of Adam moves every element that has a gradient
    assert stuck == []


@pytest.mark.parametrize("options", [{}, PREFIXES])
@pytest.mark.parametrize("method", [name for name in NAMES if resolve(METHODS, name).parts])
def test_parts_add_up_to_the_whole(method, options):
    objective, batch = tiny_objective(method, options), tiny_batch(method)
    objective(batch).loss.backward()
    whole = {
        name: weight.grad.clone()
        for name, weight in objective.named_parameters()
        if weight.grad is not None
    }
    objective.zero_grad()
    losses = []
    for part in objective.parts:
        losses.append(objective(batch, part=part).loss)
        losses[-1].backward()
    for name, weight in objective.named_parameters():
        if name in whole:
            torch.testing.assert_close(weight.grad, whole[name], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(sum(losses), objective(batch).loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("method", "options"), CASES)
def test_a_resumed_run_ends_with_the_same_bytes(method, options, tmp_path):
    straight = tiny_objective(method, options, dropout=0.1)
    list(_training(straight, optimizer_of(straight), method, options, range(6)))

    first = tiny_objective(method, options, dropout=0.1)
    optimizer = optimizer_of(first)
    list(_training(first, optimizer, method, options, range(3)))
    path = save_checkpoint(tmp_path, first, optimizer, TrainState(step=3))
    resumed = tiny_objective(method, options, seed=5, dropout=0.1)
    optimizer = optimizer_of(resumed)
    state = load_checkpoint(path, resumed, optimizer)
    list(_training(resumed, optimizer, method, options, range(state.step, 6)))
    assert digest(resumed) == digest(straight)


@pytest.mark.parametrize(("method", "options"), CASES)
def test_sentences_in_parts_give_the_same_gradients(method, options):
    gradients, losses, batch = [], [], tiny_batch(method)
    for sentences in (None, 2):
        objective = tiny_objective(method, options)
        for module in objective.modules():
            if isinstance(module, Encoder):
                module.gradcache_sentences = sentences
        losses.append(objective(batch).loss)
        losses[-1].backward()
        gradients.append(
            {
                n: weight.grad
                for n, weight in objective.named_parameters()
                if weight.grad is not None
            }
        )
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-6)
    assert gradients[1].keys() == gradients[0].keys()
    for name, gradient in gradients[1].items():
        torch.testing.assert_close(gradient, gradients[0][name], rtol=1e-3, atol=1e-5)
