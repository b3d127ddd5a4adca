import json
import resource
import weakref

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from interlingua.errors import CheckpointError
from interlingua.storage.digests import file_digests
from interlingua.storage.record import checksum_of
from interlingua.training.checkpoint import (
    TrainState,
    checkpoints_in,
    find_checkpoint_damage,
    latest_checkpoint,
    load_checkpoint,
    remove_old_checkpoints,
    save_checkpoint,
    weights_of,
)
from interlingua.training.config import OptimizerConfig
from interlingua.training.machine import engine
from interlingua.training.optimization.optim import build_optimizer


class Tied(nn.Module):
    """Two names for one weight, a frozen weight and a buffer."""

    def __init__(self, width=4):
        super().__init__()
        self.embedding = nn.Embedding(6, width)
        self.output = nn.Linear(width, 6)
        self.output.weight = self.embedding.weight
        self.frozen = nn.Linear(width, 1).requires_grad_(False)
        self.register_buffer("count", torch.zeros(1))


def trained(seed=0, steps=3, width=4):
    torch.manual_seed(seed)
    module = Tied(width)
    optimizer = build_optimizer(module, OptimizerConfig(amsgrad=True, decay_bias_and_norm=False))
    for _ in range(steps):
        module.output(module.embedding(torch.arange(6))).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        module.count += 1
    return module, optimizer


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_everything_comes_back_bit_by_bit(tmp_path):
    module, optimizer = trained()
    state = TrainState(step=3, seconds=1.5, best_step=2, best_metric=0.25, evaluations_since_best=1)
    path = save_checkpoint(tmp_path, module, optimizer, state)
    assert path == tmp_path / "step-00000003"
    other, its_optimizer = trained(seed=1, steps=0)
    assert load_checkpoint(path, other, its_optimizer) == state
    assert same(other.state_dict(), module.state_dict())
    assert other.output.weight is other.embedding.weight
    before, after = optimizer.state_dict(), its_optimizer.state_dict()
    assert before["param_groups"] == after["param_groups"]
    assert before["state"].keys() == after["state"].keys()
    assert all(same(before["state"][place], after["state"][place]) for place in before["state"])


def test_equal_states_give_equal_files(tmp_path):
    for folder in ("a", "b"):
        save_checkpoint(tmp_path / folder, *trained(), TrainState(step=3))
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        a, b = ((tmp_path / folder / "step-00000003" / name).read_bytes() for folder in ("a", "b"))
        assert a == b


def test_shared_weights_are_stored_once():
    names = weights_of(Tied()).keys()
    assert names == {"embedding.weight", "output.bias", "frozen.weight", "frozen.bias", "count"}


def truncate(path):
    path.write_bytes(path.read_bytes()[:-5])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize(
    "harm", [truncate, flip, lambda path: path.unlink()], ids=["truncated", "flipped", "missing"]
)
def test_damage_falls_back_to_the_checkpoint_before_and_says_so(tmp_path, name, harm):
    module, optimizer = trained()
    for step in (1, 2):
        save_checkpoint(tmp_path, module, optimizer, TrainState(step=step))
    harm(tmp_path / "step-00000002" / name)
    warnings = []
    assert latest_checkpoint(tmp_path, warnings.append) == tmp_path / "step-00000001"
    assert len(warnings) == 1
    assert warnings[0].startswith("step-00000002 ")
    assert warnings[0].count("is damaged") < 2
    assert name in warnings[0]
    with pytest.raises(CheckpointError, match=name):
        load_checkpoint(tmp_path / "step-00000002", module, optimizer)


def test_no_bit_of_the_state_can_change_unnoticed(tmp_path):
    """Flip one bit: "step": 9 becomes 1, and the run would resume with other weights."""
    module, optimizer = trained()
    path = save_checkpoint(tmp_path, module, optimizer, TrainState(step=9)) / "state.json"
    content = path.read_bytes()
    assert find_checkpoint_damage(path.parent) is None
    for place in range(len(content) - 1):
        for bit in (0, 3):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            found = find_checkpoint_damage(path.parent)
            assert found is not None or json.loads(changed) == json.loads(content)
    changed = content.replace(b'"step": 9', b'"step": 1')
    assert changed != content
    path.write_bytes(changed)
    assert (
        find_checkpoint_damage(path.parent)
        == "state.json: is damaged or incomplete (the checksum differs)"
    )


@pytest.mark.parametrize(
    "change", [{"files": {}}, {"files": None}, {"checksum": None}, {"state": {}}]
)
def test_a_state_without_its_digests_is_refused(tmp_path, change):
    path = save_checkpoint(tmp_path, *trained(), TrainState(step=9)) / "state.json"
    record = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: value for key, value in record.items() if value is not None}))
    assert (
        find_checkpoint_damage(path.parent)
        == "state.json: is damaged or incomplete (the checksum differs)"
    )


