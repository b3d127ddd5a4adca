"""The verb reads each TOML file once."""

from __future__ import annotations

import interlingua
from interlingua.config import toml
from tests.training.conftest import tiny_config, tiny_table

_ = tiny_config, tiny_table


def test_a_run_reads_its_file_once(tiny_config, tmp_path, monkeypatch):
    opened = []
    read = toml.read_limited

    def counted(file, path, limit):
        opened.append(path)
        return read(file, path, limit)

    monkeypatch.setattr(toml, "read_limited", counted)
    file = tmp_path / "train.toml"
    file.write_text(tiny_config(max_steps=2, eval_steps=2, save_steps=2).to_toml())
    interlingua.train(file, settings=["run.seed=3"])
    assert opened == [file]
