"""``interlingua average START TRAINED ... -o MODEL``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.cli.options import make_command
from interlingua.report.tables import Table
from interlingua.verbs.average import AverageOptions, run_average

if TYPE_CHECKING:
    from interlingua.adapt.average import AverageResult, GridPoint


@make_command(AverageOptions, quiet="Print only the path of the model.")
def average(options: AverageOptions, quiet: bool) -> None:
    """Average the weights of models with specified shares, or with the best on development data."""

    def report(point: GridPoint) -> None:
        if not quiet:
            print(f"share {point.share:g} measured", flush=True)

    result = run_average(options, report)
    if not quiet:
        _show(result)
    shares = ", ".join(f"{weight:.3g}" for weight in result.weights)
    print(f"written: {result.model} (shares {shares})")


def _show(result: AverageResult) -> None:
    """Print the table of the grid, with a star at the chosen point."""
    if not result.grid:
        return
    # All points of the grid have the same sets.
    scores = result.grid[0].scores
    names = [*scores.retrieval, *scores.similarity]
    if scores.retrieval:
        names.append("mean P@1")
    if scores.similarity:
        names.append("mean STS")
    rows = []
    for point in result.grid:
        values = {**point.scores.retrieval, **point.scores.similarity}
        values["mean P@1"] = point.scores.mean_retrieval or 0.0
        values["mean STS"] = point.scores.mean_similarity or 0.0
        # The first model's weight is 1 minus the weights of the others.
        star = "*" if abs(1 - point.share - result.weights[0]) < 1e-12 else " "
        rows.append([f"{star} {point.share:g}", *(f"{values[name]:.2f}" for name in names)])
    table = Table("", ["share", *names], rows, notes=[f"* {result.rule}"], words=())
    print("\n".join(table.text()))
