"""Gradient norms of a loss's terms: those of a backward pass each, for every method, and nothing of
a run changed."""

from __future__ import annotations

import math
import re

import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.training.config import train_config_from
from interlingua.training.loop import run_training
from interlingua.training.optimization.term_gradients import TermGradients
from tests.methods.harness import optimizer_of, tiny_batch, tiny_objective
from tests.methods.test_every_method import CASES, NAMES, digest
from tests.training.runs import digest as run_digest
from tests.training.runs import records


def norms_by_backward(objective, batch):
    """Run a pass in each direction per term, with the gradients where training stores them."""
    objective.eval()
    for module in objective.modules():
        module.keeps_graph = True
    names = list(objective(batch).terms)
    found = {}
    for name in names:
        objective.zero_grad()
        term = objective(batch).terms[name]
        if term.requires_grad:
            term.backward()
        weights = [
            weight.grad.to_dense() for weight in objective.parameters() if weight.grad is not None
        ]
        found[name] = math.sqrt(
            sum(float(gradient.double().square().sum()) for gradient in weights)
        )
    objective.zero_grad()
    for module in objective.modules():
        module.keeps_graph = False
    objective.train()
    return found


@pytest.mark.parametrize("sentences", [None, 2])
@pytest.mark.parametrize(("method", "options"), CASES)
def test_they_are_those_of_a_backward_pass_each(method, options, sentences, engine):
    objective, batch = tiny_objective(method, options, dropout=0.1), tiny_batch(method)
    for module in objective.modules():
        if isinstance(module, Encoder):
            module.gradcache_sentences = sentences
    expected = norms_by_backward(objective, batch)
    found = TermGradients(engine).measure(objective, batch)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-9)
    assert any(found.values())


@pytest.mark.parametrize("method", NAMES)
def test_training_ends_with_the_same_bytes(method, engine):
    digests, states = [], []
    for measures in (False, True):
        objective = tiny_objective(method, dropout=0.1)
        optimizer = optimizer_of(objective)
        for step in range(4):
            torch.manual_seed(step)
            objective(tiny_batch(method, step=step, seed=step % 4)).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            objective.after_step(step)
            if measures:
                TermGradients(engine).measure(objective, tiny_batch(method))
        digests.append(digest(objective))
        states.append(torch.get_rng_state())
        assert objective.training
        assert all(weight.grad is None for weight in objective.parameters())
    assert digests[0] == digests[1]
    assert torch.equal(*states)


def test_a_run_records_them_and_is_the_same_run(tiny_config, tmp_path, monkeypatch):
    runs = {name: tiny_config(output=str(tmp_path / name)) for name in ("with", "without")}
    run_training(runs["with"], progress=False)
    monkeypatch.setattr(TermGradients, "measure", lambda *_: {})
    run_training(runs["without"], progress=False)
    assert run_digest(runs["with"].run.output) == run_digest(runs["without"].run.output)
    evaluations = records(runs["with"].run.output, "evaluation")
    assert len(evaluations) == 2
    assert all(set(record["term_grad_norms"]) == {"xtr", "contrastive"} for record in evaluations)
    assert all(norm > 0 for record in evaluations for norm in record["term_grad_norms"].values())


RETRIEVAL = ("multilingual_ir", {"semantic_weight": 0.01, "language_weight": 0.001})


def lines_of(norms, engine, method=RETRIEVAL):
    return TermGradients(engine).warnings(norms, tiny_objective(*method))


def test_a_term_a_hundred_times_below_is_reported_once(engine):
    terms = TermGradients(engine)
    objective = tiny_objective(*RETRIEVAL)
    norms = {"retrieval": 2.0, "semantic": 2.1e-2, "language": 1.9e-2}
    first = terms.warnings(norms, objective)
    assert len(first) == 1
    assert first[0].startswith("the term language ")
    assert "1.9e-02" in first[0]
    norms |= {"semantic": 1.0, "language": 0.0}
    assert terms.warnings(norms, objective) == []
    assert len(terms.warnings(norms | {"semantic": 1e-9}, objective)) == 1


@pytest.mark.parametrize(("ratio", "is_reported"), [(50, False), (99, False), (390, True)])
def test_it_is_reported_from_a_hundred_times_on(ratio, is_reported, engine):
    assert bool(lines_of({"retrieval": 1.0, "language": 1 / ratio}, engine)) is is_reported


