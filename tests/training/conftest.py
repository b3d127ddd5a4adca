"""A config of a tiny EMS run."""

from __future__ import annotations

import pytest

from interlingua.kernels import calls
from interlingua.training.config import RunConfig, train_config_from
from interlingua.training.machine.engine import Engine


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch):
    """No chosen executor. Many tests leave their engine open, which would pass it on."""
    monkeypatch.setattr(calls.chosen, "executor", None)


@pytest.fixture
def tiny_table(prepared, tmp_path):
    """The nested mapping of a run of 12 steps, for a test to change."""
    return {
        "data": {"corpus": str(prepared), "valid_pairs": 32},
        "encoder": {"preset": "ems-tiny"},
        "method": {"name": "ems", "projection_dim": 16, "language_dim": 8},
        "optimizer": {"name": "adam", "learning_rate": 1e-3, "amsgrad": True, "weight_decay": 1e-5},
        "schedule": {"name": "ems", "warmup_steps": 4},
        "run": {
            "output": str(tmp_path / "run"),
            "max_steps": 12,
            "global_batch_size": 16,
            "precision": "fp32",
            "device": "cpu",
            "threads": 1,
            "logging_steps": 1,
            "eval_steps": 6,
            "save_steps": 4,
        },
    }


@pytest.fixture
def tiny_config(tiny_table):
    """A function from changes of [run] to the config; None removes a key."""

    def make(**run):
        section = {
            key: value for key, value in {**tiny_table["run"], **run}.items() if value is not None
        }
        return train_config_from({**tiny_table, "run": section})

    return make


@pytest.fixture
def engine(tmp_path):
    """One process in float32 on the CPU."""
    return Engine(
        RunConfig(output=tmp_path, max_steps=1, device="cpu", precision="fp32", threads=1)
    )
