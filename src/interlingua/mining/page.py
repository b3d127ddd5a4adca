"""A sample of what was mined as one self-contained HTML page: best, borderline and rejected pairs, and why."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua import __version__
from interlingua.files import PathLike, atomic_write
from interlingua.languages import resolve
from interlingua.mining.calibration import Calibration
from interlingua.mining.checks import find_check
from interlingua.mining.filter import BELOW, Written
from interlingua.mining.pipeline import Mined
from interlingua.mining.writer import PairRow
from interlingua.registry import CHECKS

BARS = 60
SHOWN_PRECISIONS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Precisions in the table."""


def write_page(
    path: PathLike,
    mined: Mined,
    written: Written,
    output: PathLike,
    languages: tuple[str, str],
    scoring: str,
    calibration: Calibration | None = None,
) -> None:
    """Writes the page.

    Args:
        path: the .html file.
        mined: all pairs.
        written: what was kept, and the samples.
        output: the file of pairs.
        languages: codes of source and target.
        scoring: how the scores are made, in words.
        calibration: that gave the probabilities.
    """
    with atomic_write(path) as file:
        file.write(render(mined, written, Path(output).name, languages, scoring, calibration))


def render(
    mined: Mined,
    written: Written,
    name: str,
    languages: tuple[str, str],
    scoring: str,
    calibration: Calibration | None = None,
) -> str:
    """The page's text; see ``write_page``."""
    scores = np.asarray(mined.pairs["score"])
    threshold = "" if written.threshold is None else f" The threshold is {written.threshold:.4f}."
    numbers = [histogram(scores, written.threshold)] if len(scores) else []
    numbers.append(_reasons(written, len(scores)))
    if written.cuts:
        numbers.append(_cuts(written))
    if calibration is not None and calibration.bins:
        numbers.append(reliability(calibration))
    best = "At even distances through those that are kept, the best first."
    borderline = "The pairs around the place where the list is cut, the better ones first."
    to_judge = "At even distances through all pairs that were found, kept or not: good ones to judge."
    parts = [section("Best pairs", best, written.best), section("Borderline", borderline, written.borderline)]
    for reason, rows in written.rejects.items():
        found = f"{written.rejected[reason]:,} pairs; the best of them."
        parts.append(section(f"Rejected: {reason}", found, rows))
    parts.append(section("To judge", to_judge, written.even))
    names = " and ".join(resolve(code).name for code in languages)
    return Template(_resource("page.html")).substitute(
        title=escape(f"{name}: mined pairs"),
        languages=escape(names),
        headline=f"{written.pairs:,} pairs of {len(scores):,} found",
        summary=f"{len(scores) - written.pairs:,} were rejected.{threshold}" + _of_calibration(written, calibration),
        script=_resource("page.js"),
        numbers=f'<div class="columns">{"".join(numbers)}</div>',
        sections="".join(parts),
        about=escape(" · ".join([name, scoring, *mined.notes, f"interlingua {__version__}"])),
    )


def section(title: str, text: str, rows: Sequence[PairRow]) -> str:
    """A heading and some pairs; nothing where there are none."""
    if not rows:
        return ""
    shown = "".join(pair(row, title) for row in rows)
    return f"<section><h2>{escape(title)}</h2><p class=soft>{escape(text)}</p>{shown}</section>"


def pair(row: PairRow, kind: str = "") -> str:
    """One pair with what is known of it, and what judges it."""
    values = row.columns
    probability = f"<small>{100 * values['probability']:.1f} %</small>" if "probability" in values else ""
    chips = "".join(f"<span class=chip>{escape(reason)}</span>" for reason in row.reasons)
    facts = [f"<span>cosine {values['cosine']:.3f}</span>"]
    facts += [check_value(name, value) for name, value in row.measured.items()]
    facts += [f"<span>{side} {escape(_origins(values[f'{side}_origins']))}</span>" for side in ("source", "target")]
    reasons = escape(", ".join(row.reasons))
    data = f'data-kind="{escape(kind)}" data-score="{values["score"]:.6g}" data-reasons="{reasons}"'
    return (
        f'<div class="pair" tabindex="0" {data}><p class="number">{values["score"]:.4f}{probability}</p>'
        f'<p dir="auto">{escape(values["source"])}</p><p dir="auto">{escape(values["target"])}</p>'
        f'<p class="facts">{chips}{" · ".join(facts)}'
        '<span class="judge"><button type="button" value="1">right (1)</button>'
        '<button type="button" value="0">wrong (0)</button></span></p></div>'
    )


def check_value(name: str, value: float) -> str:
    """A check's value with what it is the value of, and in full where the mouse points."""
    check = find_check(name) if name in CHECKS else None
    label = check.label if check else name
    unit = check.unit if check else ""
    shown = f"{value:g}"
    if unit == "%":
        shown = f"{100 * value:.0f} %"
    elif unit == "ratio":
        shown = f"{value:.2f}"
    measures = check.measures if check else name
    return f'<span title="{escape(measures)}">{escape(label)} {shown}</span>'


