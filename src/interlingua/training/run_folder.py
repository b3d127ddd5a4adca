"""The folder of a run: its files, and whether a config continues the run that is in it.

It keeps records as a workspace does, but is not one: a workspace compares settings key by key and
keeps each finished step. A resumed run, however, may change some keys, its config has two forms
(with ``budget_seconds``, or with the number of steps computed from it), and the run continues from
the newest undamaged checkpoint.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from interlingua import __version__
from interlingua.encoder.directories.model_directory import MODEL_ENTRIES
from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.storage.files import atomic_write, other_entries, remove_entries
from interlingua.storage.formats import CHECKPOINT, RUN
from interlingua.storage.locks import exclusive
from interlingua.storage.record import RecordError, holds_record, read_record, write_record
from interlingua.storage.temporary import sweep
from interlingua.training.checkpoint import (
    CHECKPOINT_ENTRIES,
    STATE_FILE,
    checkpoints_in,
    find_checkpoint_damage,
    latest_checkpoint,
)
from interlingua.training.config import (
    TrainConfig,
    config_differences,
    load_train_config,
    train_config_from,
)

_PACKAGES = ("numpy", "lightning-fabric", "safetensors", "tokenizers")
MAY_CHANGE: dict[str, Any] = {
    "output": None,
    "device": "auto",
    "threads": None,
    "logging_steps": None,
    "save_steps": None,
    "save_total_limit": None,
    "tensorboard": None,
}
"""Keys of [run] that don't affect the results. If a new config gives a key the value listed here, a
resumed run keeps its own value of this key."""
DEVICES = "devices"
"""Key of [run] that affects the results only by rounding; each start has a value of its own."""


class Start(NamedTuple):
    """The starting point of a run.

    Attributes:
        config: the whole run.
        checkpoint: the one that it resumes from; none at the start.
        devices: processes of the run that it resumes.
    """

    config: TrainConfig
    checkpoint: Path | None
    devices: int | None = None


class RunFolder:
    """Paths below RUN/, and the two files that describe its contents.

    Args:
        path: RUN.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.manifest = path / "manifest.json"
        self.metrics = path / "metrics.jsonl"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.best = path / "best"
        self.model = path / "model"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs out of the folder until the block ends.

        Raises:
            ConfigError: another run is at work there, or the folder holds files that are not a
                run's.
        """
        self._refuse_foreign()
        with exclusive(self.path, remedy="set run.output to another folder"):
            yield

    def start(self, config: TrainConfig, resume: str | Path, warn: Callable[[str], None]) -> Start:
        """Decide the first step.

        Args:
            config: the user's settings, paths absolute.
            resume: "auto" resumes from the newest undamaged checkpoint, "never" starts over, a path
                resumes from there.
            warn: called with a message on damaged checkpoints.

        Returns:
            the config (that of the run it resumes) and the checkpoint, none at the start.

        Raises:
            ConfigError: the folder holds a run with another config, or files that are not a run's.
            CheckpointError: the checkpoint named is damaged or not there.
        """
        self._refuse_foreign()
        if resume == "never":
            return Start(config, None)
        if resume != "auto":
            path = Path(resume).absolute()
            problem = find_checkpoint_damage(path)
            if problem:
                raise CheckpointError(
                    f"{path}: the checkpoint cannot be used ({problem}); name a folder such as"
                    " RUN/checkpoints/step-00000100"
                )
            # The checkpoint may be another run's; if this folder holds a run, it must have the same
            # config.
            if self.manifest.exists() and path.parent.parent != self.path.absolute():
                self.refuse_another(config)
            return RunFolder(path.parent.parent).start_at(path, config)
        if not checkpoints_in(self.checkpoints):
            if self.best.exists() or self.model.exists():
                self.refuse_another(config)  # weights of another config would be lost
            return Start(config, None)
        checkpoint = latest_checkpoint(self.checkpoints, warn)
        if checkpoint is None:
            raise CheckpointError(
                f"{self.checkpoints}: all checkpoints are damaged or incomplete; start over with"
                " --resume never"
            )
        return self.start_at(checkpoint, config)

    def start_at(self, checkpoint: Path, config: TrainConfig) -> Start:
        """Resume from a checkpoint of the run in this folder.

        Raises:
            ConfigError: the run has another config.
        """
        settled = load_train_config(self.config)
        return Start(self.continued(config, settled), checkpoint, settled.run.devices)

    def refuse_another(self, config: TrainConfig) -> None:
        """Refuse a config that the run in this folder was not started with.

        Raises:
            ConfigError: see ``continued``.
            CheckpointError: see ``continued``.
        """
        self.continued(config, load_train_config(self.config))

    def continued(self, config: TrainConfig, settled: TrainConfig) -> TrainConfig:
        """Return the settled config of the run in this folder if ``config`` asks for this run.

        Args:
            config: must be equal to the config that the user wrote (``budget_seconds``, "auto") or
                to the settled one (``max_steps``, "cpu").
            settled: the run's config.toml.

        Raises:
            ConfigError: ``config`` differs from both; the message names the keys.
            CheckpointError: the manifest names no config.
        """
        manifest = self.read_manifest()
        if "requested" not in manifest:
            raise CheckpointError(
                f"{self.manifest}: is damaged or incomplete (no requested config); start over"
                " with --resume never"
            )
        given = train_config_from(manifest["requested"], where=str(self.manifest))
        ignore = frozenset(f"run.{key}" for key in (*MAY_CHANGE, DEVICES))
        # Compare with the more similar of the two configs; it is enough to be equal to one of them.
        now = config.to_mapping()
        changes = min(
            (
                config_differences(begun.to_mapping(), now, ignore=ignore)
                for begun in (given, settled)
            ),
            key=len,
        )
        if changes:
            more = " ..." if changes[3:] else ""
            raise ConfigError(
                f"{self.path}: the folder contains a run with another config:"
                f" {', '.join(changes[:3])}{more} (then, now); set run.output to another folder,"
                " or start over with --resume never"
            )
        # Keys that may change are taken from the new config, unless it leaves the choice to the
        # run.
        values = {key: getattr(config.run, key) for key in MAY_CHANGE}
        changed = {key: value for key, value in values.items() if value != MAY_CHANGE[key]}
        return settled.replace_run(**changed, devices=config.run.devices)

    def _refuse_foreign(self) -> None:
        """Raise ConfigError if files that no run of this package wrote would be lost."""
        # The folder itself or, if it does not exist, its nearest existing parent.
        nearest = next((place for place in (self.path, *self.path.parents) if place.exists()), None)
        if nearest is not None and not nearest.is_dir():
            raise ConfigError(
                f"run: output {self.path}: {nearest} is a file, expected a folder; name another"
                " folder"
            )
        own = (
            self.config,
            self.manifest,
            self.metrics,
            self.tensorboard,
            self.checkpoints,
            self.best,
            self.model,
        )
        there = [path.name for path in own if path.exists()]
        if there and not self.is_run():
            raise ConfigError(
                f"run: output {self.path}: the folder contains other files ({', '.join(there)}),"
                " which would be overwritten; name another folder"
            )

    def is_run(self) -> bool:
        """Return whether a run of this package has started in this folder."""
        # A checkpoint of ours is enough, even where the manifest was lost.
        for path in checkpoints_in(self.checkpoints):
            if holds_record(path / STATE_FILE, CHECKPOINT):
                return True
        return holds_record(self.manifest, RUN)

    def compare(self, digests: Mapping[str, str], warn: Callable[[str], None]) -> None:
        """Compare the data and packages of the run in this folder with the present ones.

        Args:
            digests: of the data, by the manifest's keys.
            warn: called once with the packages that have another version now.

        Raises:
            DataError: the data have changed.
        """
        manifest = self.read_manifest()
        for key, digest in digests.items():
            # a manifest of an older version lacks some digests, which are then not compared
            if manifest.get(key, digest) != digest:
                which = key.removesuffix("_digest").replace("data", "training")
                raise DataError(
                    f"the {which} data changed since the run began; start over with --resume never",
                    path=self.path,
                )
        now = versions()
        began: dict[str, str] = manifest.get("versions", {})
        others = [
            f"{name} {was} (now {now.get(name)})"
            for name, was in began.items()
            if was != now.get(name)
        ]
        if others:
            warn(
                f"this run began with {', '.join(others)}; its result may differ from that of an"
                " uninterrupted run"
            )

    def begin(
        self, given: TrainConfig, settled: TrainConfig, *, digests: Mapping[str, str], fresh: bool
    ) -> None:
        """Write manifest.json and config.toml.

        A fresh start first removes what an earlier run left.

        Args:
            given: the config as the user wrote it.
            settled: the config with all values resolved.
            digests: of the data, by the manifest's keys.
            fresh: whether the run starts at step 0.
        """
        if fresh:
            self._remove_earlier()
        if fresh or not self.manifest.exists():
            record = {
                "requested": given.to_mapping(),
                **digests,
                "versions": versions(),
                "python": platform.python_version(),
                "machine": f"{platform.system()} {platform.machine()}",
            }
            # Written first and atomically: a folder with a manifest counts as the folder of a run,
            # whatever other files it contains.
            write_record(self.manifest, RUN, record)
        with atomic_write(self.config) as file:
            file.write(settled.to_toml())
        # remove temporary files that a killed process left
        for folder in (self.path, self.checkpoints):
            if folder.is_dir():
                sweep(folder)

    def _remove_earlier(self) -> None:
        """Remove only files that an earlier run wrote.

        Raises:
            ConfigError: the folder of a model holds other files, which would then be mixed with the
                files of another model.
        """
        for folder in (self.best, self.model):
            others = other_entries(folder, MODEL_ENTRIES)
            if others:
                raise ConfigError(
                    f"{others[0]}: does not belong to this run; move it elsewhere, or set"
                    " run.output to another folder"
                )
        for model in (self.best, self.model):
            remove_entries(model, MODEL_ENTRIES)
        for checkpoint in checkpoints_in(self.checkpoints):
            remove_entries(checkpoint, CHECKPOINT_ENTRIES)
        for events in self.tensorboard.glob("events.out.tfevents.*"):
            events.unlink()
        for folder in (self.checkpoints, self.tensorboard):
            # A folder that contains anything else stays.
            with contextlib.suppress(OSError):
                folder.rmdir()
        self.metrics.unlink(missing_ok=True)

    def read_manifest(self) -> dict[str, Any]:
        """Read the manifest as written.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        try:
            return read_record(self.manifest, RUN)
        except RecordError as error:
            raise CheckpointError(str(error)) from error


def versions() -> dict[str, str]:
    """Return the versions of this package and of the packages that it computes with."""
    return {
        "interlingua": __version__,
        "torch": str(torch.__version__),  # includes the platform of the build: 2.11.0+cu130
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }
