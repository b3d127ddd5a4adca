"""Several runs in a row, from one file.

A stage names a run's TOML file, and a later stage may start from its model:

    output = "runs/calibrated"

    [[stage]]
    name = "nli"
    config = "nli.toml"                            # next to this file

    [[stage]]
    name = "sts"
    config = "sts.toml"
    set.encoder.path = "{nli.best}"                # or {STAGE.model}, {STAGE.silver}

A stage's run is stored in ``output/<name>``. ``output/stages.json`` keeps each stage's
configuration and the digests of its inputs from earlier stages and of its results. A finished stage
is not repeated, and a stage that has changed since then is refused. The file is only a record: each
run locks and resumes its own folder, and all processes of a run read from the file which stages are
done.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlingua.config import (
    CheckedSettings,
    apply_override,
    from_mapping,
    load_toml,
    to_mapping,
    with_absolute_paths,
)
from interlingua.config.registry import did_you_mean
from interlingua.errors import CheckpointError, ConfigError
from interlingua.runtime.processes import is_first_process
from interlingua.storage.files import PathLike, sha256_file, sha256_tree
from interlingua.storage.formats import STAGES
from interlingua.storage.locks import exclusive
from interlingua.storage.record import RecordError, read_record, write_record
from interlingua.training.config import LENGTHS, TrainConfig, config_differences, train_config_from
from interlingua.training.log import say
from interlingua.training.loop import run_training
from interlingua.training.result import TrainResult
from interlingua.training.run_folder import MAY_CHANGE
from interlingua.training.silver_pairs import SilverConfig, silver
from interlingua.training.validation import Evaluate

PRODUCTS = {"train": ("best", "model"), "silver": ("silver",)}
"""Results that later stages may take from a stage, by its kind."""
REFERENCE = re.compile(r"\{([\w-]+)\.(\w+)\}")
_STATE_FILE = "stages.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class StageConfig(CheckedSettings):
    """[[stage]]: a training run, or the making of silver pairs."""

    name: str
    """Its name in later stages, and its folder."""
    config: Path | None = None
    """The run's TOML file, relative to this file like all paths."""
    silver: SilverConfig | None = None
    """Pairs to be found and scored by models, in place of ``config``."""
    set: dict[str, Any] = field(default_factory=dict)
    """Keys of the run's file that have another value here: ``set.run.max_steps = 1000``."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.name):
            raise ConfigError(
                f"stage {self.name!r}: the name may contain only letters, digits, - and _;"
                " rename the stage"
            )
        if (self.config is None) == (self.silver is None):
            raise ConfigError(
                f"stage {self.name}: expected either config (the TOML file of a run) or silver;"
                " set one of them"
            )
        if self.silver is not None and self.set:
            raise ConfigError(
                f"stage {self.name}: set requires config, because it changes the keys of a run;"
                " remove set"
            )

    @property
    def kind(self) -> str:
        """The kind of stage: train, or silver."""
        if self.silver is None:
            return "train"
        return "silver"


@dataclass(frozen=True, kw_only=True, slots=True)
class StagesConfig(CheckedSettings):
    """A file of stages."""

    output: Path
    """Folder of all stages."""
    stage: tuple[StageConfig, ...]
    """Stages in the order in which they run."""
    set: dict[str, Any] = field(default_factory=dict)
    """Keys that have another value in every run."""

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stage]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"two stages have the name {twice}; use a different name for each")


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that is ready to run: all references are replaced by paths."""

    name: str
    run: TrainConfig | SilverConfig
    inputs: tuple[Path, ...]
    """Its inputs from earlier stages."""

    def mapping(self) -> dict[str, Any]:
        """Return the stage's configuration."""
        if isinstance(self.run, TrainConfig):
            return self.run.to_mapping()
        return to_mapping(self.run)

    def differences_from(self, earlier: Mapping[str, Any]) -> list[str]:
        """Return the keys in which the stage differs from an earlier configuration."""
        if isinstance(self.run, TrainConfig):
            # Reading and writing the earlier config adds the defaults of keys that it lacks.
            earlier = train_config_from(earlier).to_mapping()
        ignore = frozenset(f"run.{key}" for key in MAY_CHANGE)
        return config_differences(earlier, self.mapping(), ignore=ignore)


def is_staged(path: PathLike) -> bool:
    """Return whether a TOML file holds stages rather than one run."""
    return "stage" in load_toml(path)


def load_stages(path: PathLike, *, overrides: Sequence[str] = ()) -> tuple[Path, list[Stage]]:
    """Read a file of stages and the files of their runs.

    Args:
        path: the file.
        overrides: ``"section.key=value"`` changes every run, ``"STAGE.section.key=value"`` one
            stage, and ``"output=DIR"`` the folder.

    Returns:
        the folder, and the stages in order.

    Raises:
        ConfigError: a file has mistakes, or a stage refers to a result that no earlier stage has.
    """
    return stages_of_file(load_toml(path), path, overrides=overrides)