def histogram(scores: Float64[ndarray, " n"], threshold: float | None) -> str:
    """How many pairs have which score, in bars; those below the threshold are pale."""
    low, high = (float(edge) for edge in np.quantile(scores, (0.001, 0.999)))
    if low == high:
        return ""
    counts, edges = np.histogram(scores, BARS, (low, high))
    cut = -np.inf if threshold is None else threshold
    bars = "".join(
        f'<rect class="{"kept" if edge >= cut else "left"}" x="{10 * place}" y="{100 - tall}" width="9"'
        f' height="{tall}"><title>{edge:.4f}: {count:,}</title></rect>'
        for place, (count, edge) in enumerate(zip(counts.tolist(), edges.tolist(), strict=False))
        for tall in [round(100 * count / counts.max(), 1)]
    )
    bars += _threshold_line(threshold, low, high)
    labels = f'<text x="0" y="116">{low:.3f}</text><text x="600" y="116" text-anchor="end">{high:.3f}</text>'
    return (
        '<figure style="margin:0"><p class="soft">scores of all pairs found</p>'
        f'<svg class="histogram" viewBox="0 0 600 120">{bars}{labels}</svg></figure>'
    )


def _threshold_line(threshold: float | None, low: float, high: float) -> str:
    if threshold is None or not low <= threshold <= high:
        return ""
    x = 10 * BARS * (threshold - low) / (high - low)
    side = "end" if x > 5 * BARS else "start"
    return (
        f'<path class="threshold" d="M{x:.1f} 0V104"/><text x="{x + (-4 if side == "end" else 4):.1f}" y="10"'
        f' text-anchor="{side}">threshold {threshold:.4f}</text>'
    )


def _reasons(written: Written, found: int) -> str:
    """Why pairs were rejected, as a table."""
    if not written.rejected:
        return ""
    rows = "".join(
        f"<tr><th scope=row>{escape(reason)}</th><td>{count:,}</td><td>{count / found:.1%}</td>"
        f"<td class=words>{escape(_rule(reason, written))}</td></tr>"
        for reason, count in written.rejected.most_common()
    )
    return (
        '<div class="scroll"><p class="soft">why pairs were rejected; one may have several reasons</p><table>'
        "<tr><th class=words>reason</th><th>pairs</th><th>of all</th><th class=words>what rejects</th></tr>"
        f"{rows}</table></div>"
    )


def _rule(reason: str, written: Written) -> str:
    if reason == BELOW and written.threshold is not None:
        return f"score: less than {written.threshold:.4f}"
    return written.rules.get(reason, "")


def _of_calibration(written: Written, calibration: Calibration | None) -> str:
    if calibration is None or written.prior is None:
        return ""
    basis = {"probes": "held-out pairs that were mixed in", "labels": "judged pairs", "gold": "known right pairs"}
    return (
        f" By a calibration from {calibration.pairs:,} {basis[calibration.basis]} {written.prior:.1%} of all pairs"
        " found are translations."
    )


def reliability(calibration: Calibration) -> str:
    """Share of right pairs by probability, on pairs that the fit had not seen."""
    dots = "".join(
        f'<circle class="kept" r="4" cx="{20 + 200 * one.probability:.1f}" cy="{210 - 200 * one.right:.1f}">'
        f"<title>{one.probability:.3f} predicted, {one.right:.3f} right, {one.pairs:,} pairs</title></circle>"
        for one in calibration.bins
    )
    measures = ", ".join(f"{name} {value:.4f}" for name, value in calibration.measures.items())
    return (
        '<figure style="margin:0"><p class="soft">share of right pairs (up) by probability (across), for pairs the fit'
        f' had not seen: {escape(measures)}</p><svg viewBox="0 0 230 230" style="max-width:20rem">'
        '<path class="axis" fill="none" d="M20 10V210H220"/><path class="ideal" d="M20 210L220 10"/>'
        f'{dots}<text x="20" y="225">0</text><text x="220" y="225" text-anchor="end">1</text></svg></figure>'
    )


def _cuts(written: Written) -> str:
    rows = "".join(
        f"<tr><td>{cut.precision:.2f}</td><td>{cut.score:.4f}</td><td>{cut.pairs:,}</td><td>{cut.right:,.0f}</td></tr>"
        for cut in written.cuts
        if cut.precision in SHOWN_PRECISIONS and np.isfinite(cut.score)
    )
    return (
        '<div class="scroll"><p class="soft">what to expect, before the checks</p><table><tr><th>precision</th>'
        f"<th>from score</th><th>pairs</th><th>right</th></tr>{rows}</table></div>"
    )


def _origins(names: Any) -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _resource(name: str) -> str:
    return (importlib.resources.files("interlingua") / "mining" / name).read_text(encoding="utf-8")
