"""Every experiment file loads, builds its objective at tiny size and takes two steps; no two are the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from interlingua.train.build import build_objective
from interlingua.train.config import EncoderConfig, load_train_config
from interlingua.train.optim import build_optimizer, set_learning_rate
from interlingua.train.schedules import learning_rate_factor
from tests.methods.conftest import tiny_pairs, tiny_vocabulary

ROOT = Path(__file__).parents[2] / "experiments"
FILES = sorted(path for path in ROOT.rglob("*.toml") if not path.name.startswith("prepare_"))
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_it_builds_and_takes_two_steps(path):
    config = load_train_config(path)
    assert config.encoder.preset is not None
    tiny = EncoderConfig(preset="ems-tiny", initialisation=config.encoder.initialisation, **SMALL)
    objective = build_objective(dataclasses.replace(config, encoder=tiny), tiny_vocabulary()).train()
    optimizer = build_optimizer(objective, config.optimizer)
    before = {name: weight.detach().clone() for name, weight in objective.named_parameters()}
    for step in range(2):
        factor = learning_rate_factor(step, config=config.schedule, max_steps=100)
        set_learning_rate(optimizer, config.optimizer.learning_rate * factor)
        optimizer.zero_grad()
        output = objective(tiny_pairs(step=step, seed=step))
        output.loss.backward()
        optimizer.step()
        objective.after_step(step)
        assert torch.isfinite(output.loss)
    assert [name for name, weight in objective.named_parameters() if torch.equal(weight, before[name])] == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_its_header_says_what_it_repeats(path):
    header = [line for line in path.read_text(encoding="utf-8").split("\n\n")[0].splitlines() if line.startswith("#")]
    assert header
    assert "Table" in header[0] or "No row of the paper" in " ".join(header)


def test_the_rows_of_the_table_differ():
    rows = [load_train_config(path) for path in FILES if path.parent.name == "ems"]
    assert len({str(row.replace_run(output=Path())) for row in rows}) == len(rows)


@pytest.mark.parametrize("path", [path for path in FILES if path.parent.name == "tiny"], ids=lambda path: path.name)
def test_a_tiny_experiment_has_the_method_of_its_row(path):
    full = load_train_config(path.parents[1] / path.name)
    assert load_train_config(path).method == full.method
