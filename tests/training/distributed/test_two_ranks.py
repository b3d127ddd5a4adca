"""Two ranks of the training loop."""

from __future__ import annotations

import pytest
import torch

from interlingua.training.config import load_train_config, train_config_from
from interlingua.training.loop import run_training
from tests.training.runs import digest, newest, records, run_python, train_command
from tests.training.test_loop import _read as _read


def test_two_ranks_are_one_rank_on_the_whole_batch(tiny_table, tmp_path):
    """Train without dropout and with all negatives: EMS's loss depends only on the global batch."""
    tiny_table["encoder"] |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    tiny_table["method"] |= {"negatives": "processes", "tag_dropout": 0.0}
    tiny_table["run"] |= {
        "devices": 2,
        "micro_batch_size": 8,
        "max_steps": 8,
        "output": str(tmp_path / "two"),
    }
    two = train_config_from(tiny_table)
    run_python(*train_command(two, tmp_path / "two.toml"))
    tiny_table["run"] |= {"devices": 1, "micro_batch_size": 16, "output": str(tmp_path / "one")}
    one = train_config_from(tiny_table)
    run_training(one, progress=False)
    for a, b in zip(
        records(one.run.output, "train"), records(two.run.output, "train"), strict=True
    ):
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-5)
        assert b["grad_norm"] == pytest.approx(a["grad_norm"], rel=1e-4)
    for a, b in zip(
        records(one.run.output, "evaluation"), records(two.run.output, "evaluation"), strict=True
    ):
        assert b["valid_loss"] == pytest.approx(a["valid_loss"], rel=1e-5)
        assert b["term_grad_norms"].keys() == a["term_grad_norms"].keys()
    a, b = (_read(newest(config.run.output)) for config in (one, two))
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(b[name], a[name], rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_ranks_that_timed_their_steps_make_the_run_that_is_given_them(
    tiny_table, tmp_path, strategy
):
    """Make the bank, and with it the last layer, after the weights are sharded."""
    tiny_table["encoder"] |= {"dense": True}
    tiny_table["method"] = {"name": "anchor", "bank_size": 64, "bank_steps": 2}
    del tiny_table["run"]["max_steps"]
    tiny_table["run"] |= {
        "devices": 2,
        "strategy": strategy,
        "budget_seconds": 4.0,
        "logging_steps": 0.5,
        "eval_steps": 0.5,
        "save_steps": 0.5,
        "output": str(tmp_path / "timed"),
    }
    timed = train_config_from(tiny_table)
    run_python(*train_command(timed, tmp_path / "timed.toml"))
    settled = load_train_config(timed.run.output / "config.toml")
    given = settled.replace_run(output=tmp_path / "given")
    run_python(*train_command(given, tmp_path / "given.toml"))
    assert digest(timed.run.output) == digest(given.run.output)
