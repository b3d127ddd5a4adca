import json

import pytest
import torch

from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.train.checkpoint import TrainState, save_checkpoint
from interlingua.train.run_folder import RunFolder


@pytest.fixture
def begun(tiny_config, tmp_path):
    """A run that was asked for by epochs, was settled to 12 steps, and has a checkpoint of step 4."""
    asked = tiny_config(max_steps=None, num_train_epochs=2, threads=None, precision="auto")
    settled = tiny_config()
    folder = RunFolder(settled.run.output)
    folder.begin(asked, settled, data_digest="abc", fresh=True)
    module = torch.nn.Linear(1, 1)
    save_checkpoint(folder.checkpoints, module, torch.optim.Adam(module.parameters()), TrainState(step=4))
    return folder, asked, settled


def test_an_empty_folder_begins_at_the_beginning(tiny_config):
    config = tiny_config()
    assert RunFolder(config.run.output).start(config, "auto", print) == (config, None)


@pytest.mark.parametrize("which", [1, 2], ids=["as asked", "as settled"])
def test_the_same_config_goes_on(begun, which):
    folder, settled = begun[0], begun[2]
    assert folder.start(begun[which], "auto", print) == (settled, folder.checkpoints / "step-00000004")


def test_what_is_not_computed_may_change(begun):
    folder, asked, settled = begun
    changed = asked.replace_run(logging_steps=3, save_total_limit=7, output=asked.run.output / "moved")
    expected = settled.replace_run(logging_steps=3, save_total_limit=7, output=asked.run.output / "moved")
    assert folder.start(changed, "auto", print).config == expected


def test_another_config_is_refused_by_key(begun):
    folder, asked, _ = begun
    with pytest.raises(ConfigError, match=r"run\.seed \(0, 5\) \(then, now\); .*--resume never"):
        folder.start(asked.replace_run(seed=5), "auto", print)
    with pytest.raises(ConfigError, match=r"num_train_epochs \(2\.0, 3\)"):
        folder.start(asked.replace_run(num_train_epochs=3), "auto", print)


def test_never_starts_over_and_clears_the_folder(begun):
    folder, asked, _ = begun
    other = asked.replace_run(seed=5)
    assert folder.start(other, "never", print) == (other, None)
    folder.metrics.write_text("old\n")
    folder.begin(other, other, data_digest="abc", fresh=True)
    assert not folder.checkpoints.exists()
    assert not folder.metrics.exists()
    assert folder.read_manifest()["asked"]["run"]["seed"] == 5


def test_a_named_checkpoint(begun, tmp_path):
    folder, asked, settled = begun
    path = folder.checkpoints / "step-00000004"
    elsewhere = RunFolder(tmp_path / "elsewhere")
    assert elsewhere.start(asked, str(path), print) == (settled, path)
    with pytest.raises(CheckpointError, match=r"state\.json is missing"):
        folder.start(asked, folder.checkpoints / "step-00000005", print)


def test_only_damaged_checkpoints(begun):
    folder, asked, _ = begun
    (folder.checkpoints / "step-00000004" / "state.json").unlink()
    warnings = []
    with pytest.raises(CheckpointError, match="no checkpoint is whole"):
        folder.start(asked, "auto", warnings.append)
    assert len(warnings) == 1


def test_a_corpus_that_changed(begun):
    folder, asked, settled = begun
    with pytest.raises(DataError, match="training data changed since it began"):
        folder.begin(asked, settled, data_digest="other", fresh=False)
    folder.begin(asked, settled, data_digest="abc", fresh=False)


def test_the_manifest_says_what_it_was_run_with(begun):
    manifest = begun[0].read_manifest()
    assert manifest["versions"]["torch"] == torch.__version__
    assert manifest["data_digest"] == "abc"
    assert manifest["asked"]["run"]["num_train_epochs"] == 2


def test_a_broken_manifest(begun):
    folder, asked, _ = begun
    folder.manifest.write_text(json.dumps({})[:1])
    with pytest.raises(CheckpointError, match="missing or damaged"):
        folder.start(asked, "auto", print)
