"""``interlingua average START TRAINED ... -o MODEL``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.cli.options import command
from interlingua.verbs.average import AverageOptions, run_average

if TYPE_CHECKING:
    from interlingua.adapt.average import AverageResult, GridPoint


@command(AverageOptions, quiet="Only where the model is.")
def average(options: AverageOptions, quiet: bool) -> None:
    """Averages the weights of models, by given shares or by the best ones on development data."""

    def report(point: GridPoint) -> None:
        if not quiet:
            print(f"share {point.share:g} measured", flush=True)

    result = run_average(options, report)
    if not quiet:
        _show(result)
    shares = ", ".join(f"{weight:.3g}" for weight in result.weights)
    print(f"written: {result.model} (shares {shares})")


def _show(result: AverageResult) -> None:
    """The table of the grid, with a star at the point that was chosen."""
    if not result.grid:
        return
    # Title -> width of each column; all points of the grid have the same sets.
    scores = result.grid[0].scores
    columns = {"share": 7}
    columns |= {name: max(9, len(name)) for name in (*scores.retrieval, *scores.similarity)}
    if scores.retrieval:
        columns["mean P@1"] = 9
    if scores.similarity:
        columns["mean STS"] = 9
    print("  ".join(name.rjust(width) for name, width in columns.items()))
    for point in result.grid:
        values = {**point.scores.retrieval, **point.scores.similarity}
        values["mean P@1"] = point.scores.mean_retrieval or 0.0
        values["mean STS"] = point.scores.mean_similarity or 0.0
        # The first model's weight is what the others leave of 1.
        star = "*" if abs(1 - point.share - result.weights[0]) < 1e-12 else " "
        cells = []
        for name, width in columns.items():
            cell = f"{star} {point.share:g}"
            if name != "share":
                cell = f"{values[name]:.2f}"
            cells.append(cell.rjust(width))
        print("  ".join(cells))
    print(f"* {result.rule}")
