"""``interlingua average START TRAINED ... -o MODEL``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlingua.cli.common import split

if TYPE_CHECKING:
    from interlingua.adapt.average import AverageResult

Models = Annotated[
    list[str], typer.Argument(help="Model directories, runs or hub ids of one shape and vocabulary; first the start.")
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder of the new model.")]
Weights = Annotated[str | None, typer.Option(help="Share of each model, with commas: 0.4,0.6.")]
Grid = Annotated[
    str | None,
    typer.Option(help="Shares of the models after the first to try on --pairs and --sts; 0,0.1,...,1 by default."),
]
Pairs = Annotated[
    list[Path] | None,
    typer.Option(help="Held-out translations: a bitext or a folder of them; may be given several times."),
]
Sts = Annotated[
    list[Path] | None, typer.Option(help="Sentence pairs with similarity scores; may be given several times.")
]
Languages = Annotated[str | None, typer.Option(help="Languages of folders in --pairs, with commas; all by default.")]
MaxPairs = Annotated[int, typer.Option(help="Pairs of each set at most, evenly spread over it; 0 = all.", min=0)]
MaxLoss = Annotated[
    float, typer.Option(help="Points of P@1 that a mixture may lose against the trained models.", min=0)
]
Prompt = Annotated[str | None, typer.Option(help="Name of a prompt of the model, or text put before every input.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the folder if a model of ours is in it.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Only where the model is.")]


def average(
    models: Models,
    output: Output,
    weights: Weights = None,
    grid: Grid = None,
    pairs: Pairs = None,
    sts: Sts = None,
    languages: Languages = None,
    max_pairs: MaxPairs = 500,
    max_loss: MaxLoss = 0.3,
    prompt: Prompt = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Averages the weights of models, by given shares or by those that are best on development data."""
    from interlingua.adapt.average import average as run

    result = run(
        models,
        output,
        weights=None if weights is None else _numbers("weights", weights),
        grid=None if grid is None else _numbers("grid", grid),
        pairs=pairs or (),
        sts=sts or (),
        languages=split(languages) if languages else None,
        max_pairs=max_pairs or None,
        max_loss=max_loss,
        prompt=prompt,
        overwrite=overwrite,
        on_point=lambda point: None if quiet else print(f"share {point.share:g} measured", flush=True),
    )
    if not quiet:
        _show(result)
    shares = ", ".join(f"{weight:.3g}" for weight in result.weights)
    print(f"written: {result.model} (shares {shares})")


def _numbers(option: str, text: str) -> list[float]:
    from interlingua.errors import ConfigError

    try:
        return [float(part) for part in split(text)]
    except ValueError:
        raise ConfigError(f"--{option} {text!r}: expected numbers with commas, such as 0.4,0.6") from None


def _show(result: AverageResult) -> None:
    """The table of the grid, with a star at the point that was chosen."""
    if not result.grid:
        return
    scores = result.grid[0].scores
    columns = {"share": 7}
    columns |= {name: max(9, len(name)) for name in (*scores.retrieval, *scores.similarity)}
    columns |= {"mean P@1": 9} if scores.retrieval else {}
    columns |= {"mean STS": 9} if scores.similarity else {}
    print("  ".join(name.rjust(width) for name, width in columns.items()))
    for point in result.grid:
        values = {**point.scores.retrieval, **point.scores.similarity}
        values["mean P@1"] = point.scores.mean_retrieval or 0.0
        values["mean STS"] = point.scores.mean_similarity or 0.0
        star = "*" if abs(1 - point.share - result.weights[0]) < 1e-12 else " "
        cells = [f"{star} {point.share:g}".rjust(columns["share"])]
        cells += [f"{values[name]:.2f}".rjust(width) for name, width in columns.items() if name != "share"]
        print("  ".join(cells))
    print(f"* {result.rule}")
