import json
import os
import re
import shutil

import pytest
import torch

from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.storage import locks
from interlingua.training import run_folder
from interlingua.training.checkpoint import TrainState, checkpoints_in, save_checkpoint
from interlingua.training.run_folder import RunFolder, Start, versions
from tests.training.runs import run_python


@pytest.fixture
def begun(tiny_config, tmp_path):
    """A run in epochs that torch fixed to 12 steps, with a checkpoint of step 4."""
    asked = tiny_config(max_steps=None, num_train_epochs=2, threads=None, precision="auto")
    settled = tiny_config(executor="torch")
    folder = RunFolder(settled.run.output)
    folder.begin(
        asked, settled, digests={"data_digest": "abc", "validation_digest": "v"}, fresh=True
    )
    module = torch.nn.Linear(1, 1)
    save_checkpoint(
        folder.checkpoints, module, torch.optim.Adam(module.parameters()), TrainState(step=4)
    )
    return folder, asked, settled


def test_an_empty_folder_begins_at_the_beginning(tiny_config):
    config = tiny_config()
    assert RunFolder(config.run.output).start(config, "auto", print) == Start(config, None)


@pytest.mark.parametrize("which", [1, 2], ids=["as asked", "as settled"])
def test_the_same_config_goes_on(begun, which):
    folder, settled = begun[0], begun[2]
    assert folder.start(begun[which], "auto", print) == Start(
        settled, folder.checkpoints / "step-00000004", 1
    )


def test_what_is_not_computed_may_change(begun):
    folder, asked, settled = begun
    changed = asked.replace_run(
        logging_steps=3, save_total_limit=7, output=asked.run.output / "moved"
    )
    expected = settled.replace_run(
        logging_steps=3, save_total_limit=7, output=asked.run.output / "moved"
    )
    assert folder.start(changed, "auto", print).config == expected


def test_another_number_of_devices_goes_on(begun):
    folder, asked, settled = begun
    start = folder.start(asked.replace_run(devices=4), "auto", print)
    assert (start.config, start.devices) == (settled.replace_run(devices=4), 1)


def test_another_config_is_refused_by_key(begun):
    folder, asked, _ = begun
    with pytest.raises(ConfigError, match=r"run\.seed \(0, 5\) \(then, now\); .*--resume never"):
        folder.start(asked.replace_run(seed=5), "auto", print)
    with pytest.raises(ConfigError, match=r"num_train_epochs \(2\.0, 3\)"):
        folder.start(asked.replace_run(num_train_epochs=3), "auto", print)


def test_a_manifest_without_the_requested_config(begun):
    folder, asked, _ = begun
    folder.manifest.write_text("{}")
    with pytest.raises(CheckpointError, match=r"manifest\.json: .*--resume never"):
        folder.start(asked, "auto", print)


def test_never_starts_over_and_clears_the_folder(begun):
    folder, asked, _ = begun
    other = asked.replace_run(seed=5)
    assert folder.start(other, "never", print) == Start(other, None)
    folder.metrics.write_text("old\n")
    leftover = folder.path / left_by_a_killed_process(folder.path)
    folder.begin(other, other, digests={"data_digest": "abc"}, fresh=True)
    assert not leftover.exists()
    assert not folder.checkpoints.exists()
    assert not folder.metrics.exists()
    assert folder.read_manifest()["requested"]["run"]["seed"] == 5


def test_never_leaves_a_users_files_in_the_folder_of_a_checkpoint(begun):
    folder, asked, _ = begun
    [*_, last] = checkpoints_in(folder.checkpoints)
    (last / "notes.txt").write_text("mine")
    other = asked.replace_run(seed=5)
    folder.begin(other, other, digests={"data_digest": "abc"}, fresh=True)
    assert [path.name for path in folder.checkpoints.rglob("*")] == [last.name, "notes.txt"]
    assert checkpoints_in(folder.checkpoints) == []


@pytest.mark.parametrize("name", ["1_Pooling/notes.txt", "mine/config.json"])
def test_a_users_file_below_a_model_is_not_removed(begun, name):
    folder, asked, _ = begun
    path = folder.model / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    other = asked.replace_run(seed=5)
    with pytest.raises(ConfigError, match=re.escape(name)):
        folder.begin(other, other, digests={"data_digest": "abc"}, fresh=True)
    assert path.exists()


def test_a_named_checkpoint(begun, tmp_path):
    folder, asked, settled = begun
    path = folder.checkpoints / "step-00000004"
    elsewhere = RunFolder(tmp_path / "elsewhere")
    assert elsewhere.start(asked, str(path), print) == Start(settled, path, 1)
    with pytest.raises(CheckpointError, match=r"state\.json: file not found"):
        folder.start(asked, folder.checkpoints / "step-00000005", print)


def test_only_damaged_checkpoints(begun):
    folder, asked, _ = begun
    (folder.checkpoints / "step-00000004" / "state.json").unlink()
    warnings = []
    with pytest.raises(CheckpointError, match="all checkpoints are damaged"):
        folder.start(asked, "auto", warnings.append)
    assert len(warnings) == 1


def test_a_corpus_that_changed(begun):
    folder = begun[0]
    with pytest.raises(DataError, match="training data changed"):
        folder.compare({"data_digest": "other", "validation_digest": "v"}, print)
    with pytest.raises(DataError, match="validation data changed"):
        folder.compare({"data_digest": "abc", "validation_digest": "other"}, print)
    warnings = []
    folder.compare({"data_digest": "abc", "validation_digest": "v"}, warnings.append)
    assert warnings == []


