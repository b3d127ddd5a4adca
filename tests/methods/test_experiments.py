"""Every experiment file loads, builds its objective at tiny size and takes two steps; no two are the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from interlingua.config import load_toml
from interlingua.train.build import build_objective, feeds_of
from interlingua.train.config import EncoderConfig, load_train_config
from interlingua.train.optim import build_optimizer, set_learning_rate
from interlingua.train.schedules import learning_rate_factor, peak_learning_rate
from interlingua.train.stages import is_staged, load_stages
from tests.methods.conftest import tiny_encoder, tiny_vocabulary
from tests.methods.harness import feed_batch

ROOT = Path(__file__).parents[2] / "experiments"
NO_RUNS = ("arm", "sources")
"""What files of arms (test_arms.py) and of corpora are told by."""
ALL_FILES = sorted(path for path in ROOT.rglob("*.toml") if not set(NO_RUNS) & set(load_toml(path)))
STAGED = [path for path in ALL_FILES if is_staged(path)]
FILES = [path for path in ALL_FILES if path not in STAGED]
STEPS = 100
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
MODELS = {"distill": ("teacher",)}
"""Options that name a pretrained model, by method."""


def at_tiny_size(config, folder):
    """The same run with a tiny encoder, and tiny models in place of the pretrained ones that its options name."""
    encoder = EncoderConfig(
        preset="ems-tiny", initialisation=config.encoder.initialisation, pooling=config.encoder.pooling, **SMALL
    )
    options = config.method.options
    for name in MODELS.get(config.method.name, ()):
        if getattr(options, name):
            tiny_encoder(**SMALL).save(folder / name)
            options = dataclasses.replace(options, **{name: str(folder / name)})
    return dataclasses.replace(config, encoder=encoder, method=dataclasses.replace(config.method, options=options))


def batch_of(method, *, step):
    """A batch of the feeds that a method takes."""
    batches = {feed: feed_batch(feed, method.name, step=step, seed=step) for feed in feeds_of(method)}
    return batches if len(batches) > 1 else next(iter(batches.values()))


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_it_builds_and_takes_two_steps(path, tmp_path):
    config = at_tiny_size(load_train_config(path), tmp_path)
    objective = build_objective(config, tiny_vocabulary()).train()
    objective.total_steps = STEPS
    optimizer = build_optimizer(objective, config.optimizer)
    before = {name: weight.detach().clone() for name, weight in objective.named_parameters()}
    for step in range(2):
        factor = learning_rate_factor(step, config=config.schedule, max_steps=STEPS)
        set_learning_rate(optimizer, peak_learning_rate(config.optimizer, STEPS) * factor)
        optimizer.zero_grad()
        output = objective(batch_of(config.method, step=step))
        output.loss.backward()
        optimizer.step()
        objective.after_step(step)
        assert torch.isfinite(output.loss)
    trained = {name: weight for name, weight in objective.named_parameters() if weight.requires_grad}
    still = [name for name, weight in trained.items() if torch.equal(weight, before[name])]
    assert [name for name in still if not trained[name].grad.abs().sum() > 0] == []  # a warm-up may round to nothing


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_weight_of_each_term_is_read(path, tmp_path):
    config = at_tiny_size(load_train_config(path), tmp_path)
    batch, options = batch_of(config.method, step=0), config.method.options
    terms = build_objective(config, tiny_vocabulary()).eval()(batch).terms
    for name in [name for name in terms if hasattr(options, f"{name}_weight")]:
        weight = f"{name}_weight"
        twice = dataclasses.replace(options, **{weight: 2 * getattr(options, weight)})
        other = dataclasses.replace(config, method=dataclasses.replace(config.method, options=twice))
        output = build_objective(other, tiny_vocabulary()).eval()(batch)
        for term, value in output.terms.items():
            torch.testing.assert_close(value, terms[term] * (2 if term == name else 1), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(output.loss.detach(), sum(output.terms.values()))


@pytest.mark.parametrize("path", STAGED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_its_stages_are_runs_of_their_own_files(path, tmp_path, monkeypatch):
    monkeypatch.setenv("INTERLINGUA_DATA", "/data")
    stages = load_stages(path, overrides=[f"output={tmp_path}"])[1]
    assert len({stage.name for stage in stages}) == len(stages) > 1
    for stage in stages:
        assert all(given.is_relative_to(tmp_path) for given in stage.inputs)


@pytest.mark.parametrize("path", ALL_FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_its_header_says_what_it_repeats(path):
    header = [line for line in path.read_text(encoding="utf-8").split("\n\n")[0].splitlines() if line.startswith("#")]
    assert header
    assert "Table" in header[0] or "No row of the paper" in " ".join(header)


@pytest.mark.parametrize("folder", sorted({path.parent.name for path in FILES if path.parent.parent == ROOT}))
def test_the_rows_of_the_table_differ(folder):
    rows = [load_train_config(path) for path in FILES if path.parent.name == folder]
    assert len({str(row.replace_run(output=Path())) for row in rows}) == len(rows)


@pytest.mark.parametrize("path", [path for path in FILES if path.parent.name == "tiny"], ids=lambda path: path.name)
def test_a_tiny_experiment_has_the_method_of_its_row(path):
    full, tiny = (load_train_config(file).method for file in (path.parents[1] / path.name, path))
    models = {name: getattr(tiny.options, name) for name in MODELS.get(tiny.name, ())}
    assert dataclasses.replace(full, options=dataclasses.replace(full.options, **models)) == tiny
