"""Properties of every training method."""

from __future__ import annotations

import hashlib
import inspect
import math
from dataclasses import fields

import pytest
import torch

from interlingua.config.registry import METHODS, resolve_name
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.methods.objective import Objective
from interlingua.training.budget import taken_back
from interlingua.training.checkpoint import TrainState, load_checkpoint, save_checkpoint, weights_of
from tests.encoder.shapes import JINA_BERT_QK_NORM, MODERNBERT
from tests.methods.harness import (
    PREFIXES,
    _training,
    in_two_processes,
    optimizer_of,
    share_of,
    tiny_batch,
    tiny_objective,
)

NAMES = sorted(METHODS)
CASES = [pytest.param(name, {}, id=name) for name in NAMES]
CASES += [
    pytest.param(name, PREFIXES, id=f"{name} matryoshka")
    for name in NAMES
    if resolve_name(METHODS, name).nested_terms
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
@pytest.mark.parametrize("method", [name for name in NAMES if resolve_name(METHODS, name).parts])
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
def test_steps_that_are_taken_back_leave_no_trace(method, options):
    straight = tiny_objective(method, options, dropout=0.1)
    list(_training(straight, optimizer_of(straight), method, options, range(3)))

    timed = tiny_objective(method, options, dropout=0.1)
    optimizer = optimizer_of(timed)
    before = digest(timed)
    with taken_back(timed, optimizer):
        list(_training(timed, optimizer, method, options, range(2)))
        assert digest(timed) != before
    assert digest(timed) == before
    optimizer.zero_grad()
    list(_training(timed, optimizer, method, options, range(3)))
    assert digest(timed) == digest(straight)


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


@pytest.mark.parametrize(("method", "options"), CASES)
def test_bfloat16_autocast_is_near_float32(method, options):
    objective, batch = tiny_objective(method, options), tiny_batch(method)
    exact = objective(batch).loss
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = objective(batch).loss
    rough.backward()
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=0.03, atol=0.003)
    trained = [weight for weight in objective.parameters() if weight.requires_grad]
    assert {weight.grad.dtype for weight in trained} == {torch.float32}


CONTRASTS = [
    ("labse", {}, ("ranking",)),
    ("labse", {"exclude_repeats": True}, ("ranking",)),
    ("infonce", {"exclude_repeats": True}, ("infonce",)),
    ("ems", {"negatives": "processes", "exclude_repeats": True}, ("contrastive",)),
    ("dap", {}, ("tr",)),
    ("mexma", {"alignment": "contrastive", "exclude_repeats": True}, ("align",)),
    ("multilingual_ir", {"monolingual": True}, ("retrieval", "semantic", "language")),
    ("multilingual_ir", {"exclude_repeats": True}, ("retrieval", "semantic", "language")),
]
"""Terms over the sentences of all processes."""


@torch.no_grad()
@pytest.mark.parametrize(("method", "options", "terms"), CONTRASTS)
def test_negatives_are_those_of_all_processes(method, options, terms):
    objective, batch = tiny_objective(method, options), tiny_batch(method, options)
    gathered = in_two_processes(objective, share_of(batch, 0), share_of(batch, 1)).terms
    whole = objective(batch).terms
    alone = objective(share_of(batch, 0)).terms
    for term in terms:
        torch.testing.assert_close(gathered[term], whole[term])
        assert not torch.isclose(alone[term], gathered[term])


@pytest.mark.parametrize(
    ("method", "options", "what"),
    [
        ("labse", {}, "pair of translations"),
        ("infonce", {}, "pair of translations"),
        ("infonce", {"positives": "dropout"}, "sentence"),
        ("ems", {}, "pair of translations"),
        ("dap", {}, "pair of translations"),
        ("mexma", {"alignment": "contrastive", "koleo_weight": 0.0}, "pair of translations"),
        ("anchor", {}, "pair of translations"),
        ("anchor", {"student_reads": "both"}, "pair of translations"),
    ],
)
def test_a_single_row_has_nothing_to_be_compared_with(method, options, what):
    row = share_of(tiny_batch(method, options), 0, world_size=6)
    expected = rf"one {what} .*run\.global_batch_size or run\.micro_batch_size"
    with pytest.raises(ConfigError, match=expected):
        tiny_objective(method, options)(row)


@torch.no_grad()
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("labse", {"exclude_repeats": True}),
        ("infonce", {"exclude_repeats": True}),
        ("ems", {}),
        ("dap", {"rtl_weight": 0.0}),
    ],
)
def test_negatives_of_the_micro_batch_are_not_gathered(method, options):
    objective = tiny_objective(method, {**options, "negatives": "micro_batch"})
    objective.all_gather = None
    assert torch.isfinite(objective(tiny_batch(method)).loss)


@pytest.mark.parametrize("method", NAMES)
def test_every_option_is_read(method):
    """Check all options but the weights, which ``weighted`` reads by the names of the terms."""
    mro = resolve_name(METHODS, method).__mro__
    classes = mro[: mro.index(Objective)]
    body = "".join(inspect.getsource(cls) for cls in classes)
    body = body.replace("self.repeats(", "config.exclude_repeats")  # which reads it
    names = [option.name for option in fields(classes[0].Config)]
    unread = [name for name in names if f"config.{name}" not in body]
    assert [name for name in unread if not name.endswith("_weight")] == []


@pytest.mark.parametrize("method", ["distill", "anchor", "teacher_similarity"])
def test_a_frozen_teacher_never_moves_and_never_drops_out(method):
    objective, batch = tiny_objective(method, dropout=0.5), tiny_batch(method)
    teacher = objective.anchors.teacher if method == "anchor" else objective.teacher
    sentences = batch.questions if method == "teacher_similarity" else batch.b
    before, target = teacher.digest(), teacher(sentences)
    list(_training(objective, optimizer_of(objective), method, {}, range(2)))
    assert objective.encoder.digest() != teacher.digest() == before
    objective.train()
    assert objective.encoder.training
    assert torch.equal(teacher(sentences), target)
    assert not any(module.training for module in teacher.modules())
    assert not any(weight.requires_grad for weight in teacher.parameters())


@pytest.mark.parametrize("method", [name for name in NAMES if name != "cross_encoder"])
def test_the_encoder_is_exported(method, tmp_path):
    objective = tiny_objective(method)
    list(_training(objective, optimizer_of(objective), method, {}, range(1)))
    objective.save(tmp_path / "model")
    assert Encoder.load(tmp_path / "model").digest() == objective.encoder.digest()
