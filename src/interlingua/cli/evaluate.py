"""``interlingua evaluate MODEL --suite tatoeba,xsim --data DIR``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

Text = str | None


def evaluate(
    model: Annotated[str, typer.Argument(help="Model directory or hub id, or module:function.")],
    suite: Annotated[str, typer.Option(help="Tasks, with commas: tatoeba,xsim.")] = "tatoeba,xsim",
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with tatoeba_laser/ and flores200_devtest/, a data set's own folder, or a prepared corpus.",
            envvar="INTERLINGUA_DATA",
        ),
    ] = None,
    languages: Annotated[
        Text, typer.Option(help="Languages in any code, or groups (muse, xtreme, ems, laser, mexma), with commas.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Gets results/MODEL/REVISION/TASK.json.")] = Path(),
    prompt: Annotated[Text, typer.Option(help="Text put before every input, e.g. 'query: '.")] = None,
    pooling: Annotated[Text, typer.Option(help="cls, mean or max instead of the model's own.")] = None,
    dtype: Annotated[Text, typer.Option(help="float32, bfloat16 or float16 to compute in; float32 by default.")] = None,
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; a GPU where there is one by default.")] = None,
    backend: Annotated[str, typer.Option(help="interlingua, sentence-transformers or function.")] = "interlingua",
    name: Annotated[Text, typer.Option(help="The model's name in results; its directory's by default.")] = None,
    compare: Annotated[str, typer.Option(help="index, or text to count duplicates as right.")] = "index",
    batch_tokens: Annotated[int, typer.Option(help="Tokens per batch.", min=1)] = 16_384,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the tables.")] = False,
) -> None:
    """Runs the tasks, prints their tables and writes their result files."""
    from rich.console import Console

    from interlingua.errors import DataError
    from interlingua.evaluation import report, results
    from interlingua.evaluation.encoders import load_encoder
    from interlingua.evaluation.suite import build_tasks
    from interlingua.evaluation.suite import evaluate as run

    if data is None:
        raise DataError("no data: give --data DIR or set INTERLINGUA_DATA")
    # slips in the tasks show before the model is loaded
    tasks = build_tasks(_split(suite), languages=_split(languages) if languages else None, compare=compare)
    choices: Any = {"backend": backend, "name": name, "pooling": pooling, "dtype": dtype, "device": device}
    encoder, info = load_encoder(model, **choices)
    with _bar(quiet) as progress:
        found = run(
            encoder,
            tasks,
            data.expanduser(),
            prompt=prompt,
            batch_tokens=batch_tokens,
            output=output,
            model=info,
            progress=progress,
        )
    width = None if os.isatty(1) else 160
    for result in found:
        for table in report.terminal_tables(result):
            Console(width=width).print(table)
        print(f"written: {results.result_path(result, output)}")


def _split(names: str) -> list[str]:
    return [part.strip() for part in names.split(",") if part.strip()]


@contextlib.contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on standard error, one line per task."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("", total=None)
        yield lambda label, done, total: bar.update(task, description=label, completed=done, total=total)
