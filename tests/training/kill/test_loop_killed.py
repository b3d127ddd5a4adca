"""A training run that is killed at a random step."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

from interlingua.training.loop import run_training
from tests.training.runs import digest, environment, losses, train_command


def test_kill_9_at_a_random_step(tiny_config, tmp_path):
    """Kill the process after it has logged some step.

    The newest checkpoint is older, or half-written.
    """
    length = {"max_steps": 40, "eval_steps": 20, "save_steps": 7}
    whole, config = tiny_config(**length, output=str(tmp_path / "whole")), tiny_config(**length)
    run_training(whole, progress=False)
    log, step = config.run.output / "metrics.jsonl", random.randint(1, 32)
    command = [sys.executable, *train_command(config, tmp_path / "run.toml")]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    while process.poll() is None and not (log.exists() and f'"step": {step},' in log.read_text()):
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL, f"it ended by itself before step {step}"
    assert run_training(config, progress=False).step == 40
    assert digest(config.run.output) == digest(whole.run.output), f"killed at step {step}"
    assert losses(config.run.output) == losses(whole.run.output), f"killed at step {step}"
