"""``interlingua debias MODEL TEXTS... -o DIR``."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, cast

from interlingua.cli.options import make_command
from interlingua.report.tables import Table
from interlingua.runtime.progress import make_progress
from interlingua.verbs.debias import DebiasSettings, run_debias

if TYPE_CHECKING:
    from interlingua.analysis.debiasing.debias import DebiasReport


@make_command(DebiasSettings, quiet="Print only the table.")
def debias(options: DebiasSettings, quiet: bool) -> None:
    """Write the model with a map that removes the language component from its vectors.

    Also prints the measurements before and after the map.
    """
    with make_progress(quiet) as progress:
        report = run_debias(options, progress)
    if report is not None:
        # On the command line the inputs are files; for files the result is a DebiasReport.
        print(debias_table(cast("DebiasReport", report)))
    print(f"written: {options.output}", file=sys.stderr)


def debias_table(report: DebiasReport) -> str:
    """Return the measurements before and after the map, as a table in text."""
    from interlingua.analysis.debiasing.debias import panel_values

    fitted = report.fitted
    language_map = fitted.language_map
    before = panel_values(fitted.before)
    after = panel_values(fitted.after)
    titles = {
        "own_pool": "translations found, own pool",
        "mixed_pool": "translations found, mixed pool",
        "mixed_pool_drop": "lost by mixing languages",
        "same_language": "nearest is of the same language",
        "language_variance_share": "variance between languages",
        "language_recognized": "language recognized by its mean",
    }
    removed = ""  # maps of some methods, and those of rank 0, remove no direction
    if language_map.rank == 1:
        removed = ", 1 direction removed"
    elif language_map.rank:
        removed = f", {language_map.rank} directions removed"
    heading = (
        f"{language_map.method}{removed}; {len(report.languages)} languages, estimated on"
        f" {fitted.fitted:,} sentences, measured on {fitted.held_out:,} others"
    )
    rows = [[titles[name], _percent(before[name]), _percent(after[name])] for name in titles]
    lines = Table(heading, ["%", "before", "after"], rows).text()
    if before["own_pool"] is None or math.isnan(before["own_pool"]):
        lines.append("no translations were found, so retrieval was not measured")
        # The means of n languages differ in n - 1 directions.
        if language_map.rank == len(report.languages) - 1:
            lines[-1] += ", and all directions are removed"
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f}"
