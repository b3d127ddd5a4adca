"""Options of extend that can't be, and a folder that belongs to other options."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.adapt.settings import ExtendSettings, open_extension
from interlingua.errors import ConfigError, DataError
from interlingua.storage.formats import EXTEND
from interlingua.storage.record import read_record, write_record
from interlingua.storage.workspace import WORKSPACE_RECORD


def settings(folder, **changes):
    pairs = folder / "pairs.eu-en.tsv"
    pairs.write_text("bat\tone\n")
    values = {"model": "m", "pairs": (pairs,), "language": "eus_Latn", "output": folder / "out"}
    return ExtendSettings(**(values | changes))


def claim(asked):
    with open_extension(asked):
        pass


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": ()}, "--pairs"),
        ({"language": "en"}, "two languages"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": -1}, "batch_size"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"heldout": 0}, "heldout"),
        ({"replay_weight": -1.0}, "replay_weight"),
        ({"new_pieces": -1}, "new_pieces"),
        ({"device": "tpu"}, "tpu"),
        ({"replay_share": 0.5}, "replay_share"),
        ({"replay_weight": 2.0, "replay": ()}, "replay_weight"),
        ({"replay_sentences": 10}, "replay_sentences"),
        ({"check_languages": "de"}, "check_languages"),
        ({"check_pairs": 10}, "check_pairs"),
    ],
)
def test_options_that_cannot_be_are_errors(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        settings(tmp_path, **changes)


def test_an_unknown_language_is_an_error(tmp_path):
    with pytest.raises(DataError, match="xx"):
        settings(tmp_path, language="xx")


def test_the_same_settings_go_on(tmp_path):
    claim(settings(tmp_path))
    record = read_record(tmp_path / "out" / WORKSPACE_RECORD, EXTEND)
    claim(settings(tmp_path))
    claim(settings(tmp_path, threads=2))
    assert read_record(tmp_path / "out" / WORKSPACE_RECORD, EXTEND) == record


@pytest.mark.parametrize("changes", [{"seed": 1}, {"epochs": 4.0}, {"check": (Path("x"),)}])
def test_other_settings_are_an_error(tmp_path, changes):
    claim(settings(tmp_path))
    with pytest.raises(ConfigError, match=next(iter(changes))):
        claim(settings(tmp_path, **changes))


def test_pairs_that_changed_are_other_settings(tmp_path):
    claim(settings(tmp_path))
    asked = settings(tmp_path)
    asked.pairs[0].write_text("bi\ttwo\n")
    with pytest.raises(ConfigError, match=r"pairs\.eu-en\.tsv"):
        claim(asked)


def test_a_model_that_changed_is_another_one(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "weights").write_text("1")
    claim(settings(tmp_path, model=tmp_path / "m"))
    (tmp_path / "m" / "weights").write_text("2")
    with pytest.raises(ConfigError, match="/m has changed"):
        claim(settings(tmp_path, model=tmp_path / "m"))


def test_a_folder_of_other_files_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("")
    with pytest.raises(ConfigError, match="other files"):
        claim(settings(tmp_path))
    with pytest.raises(ConfigError, match="is a file"):
        claim(settings(tmp_path, output=tmp_path / "out" / "thesis.txt"))


def test_a_damaged_record_is_an_error(tmp_path):
    claim(settings(tmp_path))
    path = tmp_path / "out" / WORKSPACE_RECORD
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=WORKSPACE_RECORD):
        claim(settings(tmp_path))


@pytest.mark.parametrize("content", [{}, {"settings": [1], "inputs": {}, "steps": {}}])
def test_a_record_of_another_shape_is_an_error(tmp_path, content):
    claim(settings(tmp_path))
    write_record(tmp_path / "out" / WORKSPACE_RECORD, EXTEND, content)
    with pytest.raises(DataError, match=WORKSPACE_RECORD):
        claim(settings(tmp_path))
