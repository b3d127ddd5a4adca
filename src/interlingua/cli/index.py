"""``interlingua index build [MODEL] FILES -o DIR``, ``index add DIR FILES``, ``index delete DIR IDS``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from interlingua.cli.common import rate_bar
from interlingua.registry import DEFAULT_MODEL

Text = str | None
ACTIONS = ("build", "add", "delete")
EPILOG = (
    "build MODEL FILES -o DIR makes an index, or goes on with one; left out before a file, MODEL is mini; add DIR FILES"
    " adds passages, and replaces those of the same id; delete DIR IDS removes some. FILES: .jsonl or .parquet (text,"
    " id, title, language; all else is metadata), or text with a passage a line and its language in the file's name."
)


def index(
    action: Annotated[str, typer.Argument(help="build, add or delete.")],
    arguments: Annotated[list[str], typer.Argument(help="build: MODEL FILES; add: DIR FILES; delete: DIR IDS.")],
    output: Annotated[Text, typer.Option("--output", "-o", help="Folder of the index; build.")] = None,
    prompt: Annotated[
        Text, typer.Option(help="Of passages: a prompt's name, or text in front; the model's own by default; build.")
    ] = None,
    question_prompt: Annotated[Text, typer.Option(help="Of questions, in the same way; build.")] = None,
    map: Annotated[
        Text, typer.Option(help="Language map that interlingua debias --vectors wrote, for all vectors; build.")
    ] = None,
    language: Annotated[Text, typer.Option(help="Of passages that name none; any code; build, add.")] = None,
    where: Annotated[
        Text, typer.Option(help="SQL condition, such as \"language = 'deu_Latn'\"; delete, in place of ids.")
    ] = None,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Many times faster for 100,000 passages and more; build.")
    ] = False,
    dtype: Annotated[
        str, typer.Option(help="To compute in: float32, bfloat16, float16, int8; build, add.")
    ] = "float32",
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; build, add.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar and no closing line.")] = False,
) -> None:
    """Passages with their vectors on disk, to be searched by interlingua search."""
    from interlingua.errors import ConfigError
    from interlingua.registry import did_you_mean
    from interlingua.search.searcher import add_to_index, build_index

    if action not in ACTIONS:
        raise ConfigError(f"no such action {action!r}{did_you_mean(action, ACTIONS)}; there are: {', '.join(ACTIONS)}")
    given = {"output": output, "prompt": prompt, "question_prompt": question_prompt, "map": map}
    chosen = {"approximate": "" if approximate else None, "language": language, "where": where, "device": device}
    _refuse_others(action, {**given, **chosen})
    if action == "build" and Path(arguments[0]).is_file():
        arguments = [DEFAULT_MODEL, *arguments]
    first, *rest = arguments
    if action == "delete":
        _delete(first, rest, where, quiet)
        return
    options: Any = {"language": language, "dtype": dtype, "device": device}
    with rate_bar(quiet, "passages") as show:
        if action == "add":
            added = add_to_index(first, rest, progress=lambda done: show(done, None), **options)
        else:
            if output is None:
                raise ConfigError("name the folder of the index: -o DIR")
            options |= {
                "approximate": approximate,
                "prompt": prompt,
                "question_prompt": question_prompt,
                "language_map": map,
            }
            added = build_index(first, rest, output, progress=lambda done: show(done, None), **options)
    if not quiet:
        folder = output if action == "build" else first
        print(
            f"{folder}: {added.added:,} passages added, {added.replaced:,} replaced, {added.unchanged:,} as they were",
            file=sys.stderr,
        )


def _delete(folder: str, ids: list[str], where: Text, quiet: bool) -> None:
    from interlingua.errors import ConfigError
    from interlingua.search.searcher import delete_from_index

    if not ids and where is None:
        raise ConfigError("name ids, or a condition with --where")
    deleted = delete_from_index(folder, ids, where)
    if not quiet:
        print(f"{folder}: {deleted:,} passages deleted", file=sys.stderr)


def _refuse_others(action: str, given: dict[str, Text]) -> None:
    """Raises ConfigError for an option that the action does not read."""
    from interlingua.errors import ConfigError

    read = {
        "build": {"output", "prompt", "question_prompt", "map", "approximate", "language", "device"},
        "add": {"language", "device"},
        "delete": {"where"},
    }[action]
    unread = next((name for name, value in given.items() if value is not None and name not in read), None)
    if unread is not None:
        raise ConfigError(f"--{unread.replace('_', '-')} is not an option of index {action}; remove it")
