"""A sample of the mined pairs, as one self-contained HTML page.

It shows the best, the borderline and the rejected pairs with the reason for each rejection, how
the scores are distributed, and where the list is cut.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua import __version__
from interlingua.config.languages import resolve_language
from interlingua.config.registry import CHECKS
from interlingua.mining.calibration.calibration import Calibration
from interlingua.mining.checks import find_check
from interlingua.mining.filter import BELOW, Written
from interlingua.mining.pipeline import Mined
from interlingua.report.pages import render_page
from interlingua.report.tables import Table
from interlingua.storage.files import PathLike, atomic_write

BARS = 60
"""Number of bars of the histogram of the scores, each 10 units wide in the drawing."""
_SHOWN_PRECISIONS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Precisions in the table."""
BASIS = {
    "probes": "held-out pairs that were mixed in",
    "labels": "judged pairs",
    "gold": "known right pairs",
}
"""The basis that a calibration was fitted on, in words."""


def write_mining_page(
    path: PathLike,
    mined: Mined,
    written: Written,
    output: PathLike,
    languages: tuple[str, str],
    scoring: str,
    calibration: Calibration | None = None,
) -> None:
    """Write the page.

    Args:
        path: the .html file.
        mined: all pairs.
        written: kept pairs, and the samples.
        output: the file of pairs.
        languages: codes of source and target.
        scoring: how the scores are made, in words.
        calibration: that gave the probabilities.
    """
    scores = np.asarray(mined.pairs["score"])
    best = "Evenly spaced pairs of the list of kept pairs, the best first."
    borderline = "The pairs around the place where the list is cut, the better ones first."
    to_judge = (
        "Evenly spaced pairs of all that were found, kept or not; they are suitable for judging."
    )
    sections = [("Best pairs", best, written.best), ("Borderline", borderline, written.borderline)]
    for reason, rows in written.rejects.items():
        rejected = f"{written.rejected[reason]:,} pairs; these are the best of them."
        sections.append((f"Rejected: {reason}", rejected, rows))
    # This section is the last one, because only it requires an action of the reader.
    sections.append(("To judge", to_judge, written.even))
    basis = None
    if calibration is not None:
        basis = BASIS[calibration.basis]
    name = Path(output).name
    page = render_page(
        "mine.html",
        name=name,
        languages=" and ".join(resolve_language(code).name for code in languages),
        written=written,
        found=len(scores),
        bars=histogram_bars(scores, written.threshold),
        rejected=_rejected_table(written, len(scores)),
        cuts=_cuts_table(written),
        calibration=calibration,
        basis=basis,
        sections=sections,
        check_value=format_check_value,
        about=" · ".join([name, scoring, *mined.notes, f"interlingua {__version__}"]),
    )
    with atomic_write(path) as file:
        file.write(page)


def format_check_value(name: str, value: float) -> tuple[str, str]:
    """Return the measure of a check, and its value with its label."""
    # The measured values also include columns of a user's own checks.
    if name not in CHECKS:
        return name, f"{name} {value:g}"
    check = find_check(name)
    shown = f"{value:g}"
    if check.unit == "%":
        shown = f"{100 * value:.0f} %"
    elif check.unit == "ratio":
        shown = f"{value:.2f}"
    return check.measures, f"{check.label} {shown}"


def histogram_bars(
    scores: Float64[ndarray, " n"], threshold: float | None
) -> dict[str, Any] | None:
    """Return the histogram of the scores as the bars of a drawing.

    Return None if there are no pairs, or if all have the same score.
    """
    if not len(scores):
        return None
    # One score in a thousand at either end is left out: a single outlier would squeeze all others
    # into a few bars.
    low, high = (float(edge) for edge in np.quantile(scores, (0.001, 0.999)))
    if low == high:
        return None
    counts, edges = np.histogram(scores, BARS, (low, high))
    # Without a threshold every bar is drawn as kept.
    cut = -np.inf if threshold is None else threshold
    # Of each bar: its lower edge, its count, its height in percent of the highest, whether it is
    # kept. There is one edge more than there are counts, the upper one of the last bar.
    bars = [
        (edge, count, round(100 * count / int(counts.max()), 1), edge >= cut)
        for count, edge in zip(counts.tolist(), edges.tolist(), strict=False)
    ]
    width = 10 * BARS
    # Where the line of the threshold is drawn; nowhere if it is outside of the drawing.
    x = None
    if threshold is not None and low <= threshold <= high:
        x = width * (threshold - low) / (high - low)
    return {"bars": bars, "low": low, "high": high, "threshold": threshold, "x": x, "width": width}


def _rejected_table(written: Written, found: int) -> Table:
    rows = [
        [reason, f"{count:,}", f"{count / found:.1%}", _rule(reason, written)]
        for reason, count in written.rejected.most_common()
    ]
    title = "why pairs were rejected; one may have several reasons"
    return Table(title, ["reason", "pairs", "of all", "what rejects"], rows, words=(0, 3))


def _cuts_table(written: Written) -> Table:
    rows = []
    for cut in written.cuts:
        # A precision that no list reaches has a cut of infinite score and no place in the table.
        if cut.precision in _SHOWN_PRECISIONS and np.isfinite(cut.score):
            numbers = [f"{cut.score:.4f}", f"{cut.pairs:,}", f"{cut.right:,.0f}"]
            rows.append([f"{cut.precision:.2f}", *numbers])
    title = "what to expect, before the checks"
    return Table(title, ["precision", "from score", "pairs", "right"], rows, words=())


def _rule(reason: str, written: Written) -> str:
    if reason == BELOW and written.threshold is not None:
        return f"score: less than {written.threshold:.4f}"
    return written.rules.get(reason, "")
