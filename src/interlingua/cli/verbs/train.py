"""``interlingua train CONFIG``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlingua.cli.options import make_command
from interlingua.cli.train_help import EPILOG as EPILOG
from interlingua.errors import InterlinguaError
from interlingua.verbs.train import TrainOptions, run_train

if TYPE_CHECKING:
    from interlingua.training.result import TrainResult


@make_command(
    TrainOptions, quiet="Show neither progress nor the summary; warnings are still shown."
)
def train(options: TrainOptions, quiet: bool) -> None:
    """Train, save checkpoints on the way, and write RUN/model and RUN/best.

    If the config is a file of stages, all stages are run.
    """
    trained = run_train(options, progress=not quiet)
    if trained.template is not None:
        then = f"interlingua train {shlex.quote(str(trained.template))}"
        print(f"written: {trained.template}; set data.corpus and encoder in it, then run: {then}")
        return
    from interlingua.runtime.processes import is_first_process

    for result in trained:
        if result.interrupted:
            raise InterlinguaError(
                f"stopped after step {result.step} of {result.max_steps}, which is saved; to"
                f" resume, run: {trained.again}"
            )
        if not quiet and is_first_process():  # every process of a run has the result
            for line in _summary(result):
                print(line)


def _summary(result: TrainResult) -> Iterator[str]:
    from interlingua.encoder.pair_scorer import HEAD_FILE
    from interlingua.training.exposure import exposure_lines
    from interlingua.training.log import format_metric

    if result.already:
        yield (
            f"{result.run}: already complete, nothing was trained; to start again, pass --resume"
            " never; to train longer, set another run.output and a larger run.max_steps"
        )
    yield from exposure_lines(result.exposure, result.available)
    yield (
        f"{result.step:,} steps, {result.pairs_per_second:,.0f} pairs/s,"
        f" {result.tokens_per_second:,.0f} tokens/s, peak memory"
        f" {result.peak_rss_bytes / 2**30:.2f} GiB"
    )
    if result.best is not None and result.best_metric is not None:
        name = result.best_metric_name or ""
        value = format_metric(name, result.best_metric)
        yield f"best:  {result.best} ({result.best_when}, {name} {value})"
    yield f"model: {result.model}"
    model = result.best or result.model
    # A model that scores pairs has a head, and gives no vectors to evaluate.
    if model is not None and (model / HEAD_FILE).is_file():
        yield (
            f'next:  use it to score silver pairs: set silver.cross_encoder = "{model}" in a file'
            " of stages"
        )
    else:
        suite = "tatoeba,xsim"
        if "questions" in result.exposure:
            suite = "retrieval"
        yield f"next:  interlingua evaluate {shlex.quote(str(model))} --suite {suite} --data DIR"
