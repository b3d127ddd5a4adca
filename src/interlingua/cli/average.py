"""``interlingua average START TRAINED ... -o MODEL``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.cli.options import command
from interlingua.verbs.average import AverageOptions, run_average

if TYPE_CHECKING:
    from interlingua.adapt.average import AverageResult


@command(AverageOptions, quiet="Only where the model is.")
def average(options: AverageOptions, quiet: bool) -> None:
    """Averages the weights of models, by given shares or by those that are best on development
    data.
    """
    result = run_average(
        options,
        lambda point: None if quiet else print(f"share {point.share:g} measured", flush=True),
    )
    if not quiet:
        _show(result)
    shares = ", ".join(f"{weight:.3g}" for weight in result.weights)
    print(f"written: {result.model} (shares {shares})")


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
        cells += [
            f"{values[name]:.2f}".rjust(width) for name, width in columns.items() if name != "share"
        ]
        print("  ".join(cells))
    print(f"* {result.rule}")
