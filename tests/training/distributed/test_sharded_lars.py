"""LARS on tensors that are sharded over processes."""

from __future__ import annotations

import torch
from safetensors.torch import load_file

from tests.training.runs import run_python

WORKER = """
import sys
from pathlib import Path
from safetensors.torch import save_file
from interlingua.training.checkpoint import weights_of
from interlingua.training.config import OptimizerConfig, RunConfig
from interlingua.training.machine.engine import Engine
from interlingua.training.optimization.optim import build_optimizer
from interlingua.training.step import gradients
from tests.methods.harness import tiny_batch, tiny_objective

strategy, path = sys.argv[1:]
options = {"device": "cpu", "precision": "fp32", "threads": 1, "devices": 2, "strategy": strategy}
with Engine(RunConfig(output=Path("unused"), max_steps=1, **options)) as engine:
    objective = tiny_objective("calibrated")
    model = engine.setup(objective)
    config = OptimizerConfig(name="lars", learning_rate=5.0, weight_decay=0.1)
    optimizer = build_optimizer(objective, config)
    for step in range(3):
        batches = [tiny_batch("calibrated", seed=2 * step + engine.rank)]
        gradients(model, objective, batches, engine, seed=1, step=step)
        optimizer.step()
        optimizer.zero_grad()
        objective.after_step(step)
    weights = weights_of(objective)
    if engine.is_main:
        save_file(weights, path)
"""


def test_lars_takes_the_norms_of_whole_tensors_where_they_are_sharded(tmp_path):
    (tmp_path / "worker.py").write_text(WORKER)
    found = []
    for strategy in ("ddp", "fsdp"):
        run_python(tmp_path / "worker.py", strategy, tmp_path / strategy)
        found.append(load_file(tmp_path / strategy))
    assert found[0].keys() == found[1].keys()
    for name, weight in found[0].items():
        torch.testing.assert_close(found[1][name], weight, rtol=1e-5, atol=1e-6)
