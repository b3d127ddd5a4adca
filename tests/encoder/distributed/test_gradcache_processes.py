"""Passes in parts by two processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

WORKER = """
import sys, torch
from pathlib import Path
from safetensors.torch import save_file
from interlingua.batches.sentences import take
from interlingua.training.config import RunConfig
from interlingua.training.machine.engine import Engine, gather_tensor
from tests.methods.harness import tiny_batch, tiny_objective

method, strategy, folder = sys.argv[1:]
options = {"device": "cpu", "precision": "fp32", "threads": 1, "devices": 2, "strategy": strategy}
with Engine(RunConfig(output=Path("unused"), max_steps=1, **options)) as engine:
    objective = tiny_objective(method, {"exclude_repeats": True, "negatives": "processes"})
    objective.encoder.gradcache_sentences = 2
    model = engine.setup(objective)
    batch, rows = tiny_batch(method), range(3 * engine.rank, 3 * engine.rank + 3)
    a, b = take(batch.a, rows), take(batch.b, rows)
    loss = model(batch._replace(a=a, b=b, first_row=rows[0])).loss
    engine.backward(loss)
    gradients = {name: gather_tensor(weight.grad) for name, weight in objective.named_parameters()}
    save_file({"loss": engine.mean(loss), **gradients}, Path(folder, f"{engine.rank}.safetensors"))
"""


@pytest.mark.parametrize(("method", "strategy"), [("labse", "ddp"), ("infonce", "fsdp")])
def test_two_processes_in_parts_are_one_process_on_the_whole_batch(method, strategy, tmp_path):
    from safetensors.torch import load_file

    from tests.methods.harness import tiny_batch, tiny_objective

    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    root = Path(__file__).parents[3]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    command = [sys.executable, script, method, strategy, tmp_path]
    subprocess.run(command, check=True, env=environment, timeout=240, capture_output=True)
    objective = tiny_objective(method, {"exclude_repeats": True, "negatives": "processes"})
    loss = objective(tiny_batch(method)).loss
    loss.backward()
    for rank in (0, 1):
        found = load_file(tmp_path / f"{rank}.safetensors")
        torch.testing.assert_close(found.pop("loss"), loss.detach())
        for name, weight in objective.named_parameters():
            torch.testing.assert_close(found[name], weight.grad, rtol=1e-4, atol=1e-6)