WILD = [
    {"files": None},
    {"files": 5},
    {"files": {}},
    {"state": None},
    {"state": []},
    {"state": {"step": 9}},
    *({"state": {key: value}} for key, value in [
        ("step", "9"), ("step", -1), ("step", 1.5), ("step", True), ("tokens", None), ("seconds",
        "x"), ("sums", []), ("sums", {"loss": "x"}), ("sums", {"loss": 1.0}), ("counts",
        {"loss": 1}), ("best_step", "x"), ("other", 1),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("change", WILD)
def test_a_wild_state_with_a_right_checksum_is_refused(tmp_path, change):
    path = save_checkpoint(tmp_path, *trained(), TrainState(step=9)) / "state.json"
    record = json.loads(path.read_text())
    if isinstance(change.get("state"), dict) and change["state"] != {"step": 9}:
        change = {"state": record["state"] | change["state"]}
    record = {key: value for key, value in (record | change).items() if value is not None}
    path.write_text(json.dumps(record | {"checksum": checksum_of(record)}))
    assert find_checkpoint_damage(path.parent) in (
        "state.json has no digests of the checkpoint's files",
        "state.json has an unexpected state",
    )


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors"])
@pytest.mark.parametrize("content", ["none", "other"])
def test_wild_tensors_with_right_digests_are_refused(tmp_path, name, content):
    module, optimizer = trained()
    path = save_checkpoint(tmp_path, module, optimizer, TrainState(step=9))
    if content == "none":
        (path / name).write_bytes(b"none")
    else:
        save_file({"elsewhere.weight/exp_avg": torch.ones(2)}, path / name)
    record = json.loads((path / "state.json").read_text())
    record["files"][name] = file_digests(path)[name]
    (path / "state.json").write_text(json.dumps(record | {"checksum": checksum_of(record)}))
    with pytest.raises(
        CheckpointError, match="damaged" if content == "none" else "not match the config"
    ):
        load_checkpoint(path, module, optimizer)


def test_a_state_of_the_first_version_is_named(tmp_path):
    path = save_checkpoint(tmp_path, *trained(), TrainState(step=9)) / "state.json"
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {"format": "interlingua-checkpoint-1"})
    )
    assert "found interlingua-checkpoint-1" in find_checkpoint_damage(path.parent)


def test_no_whole_checkpoint(tmp_path):
    assert latest_checkpoint(tmp_path, print) is None


def test_unfinished_folders_are_not_checkpoints(tmp_path):
    save_checkpoint(tmp_path, *trained(), TrainState(step=5))
    for name in (".step-00000009.abc.tmp", "step-x"):
        (tmp_path / name).mkdir()
    assert checkpoints_in(tmp_path) == [tmp_path / "step-00000005"]


def test_other_format_is_named(tmp_path):
    path = save_checkpoint(tmp_path, *trained(), TrainState(step=5))
    record = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps({**record, "format": "other-2"}))
    assert "other-2" in find_checkpoint_damage(path)


def test_other_objective_is_refused(tmp_path):
    path = save_checkpoint(tmp_path, *trained(), TrainState(step=5))
    with pytest.raises(CheckpointError, match=r"embedding\.weight .*config"):
        load_checkpoint(path, *trained(width=5))


def test_rotation_keeps_the_newest_and_the_best(tmp_path):
    module, optimizer = trained()
    for step in (10, 20, 30, 40):
        save_checkpoint(tmp_path, module, optimizer, TrainState(step=step))
    remove_old_checkpoints(tmp_path, keep=2, best_step=10)
    assert [path.name[-2:] for path in checkpoints_in(tmp_path)] == ["10", "30", "40"]
    remove_old_checkpoints(tmp_path, keep=5, best_step=None)
    assert len(checkpoints_in(tmp_path)) == 3


def test_full_disk_keeps_the_checkpoint_before(tmp_path):
    module, optimizer = trained()
    save_checkpoint(tmp_path, module, optimizer, TrainState(step=1))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (300, limits[1])
    )  # writing beyond 300 bytes fails, as on a full disk
    try:
        with pytest.raises(CheckpointError, match=r"step 2 cannot .*step 1 is kept") as caught:
            save_checkpoint(tmp_path, module, optimizer, TrainState(step=2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("free disk space") == 1
    assert "another output" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    assert find_checkpoint_damage(tmp_path / "step-00000001") is None
    save_checkpoint(tmp_path, module, optimizer, TrainState(step=2))
    assert latest_checkpoint(tmp_path, print) == tmp_path / "step-00000002"


def test_no_process_holds_two_weights_whole_that_it_does_not_keep(tmp_path, monkeypatch):
    """Check shards, each of which becomes a new tensor when it is joined."""
    module, optimizer = trained()
    alive = weakref.WeakSet()
    most = 0

    def put_together(tensor):
        nonlocal most
        alive.add(one := tensor.clone())
        most = max(most, len(alive))
        return one

    monkeypatch.setattr(engine, "gather_tensor", put_together)
    path = save_checkpoint(tmp_path, module, optimizer, TrainState(step=3), write=False)
    assert most == 1
    assert not path.exists()
    save_checkpoint(tmp_path, module, optimizer, TrainState(step=3))
    monkeypatch.setattr(
        engine, "gather_tensor", lambda tensor: pytest.fail("loading needs shapes alone")
    )
    load_checkpoint(path, module, optimizer)
