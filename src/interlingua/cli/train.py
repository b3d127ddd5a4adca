"""``interlingua train CONFIG``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlingua.cli.train_help import EPILOG as EPILOG
from interlingua.cli.train_help import ConfigFile, Init
from interlingua.errors import InterlinguaError

if TYPE_CHECKING:
    from interlingua.train.data_config import DataConfig
    from interlingua.train.result import TrainResult
    from interlingua.train.validation import Evaluate


def train(
    config: ConfigFile = None,
    init: Init = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key: --set run.max_steps=500.", metavar="KEY=VALUE")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the run, for run.output.")] = None,
    resume: Annotated[
        str,
        typer.Option(help="auto: go on from the newest whole checkpoint; never: start over; or a checkpoint's folder."),
    ] = "auto",
    devices: Annotated[
        int | None, typer.Option(help="Processes, one per GPU or per group of cores, for run.devices.", min=1)
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="ddp: each process has all weights; fsdp: a share. For run.strategy.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary; warnings still show.")] = False,
) -> None:
    """Trains, saves checkpoints on the way, and writes RUN/model and RUN/best; or runs all stages of a file."""
    if init is not None:
        _write_template(init, config or Path("train.toml"))
        return
    if config is None:
        raise InterlinguaError("name a TOML file; --init ems, mexma or finetune writes one to begin with")
    from interlingua.train.config import load_train_config
    from interlingua.train.log import is_first_process
    from interlingua.train.loop import train as run
    from interlingua.train.stages import is_staged, load_stages, run_stages

    chosen = [
        f"run.{key}={value}" for key, value in (("devices", devices), ("strategy", strategy)) if value is not None
    ]
    given = [*(set_ or []), *chosen]
    if is_staged(config):
        overrides = [*given, *([] if output is None else [f"output={output}"])]
        folder, stages = load_stages(config, overrides=overrides)
        results = run_stages(
            folder, stages, evaluator=lambda run: _evaluator(run.data), resume=resume, progress=not quiet
        )
        again = " ".join(["interlingua train", *map(shlex.quote, [str(config), *_options(given, output)])])
    else:
        overrides = [*given, *([] if output is None else [f"run.output={output}"])]
        settings = load_train_config(config, overrides=overrides)
        results = [run(settings, evaluate=_evaluator(settings.data), resume=resume, progress=not quiet)]
        again = f"interlingua train {shlex.quote(str(results[0].run / 'config.toml'))}"
    for result in results:
        if result.interrupted:
            raise InterlinguaError(
                f"stopped after step {result.step} of {result.max_steps}, which is saved; go on with: {again}"
            )
        if not quiet and is_first_process():
            for line in _summary(result):
                print(line)


def _write_template(recipe: str, path: Path) -> None:
    from interlingua.files import atomic_write
    from interlingua.train.template import template

    text = template(recipe)
    if path.exists():
        raise InterlinguaError(f"{path}: there already; name another file, or remove it")
    with atomic_write(path) as file:
        file.write(text)
    print(f"written: {path}; set data.corpus and encoder in it, then: interlingua train {shlex.quote(str(path))}")


def _options(given: list[str], output: Path | None) -> Iterator[str]:
    for override in given:
        yield from ("--set", override)
    if output is not None:
        yield from ("--output", str(output))


def _evaluator(data: DataConfig) -> Evaluate | None:
    """Retrieval on the corpus's validation texts and similarity on scored pairs, where there are any."""
    from interlingua.corpus.evaluation_sets import pair_files
    from interlingua.corpus.manifest import prompt_of
    from interlingua.evaluation.validation import Evaluator, similarity_evaluator, validation_evaluator

    folder = data.corpus / "valid_text" if data.corpus is not None else None
    scored = data.labelled.valid if data.labelled is not None and data.labelled.kind == "sts" else ()
    evaluators: list[Evaluator] = []
    if folder is not None and folder.is_dir() and pair_files(folder):
        evaluators.append(validation_evaluator(folder, prompt=prompt_of(folder.parent)))
    if paths := data.similarity or scored:
        languages = data.labelled.languages if data.labelled is not None else ("eng_Latn", "eng_Latn")
        evaluators.append(similarity_evaluator(paths, languages=languages))
    if not evaluators:
        return None
    return Evaluator(
        lambda model, step: {name: value for own in evaluators for name, value in own(model, step).items()},
        tuple(name for own in evaluators for name in own.names),
    )


def _summary(result: TrainResult) -> Iterator[str]:
    from interlingua.encoder.pair_scorer import HEAD_FILE
    from interlingua.train.exposure import exposure_lines

    if result.already:
        yield (
            f"{result.run}: finished before, nothing was trained now; to start over: --resume never, to train on:"
            " another run.output and a larger run.max_steps"
        )
    yield from exposure_lines(result.exposure, result.available)
    yield (
        f"{result.step:,} steps, {result.pairs_per_second:,.0f} pairs/s, {result.tokens_per_second:,.0f} tokens/s,"
        f" peak memory {result.peak_rss_bytes / 2**30:.2f} GiB"
    )
    if result.best is not None:
        yield f"best:  {result.best} ({result.best_when}, {result.best_metric:.4g})"
    yield f"model: {result.model}"
    model = result.best or result.model
    if model is not None and (model / HEAD_FILE).is_file():
        yield f'next:  let it score silver pairs, in a file of stages: silver.cross_encoder = "{model}"'
    else:
        suite = "retrieval" if "questions" in result.exposure else "tatoeba,xsim"
        yield f"next:  interlingua evaluate {shlex.quote(str(model))} --suite {suite} --data DIR"
