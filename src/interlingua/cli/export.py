"""``interlingua export MODEL -o DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Text = str | None


def export(
    model: Annotated[str, typer.Argument(help="Model directory or hub id, or a run's folder (its best model).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new directory.")],
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16 to store weights in.")] = "float32",
    name: Annotated[Text, typer.Option(help="The model's name in the card; the directory's by default.")] = None,
    licence: Annotated[Text, typer.Option(help="SPDX identifier for the card, e.g. Apache-2.0.")] = None,
    results: Annotated[
        list[Path] | None, typer.Option(help="Result files or folders, of which the card shows its own.")
    ] = None,
    vocabulary_of: Annotated[
        list[str] | None, typer.Option(help="Keep only the vocabulary of these files or globs: .txt, or pairs.")
    ] = None,
    layers: Annotated[int | None, typer.Option(help="Keep only so many layers, from the first.")] = None,
    verify: Annotated[bool, typer.Option(help="Compare the vectors with sentence-transformers'.")] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the directory if one of our models is in it.")
    ] = False,
) -> None:
    """Writes a directory that sentence-transformers loads, with a card, and checks the round trip."""
    from interlingua.export.sentence_transformers import export as run

    verification = run(
        model,
        output,
        dtype=dtype,  # type: ignore[arg-type]
        name=name,
        licence=licence,
        results=results or (),
        check=verify,
        overwrite=overwrite,
        texts=vocabulary_of or (),
        layers=layers,
    )
    print(f"{output}: written" + ("; not checked" if verification is None else ""))
    if verification is not None:
        worst = min(verification.worst, key=lambda language: verification.worst[language])
        print(
            f"sentence-transformers gives the same vectors: {verification.texts} texts in"
            f" {len(verification.worst)} languages, smallest cosine {verification.minimum:.7f} ({worst})"
        )
