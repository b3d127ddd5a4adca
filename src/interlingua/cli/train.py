"""``interlingua train CONFIG``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from interlingua.train.result import TrainResult
    from interlingua.train.validation import Evaluate


def train(
    config: Annotated[Path, typer.Argument(help="TOML file, or config.toml of a run to go on with or repeat.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key: --set run.max_steps=500.", metavar="KEY=VALUE")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the run, for run.output.")] = None,
    resume: Annotated[
        str,
        typer.Option(help="auto: go on from the newest whole checkpoint; never: start over; or a checkpoint's folder."),
    ] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary; warnings still show.")] = False,
) -> None:
    """Trains, saves checkpoints on the way, and writes RUN/model and RUN/best."""
    from interlingua.errors import InterlinguaError
    from interlingua.train.config import load_train_config
    from interlingua.train.loop import train as run

    overrides = [*(set_ or []), *([] if output is None else [f"run.output={output}"])]
    settings = load_train_config(config, overrides=overrides)
    result = run(settings, evaluate=_evaluator(settings.data.corpus), resume=resume, progress=not quiet)
    if result.interrupted:
        raise InterlinguaError(
            f"stopped after step {result.step} of {result.max_steps}, which is saved; go on with:"
            f" interlingua train {shlex.quote(str(result.run / 'config.toml'))}"
        )
    if not quiet and int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))) == 0:
        for line in _summary(result):
            print(line)


def _evaluator(corpus: Path | None) -> Evaluate | None:
    """Retrieval on the corpus's validation texts, where it has any."""
    from interlingua.corpus.evaluation_sets import pair_files
    from interlingua.evaluation.validation import validation_evaluator

    folder = corpus / "valid_text" if corpus is not None else None
    return validation_evaluator(folder) if folder is not None and folder.is_dir() and pair_files(folder) else None


def _summary(result: TrainResult) -> Iterator[str]:
    seen = ", ".join(f"{pair} {count:,}" for pair, count in sorted(result.exposure.items(), key=lambda item: -item[1]))
    yield f"pairs seen: {seen}"
    yield (
        f"{result.step:,} steps, {result.pairs_per_second:,.0f} pairs/s, {result.tokens_per_second:,.0f} tokens/s,"
        f" peak memory {result.peak_rss_bytes / 2**30:.2f} GiB"
    )
    if result.best is not None:
        yield f"best:  {result.best} (step {result.best_step}, {result.best_metric:.4g})"
    yield f"model: {result.model}"
    yield f"next:  interlingua evaluate {shlex.quote(str(result.best or result.model))} --suite tatoeba,xsim --data DIR"
