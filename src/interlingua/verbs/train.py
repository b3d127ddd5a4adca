"""``interlingua.train`` and ``interlingua train``: an encoder from a config, or several stages."""

from __future__ import annotations

import dataclasses
import os
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from interlingua.config import AtLeast, load_toml, with_absolute_paths
from interlingua.config.options import INPUT, Options, argument, function_of, option
from interlingua.errors import ConfigError, InterlinguaError
from interlingua.runtime.processes import others_run
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_training
from interlingua.verbs.parts.shared_options import as_path, output_option, overridden

if TYPE_CHECKING:
    from interlingua.training.config import TrainConfig
    from interlingua.training.feeds.data_config import DataConfig
    from interlingua.training.result import TrainResult
    from interlingua.training.validation import Evaluate


class Trained(list["TrainResult"]):
    """The results of a run, or of the stages of a file that were run now.

    Args:
        results: one result for each run.
        again: the command line that resumes the stopped run.
        template: the config that was written, if no run was started.
    """

    def __init__(
        self, results: Iterable[TrainResult] = (), *, again: str = "", template: Path | None = None
    ) -> None:
        super().__init__(results)
        self.again = again
        self.template = template


@dataclass(frozen=True)
class TrainOptions(Options):
    """Options of ``train``."""

    config: PathLike | Mapping[str, Any] | TrainConfig | None = argument(
        "TOML file, or config.toml of a run to resume or repeat; --init writes a file to start"
        " from.",
        None,
        kind=Path,
    )
    init: str | None = option(
        None,
        "Write CONFIG with comments and stop: ems (train from scratch), mexma (train from a"
        " language model) or finetune (train a sentence encoder on your pairs).",
        group=INPUT,
    )
    settings: Sequence[str] | None = option(
        None,
        "Override a key of the file: --set run.max_steps=500; repeatable.",
        group=INPUT,
        flags=("--set",),
        metavar="KEY=VALUE",
    )
    output: PathLike | None = output_option("Folder of the run, in place of run.output.")
    resume: PathLike = option(
        "auto",
        "auto: resume from the newest complete checkpoint; never: start from the beginning; or"
        " the folder of a checkpoint.",
    )
    # Keys of [run] that change from machine to machine.
    devices: Annotated[int, AtLeast(1)] | None = option(
        None, "Number of processes, one per GPU or per group of cores, in place of run.devices."
    )
    strategy: str | None = option(
        None,
        "ddp: each process holds all weights; fsdp: the weights are divided among the"
        " processes. In place of run.strategy.",
    )


def run_train(options: TrainOptions, progress: bool = False) -> Trained:
    """Train an encoder, save checkpoints on the way, and write RUN/model and RUN/best.

    The config is a TOML file, a mapping of the same keys, or a ``TrainConfig``. A file may hold
    several stages.

    Args:
        options: of the verb.
        progress: show progress on standard error.

    Returns:
        The results, one for each run.

    Raises:
        ConfigError: settings contradict each other, or the folder holds another run.
        DataError: the corpus can't be read.
        CheckpointError: a checkpoint can't be read or written.
    """
    # --init only writes a config; nothing is trained.
    if options.init is not None:
        return Trained(template=_write_template(options.init, options.config))
    if options.config is None:
        raise InterlinguaError(
            "expected a TOML file; in Python: interlingua.train(config), or"
            " interlingua.train(init='finetune') to create one; on the command line: interlingua"
            " train FILE, or interlingua train --init finetune (or ems, mexma)"
        )
    overrides = _overrides(options)
    table: dict[str, Any] = {}
    if isinstance(options.config, str | os.PathLike):
        table = load_toml(options.config)
        check_training(overridden(table, overrides), options.config)
    from interlingua.training.loop import run_training
    from interlingua.training.stages import run_stages, stages_of_file

    resume = os.fspath(options.resume)
    if isinstance(options.config, str | os.PathLike) and "stage" in table:
        # All stages share a folder, which contains a folder for each run.
        folder, stages = stages_of_file(
            table, options.config, overrides=[*overrides, *_output(options, "output")]
        )
        words = [str(options.config), *_flags(overrides, options.output)]
        with others_run(["train", *words, "--resume", resume]):
            results = run_stages(
                folder,
                stages,
                evaluator=lambda run: _evaluator(run.data),
                resume=resume,
                progress=progress,
            )
        return Trained(results, again=" ".join(["interlingua train", *map(shlex.quote, words)]))
    settings = _config(options, table, [*overrides, *_output(options, "run.output")])
    with tempfile.TemporaryDirectory(prefix="interlingua-train-") as temporary:
        # A file for further processes, which may have another working directory.
        file = Path(temporary, "train.toml")
        file.write_text(with_absolute_paths(settings).to_toml(), encoding="utf-8")
        with others_run(["train", str(file), "--resume", resume]):
            result = run_training(
                settings, evaluate=_evaluator(settings.data), resume=resume, progress=progress
            )
    # The run's own config has all overrides in it.
    again = f"interlingua train {shlex.quote(str(result.run / 'config.toml'))}"
    return Trained([result], again=again)


