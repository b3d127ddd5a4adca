"""The folder of a run: what lies where, and whether a config goes on with the run that is in it."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from interlingua import __version__
from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.files import atomic_write
from interlingua.train.checkpoint import checkpoints_in, damage, latest_checkpoint
from interlingua.train.config import TrainConfig, differences, load_train_config, train_config_from

PACKAGES = ("torch", "numpy", "lightning-fabric", "safetensors", "tokenizers")
MAY_CHANGE = {
    "output": None,
    "device": "auto",
    "threads": None,
    "logging_steps": None,
    "save_steps": None,
    "save_total_limit": None,
    "tensorboard": None,
}
"""Keys of [run] that don't belong to what is computed, with the value that leaves them to the run."""


class Start(NamedTuple):
    """Where a run begins."""

    config: TrainConfig
    checkpoint: Path | None


class RunFolder:
    """Paths below RUN/, and the two files that say what is in it.

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

    def start(self, config: TrainConfig, resume: str | Path, warn: Callable[[str], None]) -> Start:
        """Decides where to begin.

        Args:
            config: what the user asks for, paths absolute.
            resume: "auto" goes on from the newest whole checkpoint, "never" starts over, a path goes on from there.
            warn: is told of damaged checkpoints.

        Returns:
            the config (that of the run it goes on with) and the checkpoint, none at the beginning.

        Raises:
            ConfigError: the folder holds a run with another config.
            CheckpointError: the checkpoint named is damaged or not there.
        """
        if resume == "never":
            return Start(config, None)
        if resume != "auto":
            path = Path(resume).absolute()
            problem = damage(path)
            if problem:
                raise CheckpointError(f"{path}: {problem}; name a folder like RUN/checkpoints/step-00000100")
            return Start(RunFolder(path.parent.parent).continued(config), path)
        if not checkpoints_in(self.checkpoints):
            return Start(config, None)
        checkpoint = latest_checkpoint(self.checkpoints, warn)
        if checkpoint is None:
            raise CheckpointError(f"{self.checkpoints}: no checkpoint is whole; start over with --resume never")
        return Start(self.continued(config), checkpoint)

    def continued(self, config: TrainConfig) -> TrainConfig:
        """The settled config of the run in this folder, after making sure that ``config`` asks for the same.

        It may be the config as first given (``budget_seconds``, "auto") or as settled then (``max_steps``, "cpu").

        Raises:
            ConfigError: it asks for something else; the keys are named.
        """
        settled = load_train_config(self.config)
        asked = train_config_from(self.read_manifest()["asked"], where=str(self.manifest))
        ignore = frozenset(f"run.{key}" for key in MAY_CHANGE)
        unlike = min((differences(before, config, ignore=ignore) for before in (asked, settled)), key=len)
        if unlike:
            raise ConfigError(
                f"{self.path} holds a run with another config: {', '.join(unlike[:3])}{' ...' if unlike[3:] else ''}"
                " (then, now); set run.output to another folder, or start over with --resume never"
            )
        values = {key: getattr(config.run, key) for key in MAY_CHANGE}
        return settled.replace_run(**{key: value for key, value in values.items() if value != MAY_CHANGE[key]})

    def begin(self, asked: TrainConfig, settled: TrainConfig, *, data_digest: str, fresh: bool) -> None:
        """Writes config.toml and manifest.json; a fresh start first removes what an earlier run left.

        Args:
            asked: the config as given.
            settled: the config as it is computed with.
            data_digest: of the training data.
            fresh: whether the run begins at step 0.

        Raises:
            DataError: the run goes on with other training data than it began with.
        """
        if fresh:
            for leftover in (self.checkpoints, self.best, self.model, self.tensorboard):
                shutil.rmtree(leftover, ignore_errors=True)
            for leftover in (self.metrics, self.manifest):
                leftover.unlink(missing_ok=True)
        elif self.manifest.exists() and self.read_manifest().get("data_digest") != data_digest:
            raise DataError("its training data changed since it began; start over with --resume never", path=self.path)
        with atomic_write(self.config) as file:
            file.write(settled.to_toml())
        if not self.manifest.exists():
            versions = {"interlingua": __version__, **{name: importlib.metadata.version(name) for name in PACKAGES}}
            record = {
                "asked": asked.to_mapping(),
                "data_digest": data_digest,
                "versions": versions,
                "python": platform.python_version(),
                "machine": f"{platform.system()} {platform.machine()}",
            }
            with atomic_write(self.manifest) as file:
                json.dump(record, file, indent=1, ensure_ascii=False)
                file.write("\n")

    def read_manifest(self) -> dict[str, Any]:
        """The manifest as written.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        try:
            manifest: dict[str, Any] = json.loads(self.manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self.manifest}: missing or damaged; start over with --resume never") from error
        return manifest
