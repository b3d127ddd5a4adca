"""Interrupted training commands, which print how to resume."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

from tests.cli.verbs.test_train import config as config
from tests.cli.verbs.test_train import stages as stages


def test_an_interrupted_stage_tells_the_command_that_goes_on(stages, tmp_path):
    command = [
        sys.executable,
        "-m",
        "interlingua.cli.main",
        "train",
        str(stages),
        "--set",
        "second.run.max_steps=4000",
    ]
    process = subprocess.Popen(
        [*command, "--set", "run.logging_steps=1"], stderr=subprocess.PIPE, text=True
    )
    log = tmp_path / "all" / "second" / "metrics.jsonl"
    while process.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    err = process.communicate()[1]
    assert process.returncode == 2
    assert (
        f"to resume, run: interlingua train {stages} --set second.run.max_steps=4000 --set"
        " run.logging_s" in err
    )


def test_ctrl_c_says_how_to_go_on(config, tmp_path):
    path, log = config(100_000), tmp_path / "run" / "metrics.jsonl"
    command = [sys.executable, "-m", "interlingua.cli.main", "train", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    assert process.returncode == 2, error
    step = json.loads(
        (next((tmp_path / "run" / "checkpoints").iterdir()) / "state.json").read_text()
    )["state"]["step"]
    assert error.splitlines()[-1] == (
        f"interlingua: stopped after step {step} of 100000, which is saved; to resume, run:"
        f" interlingua train {tmp_path}/run/config.toml"
    )
