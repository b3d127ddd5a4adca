"""Training by several processes, and resuming with another number of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.verbs.test_train import config as config
from tests.cli.verbs.test_train import cut_to_step as cut_to_step
from tests.training.runs import losses, run_python


def test_a_run_goes_on_with_another_number_of_processes(done, config, tmp_path):
    """Resume with one process for two, and the reverse, and compare the losses with a full run."""
    path = config(4)
    changes = [f"run.{key}" for key in ("save_steps=2", "eval_steps=4", "logging_steps=1")] + [
        'method.negatives="processes"',
        "method.tag_dropout=0",
    ]
    changes += [f"encoder.{name}_dropout_prob=0" for name in ("hidden", "attention_probs")]

    def train(devices, name):
        options = [*(f"--set={change}" for change in changes), "-o", str(tmp_path / name)]
        options += ["--devices", str(devices)]
        if devices == 1:
            return done("train", path, *options).err
        return run_python("-m", "interlingua.cli.main", "train", path, *options).stderr

    for devices, name in ((1, "one"), (2, "two")):
        train(devices, name)
    straight = losses(tmp_path / "one")
    assert losses(tmp_path / "two") == pytest.approx(straight, rel=1e-5)
    for before, now, name in ((1, 2, "one"), (2, 1, "two")):
        cut_to_step(tmp_path / name, 2)
        said = train(now, name)
        assert f"began with {before} processes and continues with {now}" in said
        made = [step for step in range(1, 5) if f"step {step}/4 | loss" in said]
        assert made == [3, 4]
        assert f"devices = {now}" in (tmp_path / name / "config.toml").read_text(encoding="utf-8")
        assert (tmp_path / name / "model").is_dir()
        assert losses(tmp_path / name) == pytest.approx(straight, rel=1e-5)


def test_two_processes_by_option_and_one_line_of_error(config, tmp_path):
    """Check that two processes report a mistake once, and that the option makes a sharded run."""
    command = [
        sys.executable,
        "-m",
        "interlingua.cli.main",
        "train",
        str(config(2)),
        "--devices",
        "2",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    wrong = subprocess.run(
        [*command, "--set", "run.metric_for_best_model=foo"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert wrong.returncode == 2
    assert [line for line in wrong.stderr.splitlines() if "interlingua: " in line] == [
        line for line in wrong.stderr.splitlines() if "'foo' is not measured" in line
    ]
    assert wrong.stderr.count("'foo' is not measured") == 1
    right = subprocess.run(
        [*command, "--strategy", "fsdp", "-o", str(tmp_path / "two")],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert right.returncode == 0, right.stderr
    settled = (tmp_path / "two" / "config.toml").read_text()
    assert "devices = 2" in settled
    assert 'strategy = "fsdp"' in settled
