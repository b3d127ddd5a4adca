"""Atomic checkpoints in safetensors and JSON, never pickle.

``checkpoints/step-00000100/`` holds ``model.safetensors`` (all weights of the objective, heads and
teachers included), ``optimizer.safetensors`` and ``state.json``, which also keeps the SHA-256 of
the other two files and of its own content.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from interlingua.errors import CheckpointError, DataError
from interlingua.storage.digests import are_digests, file_digests, find_damage
from interlingua.storage.files import atomic_directory, remove_entries
from interlingua.storage.formats import CHECKPOINT
from interlingua.storage.record import RecordError, read_record, write_record
from interlingua.storage.tensor_files import write_safetensors
from interlingua.training.machine.engine import gather_tensors, shared_out

STATE_FILE = "state.json"
TENSOR_FILES = ("model.safetensors", "optimizer.safetensors")
CHECKPOINT_ENTRIES = r"model\.safetensors|optimizer\.safetensors|state\.json"
"""Files of a checkpoint."""


@dataclass(slots=True)
class TrainState:
    """The state of a run besides its tensors."""

    step: int = 0
    """Optimizer steps done."""
    cpu_seconds: float = 0.0
    """Processor time spent on them, evaluations not included."""
    tokens: int = 0
    """Tokens read in these steps."""
    seconds: float = 0.0
    """Time spent on these steps, evaluations included."""
    best_step: int | None = None
    """Step of the best evaluation so far."""
    best_metric: float | None = None
    """Value of the metric in the best evaluation."""
    best_loss: float | None = None
    """Validation loss in the best evaluation, if it was measured."""
    evaluations_since_best: int = 0
    """Evaluations made since, none of them better."""
    sums: dict[str, float] = field(default_factory=dict)
    """Sums of the loss terms since the last record."""
    counts: dict[str, int] = field(default_factory=dict)
    """Steps in each sum."""
    loss_scale: float = 65_536.0
    """The factor of losses in fp16."""
    loss_scale_steps: int = 0
    """Steps since it was changed."""


def save_checkpoint(
    folder: Path,
    objective: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: TrainState,
    *,
    write: bool = True,
) -> Path:
    """Write ``folder/step-<step>`` under a temporary name, sync it to disk and rename it.

    Sharded weights are put together, so all processes of a sharded run must call it, one of them
    with ``write``; the checkpoint is the same whatever the number of processes.

    Returns:
        the checkpoint's folder.

    Raises:
        CheckpointError: the disk is full or can't be written; older checkpoints are untouched.
    """
    target = folder / f"step-{state.step:08d}"
    # Gathering needs all processes, so it is done before the processes that don't write return.
    weights = gather_tensors(_weights(objective), keep=write)
    moments = gather_tensors(_moments(objective, optimizer), keep=write)
    if not write:
        return target
    try:
        with atomic_directory(
            target, overwrite=True, ours=lambda _: True, entries=CHECKPOINT_ENTRIES
        ) as temporary:
            for name, content in zip(TENSOR_FILES, (weights, moments), strict=True):
                write_safetensors(temporary / name, content)
            record = {
                "state": dataclasses.asdict(state),
                "files": file_digests(temporary),
            }
            write_record(temporary / STATE_FILE, CHECKPOINT, record)
    except DataError as error:
        # The message of ``files`` advises to use another folder. This advice is left out here,
        # because another folder would not have the older checkpoints.
        reason = str(error)
        if isinstance(error.__cause__, OSError):
            reason = error.__cause__.strerror or str(error.__cause__)
        kept = checkpoints_in(folder)
        before = "there is no earlier checkpoint"
        if kept:
            before = f"the checkpoint of step {_step(kept[-1])} is kept"
        raise CheckpointError(
            f"{folder}: the checkpoint of step {state.step} cannot be written ({reason});"
            f" {before}; free disk space and run the same command again"
        ) from error
    return target


def load_checkpoint(
    path: Path, objective: nn.Module, optimizer: torch.optim.Optimizer
) -> TrainState:
    """Put a checkpoint's content into an objective and an optimizer built from the same config.

    Raises:
        CheckpointError: it is damaged, or belongs to another objective.
    """
    problem = find_checkpoint_damage(path)
    if problem:
        raise CheckpointError(
            f"{path}: the checkpoint cannot be used ({problem}); resume from another one"
        )
    record = read_record(path / STATE_FILE, CHECKPOINT)
    try:
        weights = load_file(path / "model.safetensors")
        moments = load_file(path / "optimizer.safetensors")
    except SafetensorError as error:
        raise CheckpointError(
            f"{path}: is damaged or incomplete ({error}); resume from another checkpoint"
        ) from error
    # Compare the shapes here, so that the error names a weight and a remedy.
    shapes = {name: tensor.shape for name, tensor in _weights(objective)}
    wrong = shapes.keys() ^ weights.keys()  # names that only one of the two has
    if not wrong:
        wrong = {name for name in weights if weights[name].shape != shapes[name]}
    if wrong:
        raise CheckpointError(
            f"{path}: {min(wrong)} does not match the config; use the config of the checkpoint's"
            " run"
        )
    own = objective.state_dict()
    # not strict, as weights that share memory were written under their first name only
    objective.load_state_dict(
        {name: shared_out(tensor, own[name]) for name, tensor in weights.items()}, strict=False
    )
    # The optimizer numbers its parameters; a key in the file has the names of weight and moment.
    parameters = dict(objective.named_parameters())
    states: dict[int, dict[str, Tensor]] = {}
    places = {name: place for place, name in enumerate(_names(objective, optimizer))}
    for key, tensor in moments.items():
        name, _, moment = key.partition("/")
        # a moment is as large as its weight, or one number, such as the steps
        if name not in places or tensor.shape not in ((), parameters[name].shape):
            raise CheckpointError(
                f"{path}: {key} does not match the config; use the config of the checkpoint's run"
            )
        states.setdefault(places[name], {})[moment] = shared_out(tensor, parameters[name])
    optimizer.load_state_dict(
        {"state": states, "param_groups": optimizer.state_dict()["param_groups"]}
    )
    return TrainState(**record["state"])


def latest_checkpoint(folder: Path, warn: Callable[[str], None]) -> Path | None:
    """Return the newest undamaged checkpoint; warn about each newer one with the reason."""
    for path in reversed(checkpoints_in(folder)):
        problem = find_checkpoint_damage(path)
        if problem is None:
            return path
        warn(f"{path.name} cannot be used ({problem}); an older one is used")
    return None


def find_checkpoint_damage(path: Path) -> str | None:
    """Return why a checkpoint can't be used, or None."""
    try:
        record = read_record(path / STATE_FILE, CHECKPOINT)
    except RecordError as error:
        return f"{STATE_FILE}: {error.fault}"
    files = record.get("files")
    if not are_digests(files) or files.keys() != set(TENSOR_FILES):
        return "state.json has no digests of the checkpoint's files"
    if not _is_state(record.get("state")):
        return "state.json has an unexpected state"
    return find_damage(path, files) or None


