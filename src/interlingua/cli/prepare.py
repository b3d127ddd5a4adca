"""``interlingua prepare CONFIG``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def prepare(
    config: Annotated[Path, typer.Argument(help="TOML file; see experiments/ems/prepare_trainmix.toml.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key: --set vocabulary.size=60000.", metavar="KEY=VALUE"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to make, instead of the file's.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the folder if a prepared corpus is in it.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars, no table.")] = False,
) -> None:
    """Cleans, deduplicates, splits and tokenises parallel text into a folder to train on."""
    from interlingua.config import load_config
    from interlingua.prepare.config import PrepareConfig
    from interlingua.prepare.pipeline import prepare as run
    from interlingua.prepare.report import summary

    overrides = [*(set_ or []), *([] if output is None else [f"output={output}"])]
    settings = load_config(PrepareConfig, config, overrides=overrides)
    manifest = run(settings, overwrite=overwrite, show_progress=not quiet)
    if not quiet:
        from rich.console import Console

        console = Console()
        for table in summary(manifest):
            console.print(table)
        console.print(f"written: {settings.output}")