def stages_of_file(
    table: dict[str, Any], path: PathLike, *, overrides: Sequence[str] = ()
) -> tuple[Path, list[Stage]]:
    """Read the run files that are named in the table of a stages file; see ``load_stages``.

    Args:
        table: the result of ``load_toml``; the overrides are set in it.
        path: of the file, for messages.
        overrides: see ``load_stages``.
    """
    stages = {
        str(stage.get("name")): stage for stage in table.get("stage", []) if isinstance(stage, dict)
    }
    for override in overrides:
        first, _, rest = override.partition(".")
        if override.partition("=")[0].strip() == "output":
            apply_override(table, override)
        elif first.strip() in stages:
            # Keys of silver are in the stage's own table, those of its run's file in ``set``.
            changed = stages[first.strip()]
            if not rest.startswith("silver."):
                changed = changed.setdefault("set", {})
            apply_override(changed, rest)
        else:
            apply_override(table.setdefault("set", {}), override)
    config = from_mapping(StagesConfig, table, where=str(path))
    output = config.output.absolute()
    ready: list[Stage] = []
    # Filled as the stages are read: a reference can name an earlier stage only.
    kinds: dict[str, str] = {}
    for stage in config.stage:
        inputs: list[Path] = []
        where = f"{path}: stage {stage.name}"
        run: TrainConfig | SilverConfig
        if stage.silver is not None:
            table = _resolved(to_mapping(stage.silver), output, kinds, inputs, where)
            run = from_mapping(SilverConfig, table, where=where)
        else:
            assert stage.config is not None
            # In this order: the run's file, the settings for all runs, the settings for this run.
            table = _changed(load_toml(stage.config), config.set)
            table = _resolved(_changed(table, stage.set), output, kinds, inputs, where)
            table.setdefault("run", {})["output"] = str(output / stage.name)
            run = with_absolute_paths(train_config_from(table, where=f"{where}: {stage.config}"))
        ready.append(Stage(stage.name, run, tuple(inputs)))
        kinds[stage.name] = stage.kind
    return output, ready


def run_stages(
    output: Path,
    stages: Sequence[Stage],
    *,
    evaluator: Callable[[TrainConfig], Evaluate | None],
    resume: str = "auto",
    progress: bool = False,
) -> list[TrainResult]:
    """Run the stages that are not done yet; an interrupted one resumes where it stopped.

    Args:
        output: folder of all stages.
        stages: see ``load_stages``.
        evaluator: returns the evaluation function of a run.
        resume: "auto", or "never" to start all over.
        progress: whether to show progress on stderr.

    Returns:
        the results of the training runs of this call; an interrupted run is the last one.

    Raises:
        ConfigError: a stage was started with another config or with other inputs, or another run
            uses the folder.
    """
    if resume not in ("auto", "never"):
        raise ConfigError(
            f"--resume {resume}: stages always resume; use auto, or never to start over"
        )
    if not is_first_process():  # one process locks for all
        return _run_stages(output, stages, evaluator, resume, progress=False)
    with exclusive(output, remedy="set output to another folder"):
        return _run_stages(output, stages, evaluator, resume, progress=progress)


def _run_stages(
    output: Path,
    stages: Sequence[Stage],
    evaluator: Callable[[TrainConfig], Evaluate | None],
    resume: str,
    *,
    progress: bool,
) -> list[TrainResult]:
    main = is_first_process()
    record: dict[str, Any] = {}
    if resume == "auto":
        record = _read_record(output)
    # Checked before the first stage runs: a change of the last stage is reported now, not after
    # hours.
    _refuse_other_configs(output, stages, record)
    results: list[TrainResult] = []
    for number, stage in enumerate(stages, 1):
        before = record.get(stage.name)
        inputs = {str(path): _digest(path) for path in stage.inputs} if main else {}
        # A finished or started stage is no longer the same stage if one of its inputs has changed.
        if main and before is not None and before["inputs"] != inputs:
            changed = next(path for path in inputs if before["inputs"].get(path) != inputs[path])
            raise ConfigError(
                f"{output}: the input {changed} changed since stage {stage.name} began; start"
                " over with --resume never"
            )
        if before is not None and before["done"]:
            _refuse_changed(output / stage.name, before.get("products"))
            _tell(f"stage {number} of {len(stages)}: {stage.name} is done", show=progress)
            continue
        _tell(f"stage {number} of {len(stages)}: {stage.name}", show=progress)
        # Written before the work starts, so that a stopped stage is known to have started.
        if main:
            record[stage.name] = {"requested": stage.mapping(), "inputs": inputs, "done": False}
            _write_record(output, record)
        if isinstance(stage.run, TrainConfig):
            results.append(
                run_training(
                    stage.run, evaluate=evaluator(stage.run), resume=resume, progress=progress
                )
            )
            if results[-1].interrupted:
                break  # later stages would start from a model that is not there
        elif main:
            report = silver(stage.run, output / stage.name)
            _tell(f"{report.pairs:,} silver pairs of {report.sentences:,} sentences", show=progress)
        if main:
            record[stage.name] |= {"done": True, "products": _products(output / stage.name)}
            _write_record(output, record)
    return results