def test_other_versions_are_one_warning(begun, monkeypatch):
    monkeypatch.setattr(
        run_folder, "versions", lambda: {**versions(), "torch": "9.9", "numpy": "8.8"}
    )
    warnings = []
    begun[0].compare({}, warnings.append)
    assert len(warnings) == 1
    assert f"began with torch {torch.__version__} (now 9.9), numpy" in warnings[0]


FOREIGN = [
    "config.toml",
    "manifest.json",
    "metrics.jsonl",
    "model/weights",
    "best/w",
    "checkpoints/w",
    "tensorboard/w",
]


@pytest.mark.parametrize("resume", ["auto", "never"])
@pytest.mark.parametrize("name", FOREIGN)
def test_what_no_run_wrote_is_not_touched(tiny_config, name, resume):
    config = tiny_config()
    path = config.run.output / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(ConfigError, match=f"other files .{name.split('/')[0]}"):
        RunFolder(config.run.output).start(config, resume, print)
    assert path.read_text() == "mine"


def test_files_that_a_run_does_not_write_are_in_nobodys_way(tiny_config):
    config = tiny_config()
    config.run.output.mkdir()
    (config.run.output / "notes.txt").write_text("mine")
    assert RunFolder(config.run.output).start(config, "auto", print).checkpoint is None


@pytest.mark.parametrize("below", ["", "x", "x/y"])
def test_a_file_is_no_folder(tiny_config, tmp_path, below):
    (tmp_path / "file").write_text("mine")
    config = tiny_config(output=str(tmp_path / "file" / below))
    with pytest.raises(ConfigError, match="/file is a file"):
        RunFolder(config.run.output).start(config, "auto", print)


def test_a_manifest_is_there_before_all_else(tiny_config, monkeypatch):
    """Check that a run killed at its start leaves a folder in which it can start again."""
    config = tiny_config()
    folder = RunFolder(config.run.output)
    monkeypatch.setattr(type(config), "to_toml", lambda self: 1 / 0)
    for _ in range(2):
        folder.start(config, "auto", print)
        with pytest.raises(ZeroDivisionError):
            folder.begin(config, config, digests={"data_digest": "abc"}, fresh=True)


def test_another_runs_checkpoint_in_the_folder_of_a_third(begun, tiny_config, tmp_path):
    folder, _, settled = begun
    third = RunFolder(tmp_path / "third")
    config = tiny_config(output=str(third.path), seed=7)
    third.begin(config, config, digests={"data_digest": "abc"}, fresh=True)
    with pytest.raises(ConfigError, match=r"another config: .*run\.seed \(7, 0\)"):
        third.start(settled, str(folder.checkpoints / "step-00000004"), print)


def left_by_a_killed_process(folder):
    code = (
        "import os, sys; from interlingua.storage.files import atomic_write\nwith"
        " atomic_write(sys.argv[1]): os._exit(1)"
    )
    run_python("-c", code, folder / "some.file", check=False)
    return next(path.name for path in folder.iterdir() if path.name.startswith(".some.file."))


def test_the_manifest_says_what_it_was_run_with(begun):
    manifest = begun[0].read_manifest()
    assert manifest["versions"]["torch"] == torch.__version__
    assert manifest["data_digest"] == "abc"
    assert manifest["requested"]["run"]["num_train_epochs"] == 2


def test_a_broken_manifest(begun):
    folder, asked, _ = begun
    folder.manifest.write_text(json.dumps({})[:1])
    with pytest.raises(CheckpointError, match=r"manifest\.json: is damaged"):
        folder.start(asked, "auto", print)


def test_weights_of_another_config_are_kept(begun):
    """Stop before the first checkpoint, but with a best model."""
    folder, asked, _ = begun
    shutil.rmtree(folder.checkpoints)
    other = asked.replace_run(seed=5)
    assert folder.start(other, "auto", print) == Start(other, None)  # nothing to lose
    folder.best.mkdir()
    with pytest.raises(ConfigError, match=r"run\.seed \(0, 5\) \(then, now\); .*--resume never"):
        folder.start(other, "auto", print)
    assert folder.start(asked, "auto", print) == Start(asked, None)
    assert folder.start(other, "never", print) == Start(other, None)


def test_one_run_at_a_time(begun):
    folder = begun[0]
    in_use = f"in use by process {os.getpid()} .* set run.output"
    with folder.alone(), pytest.raises(ConfigError, match=in_use), folder.alone():
        pass
    assert not (folder.path / locks.LOCK_FILE).exists()


def test_never_removes_nothing_that_the_run_did_not_write(begun):
    folder, asked, settled = begun
    kept = [folder.path / name for name in ("checkpoints/notes.txt", "tensorboard/notes.txt")]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    folder.begin(asked, settled, digests={"data_digest": "abc"}, fresh=True)
    assert [path.read_text() for path in kept] == ["mine", "mine"]
    assert [path.name for path in folder.checkpoints.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["best", "model"])
def test_never_stops_at_a_user_s_file_beside_a_model(begun, name):
    folder, asked, settled = begun
    notes = folder.path / name / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    with pytest.raises(ConfigError, match=r"notes\.txt"):
        folder.begin(asked, settled, digests={"data_digest": "abc"}, fresh=True)
    assert notes.read_text() == "mine"
    assert list(folder.checkpoints.iterdir())