def _overrides(options: TrainOptions) -> list[str]:
    """Return the keys that the options set, as ``section.key=value``."""
    overrides = list(options.settings or ())
    for key in ("devices", "strategy"):
        if getattr(options, key) is not None:
            overrides.append(f"run.{key}={getattr(options, key)}")
    return overrides


def _config(options: TrainOptions, table: dict[str, Any], overrides: list[str]) -> TrainConfig:
    from interlingua.training.config import TrainConfig, train_config_from, train_config_of_file

    config: Any = options.config
    if isinstance(config, str | os.PathLike):
        return train_config_of_file(table, config, overrides=overrides)
    if isinstance(config, TrainConfig):
        if options.settings:
            raise ConfigError(
                "settings can change a file or a mapping, not a TrainConfig; use"
                " dataclasses.replace"
            )
        choices: dict[str, Any] = {
            "devices": options.devices,
            "strategy": options.strategy,
            "output": as_path(options.output),
        }
        changes = {key: value for key, value in choices.items() if value is not None}
        return dataclasses.replace(config, run=dataclasses.replace(config.run, **changes))
    return train_config_from(overridden(config, overrides))


def _output(options: TrainOptions, key: str) -> list[str]:
    """Return the override that --output represents, if it is set."""
    if options.output is None:
        return []
    return [f"{key}={options.output}"]


def _write_template(recipe: str, config: Any) -> Path:
    from interlingua.storage.files import atomic_write
    from interlingua.training.template import template

    path = Path(config or "train.toml")
    text = template(recipe)
    if path.exists():
        raise InterlinguaError(f"{path}: already exists; use another path, or delete the file")
    with atomic_write(path) as file:
        file.write(text)
    return path


def _flags(overrides: list[str], output: PathLike | None) -> Iterator[str]:
    for override in overrides:
        yield from ("--set", override)
    if output is not None:
        yield from ("--output", str(output))


def _evaluator(data: DataConfig) -> Evaluate | None:
    """Return the function that validates a run.

    It measures retrieval on the corpus's validation texts and similarity on scored pairs, if there
    are any.
    """
    from interlingua.corpus.formats.evaluation_sets import pair_files
    from interlingua.corpus.manifest import prompt_of
    from interlingua.evaluation.validation import (
        Evaluator,
        similarity_evaluator,
        validation_evaluator,
    )

    evaluators: list[Evaluator] = []
    if data.corpus is not None:
        folder = data.corpus / "valid_text"
        if folder.is_dir() and pair_files(folder):
            # The validation texts need the prompt with which the stored training texts start.
            evaluators.append(validation_evaluator(folder, prompt=prompt_of(data.corpus)))
    paths = data.similarity
    languages = ("eng_Latn", "eng_Latn")
    if data.labeled is not None:
        languages = data.labeled.languages
        if data.labeled.kind == "sts":
            paths = paths or data.labeled.valid
    if paths:
        evaluators.append(similarity_evaluator(paths, languages=languages))
    if not evaluators:
        return None

    def evaluate(model: Any, step: int) -> dict[str, float]:
        values: dict[str, float] = {}
        for own in evaluators:
            values |= own(model, step)
        return values

    return Evaluator(evaluate, tuple(name for own in evaluators for name in own.names))


train = function_of(TrainOptions, run_train, "train")
