"""``interlingua evaluate MODEL --suite tatoeba,xsim --data DIR``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

Text = str | None


Suite = Annotated[
    str, typer.Option(help="Tasks, with commas: tatoeba, xsim, flores_p_at_1; sts and retrieval stand for several.")
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder with tatoeba_laser/, sts17/ ..., a data set's own folder, or a prepared corpus.",
        envvar="INTERLINGUA_DATA",
    ),
]
Languages = Annotated[
    Text, typer.Option(help="Languages in any code, pairs (de-fr), or groups (muse, xtreme, mexma), with commas.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="TASK.OPTION=VALUE: stsb.split=dev, retrieval.bm25=true.")
]
QueryPrompt = Annotated[Text, typer.Option(help="Before questions of a search; the model's own by default.")]


def evaluate(
    model: Annotated[str, typer.Argument(help="Model directory or hub id, or module:function.")],
    suite: Suite = "tatoeba,xsim",
    data: Data = None,
    languages: Languages = None,
    output: Annotated[Path, typer.Option(help="Gets results/MODEL/REVISION/TASK.json.")] = Path(),
    set: Settings = None,
    prompt: Annotated[Text, typer.Option(help="Text put before every input, e.g. 'query: '.")] = None,
    query_prompt: QueryPrompt = None,
    passage_prompt: Annotated[Text, typer.Option(help="Before passages; the model's own by default.")] = None,
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
    data = data.expanduser()
    wanted = _split(languages) if languages else None
    # slips in the tasks show before the model is loaded
    tasks = build_tasks(_split(suite), languages=wanted, compare=compare, settings=set or (), data=data)
    choices: Any = {"backend": backend, "name": name, "pooling": pooling, "dtype": dtype, "device": device}
    encoder, info = load_encoder(model, **choices)
    roles: Any = {"query": query_prompt, "passage": passage_prompt}
    with _bar(quiet) as progress, _resumable(info.digest is not None, output):
        found = run(
            encoder,
            tasks,
            data,
            prompt=prompt,
            role_prompts={role: text for role, text in roles.items() if text is not None},
            batch_tokens=batch_tokens,
            output=output,
            model=info,
            progress=progress,
        )
    width = None if os.isatty(1) else 160
    for result in found:
        for table in report.terminal_tables(result):
            Console(width=width).print(table)
        for note in result.notes:
            print(f"note: {note}")
        print(f"written: {results.result_path(result, output)}")
    if cut := report.cut_texts(found):
        print(cut, file=sys.stderr)


def _split(names: str) -> list[str]:
    return [part.strip() for part in names.split(",") if part.strip()]


@contextlib.contextmanager
def _resumable(keeps: bool, output: Path) -> Iterator[None]:
    """Ctrl-C in one line, where vectors are kept."""
    from interlingua.errors import InterlinguaError

    try:
        yield
    except KeyboardInterrupt:
        if not keeps:  # nobody can tell whether a function is still the same
            raise
        raise InterlinguaError(
            f"stopped; the vectors so far are kept below {output / 'results'}, so the same command goes on from there"
        ) from None


@contextlib.contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on standard error with the time left for the whole suite."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    an_hour = 3600.0  # a language may take minutes: the speed is that of all so far
    with Progress(*columns, console=Console(stderr=True), disable=quiet, speed_estimate_period=an_hour) as bar:
        task = bar.add_task("", total=None)
        yield lambda label, done, total: bar.update(task, description=label, completed=done, total=total)
