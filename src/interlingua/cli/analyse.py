"""``interlingua analyse MODEL [MODEL2] --data DIR -o DIR``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from interlingua.cli.common import bar, resumable, split
from interlingua.cli.evaluate import Backend, Cache, Data, Model

Text = str | None


def analyse(
    model: Model,
    other: Annotated[
        Text,
        typer.Argument(help="A second model, to be compared with the first: before and after.", metavar="MODEL2"),
    ] = None,
    data: Data = None,
    only: Annotated[
        Text,
        typer.Option(
            help="Analyses, with commas: agnosticism, token_matching, attention_entropy, word_order, uniform_pooling; "
            "all but the last by default."
        ),
    ] = None,
    languages: Annotated[
        Text, typer.Option(help="Languages in any code, or groups (muse, low_resource, mexma), with commas.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Gets the page, and results/MODEL/REVISION/ANALYSIS.analysis.json.")
    ] = Path(),
    set: Annotated[
        list[str] | None, typer.Option("--set", help="ANALYSIS.OPTION=VALUE: agnosticism.k=5, token_matching.seed=2.")
    ] = None,
    prompt: Annotated[Text, typer.Option(help="Name of a prompt of the model, or text put before every input.")] = None,
    pooling: Annotated[Text, typer.Option(help="cls, mean or max instead of the model's own.")] = None,
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; a GPU where there is one by default.")] = None,
    backend: Backend = "interlingua",
    cache: Cache = None,
    name: Annotated[Text, typer.Option(help="Names in files and tables, with a comma for two models.")] = None,
    batch_tokens: Annotated[int, typer.Option(help="Tokens per batch.", min=1)] = 16_384,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the tables.")] = False,
) -> None:
    """Says why an encoder is as good as it is: tables, JSON files and one page."""
    from interlingua.analysis.run import analyse as run
    from interlingua.analysis.run import build_analyses
    from interlingua.errors import ConfigError, DataError
    from interlingua.evaluation.encoders import backend_settings, load_encoder

    if data is None:
        raise DataError("no data: give --data DIR or set INTERLINGUA_DATA")
    models = [model] if other is None else [model, other]
    names: list[Any] = split(name) if name else [None] * len(models)
    if len(names) != len(models):
        raise ConfigError(f"--name gives {len(names)} names for {len(models)} models; separate them with a comma")
    options, settings = backend_settings(set or (), backend)
    # slips show before a model is loaded
    wanted = split(only) if only else None
    analyses = build_analyses(wanted, languages=split(languages) if languages else None, settings=settings)
    how: Any = {"prompt": prompt, "batch_tokens": batch_tokens, "output": output, "cache": cache}
    found = []
    for path, called in zip(models, names, strict=True):
        choices: Any = {"backend": backend, "name": called, "pooling": pooling, "device": device, "options": options}
        encoder, info = load_encoder(path, **choices)
        with bar(quiet) as progress, resumable(info.identity is not None, output, cache):
            how |= {"model": info, "skip_unfit": wanted is None, "progress": progress}
            found.append(run(encoder, analyses, data.expanduser(), **how))
    _show(found, output, wanted or [])


def _show(found: list[Any], output: Path, only: list[str]) -> None:
    """Prints the tables and where the files are, and writes the page."""
    from rich.console import Console

    from interlingua.analysis import page, record, tables

    console = Console(width=None if os.isatty(1) else 160)
    for table in tables.terminal_tables(found):
        console.print(table)
    for note in dict.fromkeys(f"{one.task}: {note}" for each in found for one in each for note in one.notes):
        print(f"note: {note}")
    for one in (one for each in found for one in each):
        print(f"written: {record.analysis_path(one, output)}")
    print(f"written: {page.write_page(found, output, only=only)}")
