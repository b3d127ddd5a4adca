"""Runs for tests: how one is stopped, what it leaves, and runs in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlingua.storage.files import sha256_file
from interlingua.training.checkpoint import checkpoints_in
from interlingua.training.config import TrainConfig

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """Return the environment of a test's process: one thread, and this tree's tests."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}


def run_python(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Python in a separate process, and return its output."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, env=environment(), timeout=280, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr[-3000:]
    return done


def train_command(config: TrainConfig, path: Path) -> list[str]:
    """Write a config, and return Python's arguments for a quiet run of it."""
    path.write_text(config.to_toml(), encoding="utf-8")
    return ["-m", "interlingua.cli.main", "train", str(path), "--quiet"]


def stop_at(step: int, number: signal.Signals = signal.SIGINT) -> Callable[..., dict[str, float]]:
    """Return an evaluation that only sends the process a signal at a step."""

    def evaluate(encoder: Any, now: int) -> dict[str, float]:
        if now == step:
            os.kill(os.getpid(), number)
        return {}

    return evaluate


def records(run: Path, kind: str) -> list[dict[str, Any]]:
    """Return the records of a kind in metrics.jsonl."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


def losses(run: Path) -> list[float]:
    """Return the loss of each training record."""
    return [record["loss"] for record in records(run, "train")]


def newest(run: Path) -> Path:
    """Return the folder of the newest checkpoint."""
    return checkpoints_in(run / "checkpoints")[-1]


def digest(run: Path) -> list[str]:
    """Return weights and optimizer of the newest checkpoint, byte by byte."""
    folder = newest(run)
    files = [sha256_file(folder / f"{name}.safetensors") for name in ("model", "optimizer")]
    return [folder.name, *files]
