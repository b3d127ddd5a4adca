"""``interlingua evaluate MODEL --suite tatoeba,xsim --data DIR``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlingua.cli.common import bar, resumable, split
from interlingua.cli.sides import MAX_LINE, MaxLine

if TYPE_CHECKING:
    from interlingua.evaluation.task import TaskResult

Text = str | None


Suite = Annotated[
    str,
    typer.Option(
        help="Tasks, with commas: tatoeba, xsim, mteb:STS17; sts, bucc and retrieval stand for several, standard for "
        "tatoeba, xsim and mixed_pool."
    ),
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
    list[str] | None,
    typer.Option("--set", help="TASK.OPTION=VALUE or BACKEND.OPTION=VALUE: stsb.split=dev, openai.dimensions=256."),
]
Model = Annotated[
    str,
    typer.Argument(help="Model directory, hf:owner/name, module:function, folder of vectors, or an endpoint's model."),
]
Backend = Annotated[str, typer.Option(help="interlingua, sentence-transformers, onnx, openai, vectors or function.")]
Cache = Annotated[
    Path | None,
    typer.Option(help="Folder that keeps all vectors for further runs of this model.", envvar="INTERLINGUA_CACHE"),
]
Shard = Annotated[
    Text, typer.Option(help="Embed the second of eight parts of the passages, 2/8, and score nothing. Needs --cache.")
]
QueryPrompt = Annotated[Text, typer.Option(help="Before questions of a search; the model's own by default.")]


def evaluate(
    model: Model,
    suite: Suite = "standard",
    data: Data = None,
    languages: Languages = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Gets results/MODEL/REVISION/TASK.json.")] = Path(),
    set: Settings = None,
    prompt: Annotated[Text, typer.Option(help="Name of a prompt of the model, or text put before every input.")] = None,
    query_prompt: QueryPrompt = None,
    passage_prompt: Annotated[Text, typer.Option(help="Before passages; the model's own by default.")] = None,
    pooling: Annotated[Text, typer.Option(help="cls, mean or max instead of the model's own.")] = None,
    dtype: Annotated[Text, typer.Option(help="To compute in: float32 by default, bfloat16, float16, int8.")] = None,
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; a GPU where there is one by default.")] = None,
    dim: Annotated[int | None, typer.Option(help="Keep so many elements of each vector, the first.", min=1)] = None,
    backend: Backend = "interlingua",
    name: Annotated[Text, typer.Option(help="The model's name in results; its directory's by default.")] = None,
    compare: Annotated[str, typer.Option(help="index, or text to count duplicates as right.")] = "index",
    batch_tokens: Annotated[int, typer.Option(help="Tokens per batch.", min=1)] = 16_384,
    cache: Cache = None,
    budget: Annotated[Text, typer.Option(help="Embed no longer than 90s, 10m or 2h; the rest is left out.")] = None,
    shard: Shard = None,
    check: Annotated[bool, typer.Option(help="Try pooling, prompt and scale first, and warn.")] = True,
    max_line: MaxLine = MAX_LINE,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the tables.")] = False,
) -> None:
    """Runs the tasks, prints their tables and writes their result files."""
    from interlingua.errors import DataError
    from interlingua.evaluation.budget import Budget
    from interlingua.evaluation.encoders import backend_settings, load_encoder
    from interlingua.evaluation.suite import build_tasks
    from interlingua.evaluation.suite import evaluate as run

    if data is None:
        raise DataError("no data: give --data DIR or set INTERLINGUA_DATA")
    data = data.expanduser()
    wanted = split(languages) if languages else None
    of_backend, of_tasks = backend_settings(set or (), backend)
    # slips in the tasks show before the model is loaded
    tasks = build_tasks(split(suite), languages=wanted, compare=compare, settings=of_tasks, data=data)
    limit = Budget.parse(budget) if budget else None
    choices: Any = {"backend": backend, "name": name, "pooling": pooling, "dtype": dtype, "device": device, "dim": dim}
    encoder, info = load_encoder(model, **choices, options=of_backend)
    roles = {"query": query_prompt, "passage": passage_prompt}
    how: Any = {"prompt": prompt, "role_prompts": {role: text for role, text in roles.items() if text is not None}}
    with bar(quiet) as progress, resumable(info.identity is not None, output, cache):
        how |= {"batch_tokens": batch_tokens, "output": output, "cache": cache, "budget": limit, "check": check}
        how |= {"shard": shard}
        found = run(encoder, tasks, data, **how, model=info, progress=progress)
    if shard is not None:
        print(f"shard {shard} is done; when all are, run the command without --shard to score them")
    _show(found, output, limit.report if limit else None)


def _show(found: Sequence[TaskResult], output: Path, left_out: str | None) -> None:
    from rich.console import Console

    from interlingua.evaluation import report, results

    width = None if os.isatty(1) else 160
    for result in found:
        for table in report.terminal_tables(result):
            Console(width=width).print(table)
        for note in result.notes:
            print(f"note: {note}")
        print(f"written: {results.result_path(result, output)}")
    for said in (report.cut_texts(found), left_out):
        if said:
            print(said, file=sys.stderr)