def _is_state(state: Any) -> bool:
    """Return whether names and types are those of a ``TrainState``.

    A correct checksum does not show that this package wrote the file.
    """
    plain = dataclasses.asdict(TrainState())
    if not isinstance(state, dict) or state.keys() != plain.keys():
        return False
    kinds = {
        "sums": dict,
        "counts": dict,
        "best_step": int | None,
        "best_metric": float | int | None,
        "best_loss": float | int | None,
    }
    for name, value in state.items():
        # JSON may write a float as a whole number, but a count is never a fraction.
        kind = kinds.get(name, int if isinstance(plain[name], int) else float | int)
        if isinstance(value, bool) or not isinstance(value, kind):
            return False
        numbers = value.values() if isinstance(value, dict) else ()
        if not all(isinstance(number, float | int) for number in numbers):
            return False
    counts = (
        state["step"],
        state["tokens"],
        state["evaluations_since_best"],
        *state["counts"].values(),
    )
    return bool(state["sums"].keys() == state["counts"].keys() and min(counts) >= 0)


def remove_old_checkpoints(folder: Path, *, keep: int, best_step: int | None) -> None:
    """Remove all but the newest ``keep`` checkpoints and that of the best evaluation."""
    for path in checkpoints_in(folder)[:-keep]:
        if _step(path) != best_step:
            remove_entries(path, CHECKPOINT_ENTRIES)


def checkpoints_in(folder: Path) -> list[Path]:
    """Return all finished checkpoints, oldest first."""
    found = []
    for path in sorted(folder.glob("step-*")):
        # A removed checkpoint leaves its folder if the folder also has a user's files.
        has_ours = any((path / name).exists() for name in (*TENSOR_FILES, "state.json"))
        if path.name[5:].isdigit() and has_ours:
            found.append(path)
    return found


def weights_of(objective: nn.Module) -> dict[str, Tensor]:
    """Return all weights and buffers by name; shared ones have their first name only."""
    return gather_tensors(_weights(objective), keep=True)


def _weights(objective: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield all weights and buffers by name, still sharded."""
    # unlike ``state_dict``, these list a shared tensor only once
    once = {name for name, _ in objective.named_parameters()}
    once |= {name for name, _ in objective.named_buffers()}
    return ((name, tensor) for name, tensor in objective.state_dict().items() if name in once)


def _moments(
    objective: nn.Module, optimizer: torch.optim.Optimizer
) -> Iterator[tuple[str, Tensor]]:
    """Yield the optimizer's averages, named ``WEIGHT/MOMENT``."""
    names = _names(objective, optimizer)
    for place, moments in optimizer.state_dict()["state"].items():
        for moment, tensor in moments.items():
            yield f"{names[place]}/{moment}", tensor


def _names(objective: nn.Module, optimizer: torch.optim.Optimizer) -> list[str]:
    """Return the names of the optimizer's parameters, in its own order."""
    names: dict[Any, str] = {parameter: name for name, parameter in objective.named_parameters()}
    return [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]


def _step(path: Path) -> int:
    return int(path.name[5:])