def test_the_widths_of_a_term_are_reported_together(engine):
    """Report no term whose gradient at any width is large enough, and each term once."""
    objective = tiny_objective("multilingual_ir", RETRIEVAL[1] | {"matryoshka": (16, 8)})
    terms = TermGradients(engine)
    norms = {"semantic_16": 1.0, "semantic_8": 1e-4, "retrieval_16": 2e-3, "retrieval_8": 0.5}
    assert terms.warnings(norms | {"language_16": 2e-3, "language_8": 2e-2}, objective) == []
    [line] = terms.warnings(norms | {"language_16": 2e-3, "language_8": 4e-3}, objective)
    assert line.startswith("the term language_8 ")
    assert "method.language_weight = 0.25 " in line
    assert terms.warnings(norms | {"language_16": 4e-3, "language_8": 2e-3}, objective) == []
    # a term without a weight of its own
    [line] = terms.warnings(norms | {"retrieval_8": 1e-3}, objective)
    assert line.startswith("the term retrieval_16 ")


def test_the_widths_of_a_term_of_a_combination_are_reported_together(engine):
    method = ("combination", {"matryoshka": (16, 8)})
    norms = {"hide_16": 1.0, "hide_8": 1.0, "tell_16": 1e-3, "tell_8": 2e-3}
    assert len(lines_of(norms, engine, method)) == 1


@pytest.mark.parametrize(
    ("method", "norms", "option"),
    [
        # the weight times the ratio of the norms
        (RETRIEVAL, {"semantic": 0.39, "language": 1e-3}, "method.language_weight = 0.39 "),
        # a term without a weight: the other's, divided by the ratio
        (RETRIEVAL, {"semantic": 4.0, "retrieval": 1e-2}, "method.semantic_weight = 2.5e-05 "),
        (
            ("multilingual_ir", RETRIEVAL[1] | {"matryoshka": (16, 8)}),
            {"semantic_16": 0.2, "language_8": 1e-3},
            "method.language_weight = 0.2 ",
        ),
        (("combination", {}), {"tell": 1e-3, "hide": 0.4}, "method.terms.tell.weight = 200 "),
        (
            ("combination", {}),
            {"mono_decoder": 1e-3, "hide": 0.4},
            "method.terms.mono.decoder_weight = 400 ",
        ),
    ],
)
def test_the_weight_that_balances_is_named(method, norms, option, engine):
    [line] = lines_of(norms, engine, method)
    assert option in line


def test_the_weight_that_is_named_balances(engine):
    """Build the objective again with this weight: both norms are equal."""
    batch = tiny_batch("multilingual_ir")
    faint = {"semantic_weight": 1.0, "language_weight": 1e-5}
    terms = TermGradients(engine)
    objective = tiny_objective("multilingual_ir", faint)
    norms = terms.measure(objective, batch)
    norms.pop("retrieval")
    [line] = terms.warnings(norms, objective)
    weight = float(re.search(r"method\.language_weight = (\S+)", line)[1])
    balanced = tiny_objective("multilingual_ir", faint | {"language_weight": weight})
    found = terms.measure(balanced, batch)
    assert found["language"] == pytest.approx(found["semantic"], rel=0.01)


def test_what_is_not_finite_is_left_to_other_checks(engine):
    assert lines_of({"a": math.nan, "b": math.inf, "c": 1e-9}, engine) == []
    assert lines_of({}, engine) == []


def test_terms_of_a_method_without_weights_get_a_factor(engine):
    [line] = lines_of({"a": 1.0, "b": 0.004}, engine)
    assert " 250 " in line


def test_a_run_with_a_weight_that_is_too_small_warns(tiny_table, capsys):
    tiny_table["method"]["xtr_weight"] = 1e-9
    tiny_table["run"] |= {"max_steps": 2, "eval_steps": 1}
    run_training(train_config_from(tiny_table), progress=False)
    warned = [line for line in capsys.readouterr().err.splitlines() if "almost no effect" in line]
    assert len(warned) == 1
    assert "term xtr" in warned[0]


def test_a_student_that_starts_as_its_teacher_is_not_warned_of(
    tiny_table, tiny_config, tmp_path, capsys
):
    config = tiny_config()
    run_training(config, progress=False)
    capsys.readouterr()
    start = config.run.output / "model"
    tiny_table["method"] = {"name": "distill", "teacher": str(start)}
    tiny_table["encoder"] = {"path": str(start)}
    tiny_table["run"] |= {"max_steps": 3, "eval_steps": 3, "output": str(tmp_path / "student")}
    run_training(train_config_from(tiny_table), progress=False)
    assert "almost no effect" not in capsys.readouterr().err