def _refuse_other_configs(output: Path, stages: Sequence[Stage], record: Mapping[str, Any]) -> None:
    for stage in stages:
        if stage.name not in record:
            continue
        changes = stage.differences_from(record[stage.name]["requested"])
        if changes:
            raise ConfigError(
                f"{output}: stage {stage.name} began with another config:"
                f" {', '.join(changes[:3])} (then, now); set output to another folder, or start"
                " over with --resume never"
            )


def _products(folder: Path) -> dict[str, str]:
    """Return the digests of the files that a finished stage wrote."""
    names = ("best", "model", "silver.tsv", "manifest.json")
    return {name: _digest(folder / name) for name in names if (folder / name).exists()}


def _refuse_changed(folder: Path, products: Any) -> None:
    """Refuse a finished stage that has changed since it was finished.

    Raises:
        CheckpointError: a file of it was changed or removed.
    """
    if not is_first_process():  # one process checks for all processes
        return
    now = _products(folder)
    if now != products:
        then = products if isinstance(products, dict) else {}
        name = min(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
        raise CheckpointError(
            f"{folder / name}: changed or removed since the stage finished; start over with"
            " --resume never"
        )


def _changed(table: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables with some keys set.

    A new length of the run replaces the old one, and a model replaces a preset.
    """
    table = copy.deepcopy(table)
    if "path" in changes and "preset" in table:
        # [encoder] of a model has none of the sizes that a preset may have.
        table = {key: value for key, value in table.items() if key == "pooling"}
    for key, value in changes.items():
        old = table.get(key)
        if isinstance(value, Mapping) and isinstance(old, dict):
            value = _changed(old, value)
        table[key] = value
    if any(key in changes for key in LENGTHS):
        replaced = [key for key in LENGTHS if key not in changes]
        table = {key: value for key, value in table.items() if key not in replaced}
    return table


def _resolved(
    value: Any, output: Path, kinds: Mapping[str, str], inputs: list[Path], where: str
) -> Any:
    """Return the same value with paths in place of references, and collect the paths."""
    if isinstance(value, Mapping):
        return {key: _resolved(part, output, kinds, inputs, where) for key, part in value.items()}
    if isinstance(value, list):
        return [_resolved(part, output, kinds, inputs, where) for part in value]
    if not isinstance(value, str) or (match := REFERENCE.fullmatch(value)) is None:
        return value
    stage, product = match.groups()
    # The path is known before the named stage has run; whether it exists is checked when the
    # stage that uses it starts.
    if stage not in kinds:
        raise ConfigError(
            f"{where}: {value} does not name an earlier stage{did_you_mean(stage, list(kinds))}"
        )
    if product not in PRODUCTS[kinds[stage]]:
        offered = ", ".join(f"{{{stage}.{name}}}" for name in PRODUCTS[kinds[stage]])
        raise ConfigError(f"{where}: unknown output of a stage {value}; use one of: {offered}")
    files = {"silver": "silver.tsv"}  # the other products are folders of the same name
    path = output / stage / files.get(product, product)
    inputs.append(path)
    return str(path)


def _digest(path: Path) -> str:
    if not path.exists():
        raise CheckpointError(
            f"{path}: file not found, although an earlier stage wrote it; start over with"
            " --resume never"
        )
    if path.is_dir():
        return sha256_tree(path)
    return sha256_file(path)


def _read_record(output: Path) -> dict[str, Any]:
    path = output / _STATE_FILE
    try:
        record = read_record(path, STAGES).get("stages")
    except RecordError as error:
        if error.is_missing:
            return {}
        raise CheckpointError(str(error)) from error
    # The checksum does not authenticate the writer of the record.
    if not isinstance(record, dict):
        raise CheckpointError(f"{path}: is damaged or incomplete (no stages); {STAGES.remedy}")
    unknown = [
        name
        for name, stage in record.items()
        if not isinstance(stage, dict) or "requested" not in stage
    ]
    if unknown:
        raise CheckpointError(
            f"{path}: is damaged or incomplete (stage {unknown[0]} has no requested config);"
            " start over with --resume never"
        )
    return record


def _write_record(output: Path, record: Mapping[str, Any]) -> None:
    write_record(output / _STATE_FILE, STAGES, {"stages": record})


def _tell(text: str, *, show: bool) -> None:
    if show:
        say(text)
