"""Two ranks of the training loop."""

from __future__ import annotations

import pytest
import torch

from interlingua.training.config import train_config_from
from interlingua.training.loop import train
from tests.training.runs import newest, records, run_python, train_command
from tests.training.test_loop import _read as _read


def test_two_ranks_are_one_rank_on_the_whole_batch(tiny_table, tmp_path):
    """With negatives from all processes and without dropout EMS's loss is a function of the global
    batch alone."""
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
    train(one, progress=False)
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
