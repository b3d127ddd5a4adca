"""Stages that are killed or interrupted, and resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import torch

from interlingua.encoder.encoder import Encoder
from tests.training.runs import stop_at
from tests.training.test_stages import models as models
from tests.training.test_stages import run as run
from tests.training.test_stages import staged as staged


def test_killed_in_the_second_run_it_goes_on_there(staged, tmp_path):
    longer = "sts.run.max_steps=60"
    whole = models(run(staged, longer, f"output={tmp_path / 'whole'}")[0])
    command = [
        sys.executable,
        "-m",
        "interlingua.cli.main",
        "train",
        str(staged),
        "--set",
        longer,
        "--quiet",
    ]
    log = tmp_path / "out" / "sts" / "metrics.jsonl"
    # as many as here, where another test may have changed them: sums depend on it
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (log.exists() and '"step": 9,' in log.read_text()):
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "it ended by itself"
    record = json.loads((tmp_path / "out" / "stages.json").read_text())["stages"]
    assert {name: stage["done"] for name, stage in record.items()} == {
        "cross": True,
        "silver": True,
        "sts": False,
    }
    output, results = run(staged, longer)
    assert [result.run.name for result in results] == ["sts", "main"]
    assert models(output) == whole


def test_interrupted_in_a_later_stage_it_goes_on_there(staged, tmp_path):
    whole = models(run(staged, f"output={tmp_path / 'whole'}")[0])

    def interrupt(model, step):
        return stop_at(3)(model, step) if isinstance(model, Encoder) else {}

    output, results = run(staged, "run.eval_steps=3", evaluate=interrupt)
    assert [result.interrupted for result in results] == [
        False,
        True,
    ]  # in sts; main was not started
    assert not (output / "main").exists()
    output, results = run(staged, "run.eval_steps=3")
    assert [result.run.name for result in results] == ["sts", "main"]
    assert models(output)["cross"] == whole["cross"]
    output, results = run(staged, "run.eval_steps=3", f"output={tmp_path / 'straight'}")
    assert models(output) == models(tmp_path / "out")
