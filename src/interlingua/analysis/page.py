"""The findings as one self-contained HTML page, of one model or of two side by side.

Each analysis is a section: its measures on scales, then a drawing of its own, which is made by the
function that ``DRAWN`` names for it. The templates get plain values that are ready to be shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from interlingua.analysis.differences import Change, changes, paired
from interlingua.analysis.record import Analysis, Measure
from interlingua.analysis.tables import analysis_heading, difference_interval, format_value
from interlingua.analysis.token_matching import CLASSES
from interlingua.analysis.word_order import PAPER
from interlingua.config.languages import resolve_language
from interlingua.report.pages import render_page
from interlingua.storage.files import PathLike, atomic_write

# MEXMA, Table 9: same sentence, same language, translation, other.
TABLE_9 = {
    "XLM-R": (0.0265, 0.6389, 0.3228, 0.0119),
    "LaBSE": (0.4233, 0.0013, 0.5754, 0.0),
    "DAP": (0.2011, 0.0066, 0.7923, 0.0),
    "No-tok-MEXMA": (0.119, 0.004, 0.8757, 0.0013),
    "NLLB": (0.0172, 0.0317, 0.9471, 0.004),
    "SONAR": (0.002, 0.0013, 0.9967, 0.0),
    "MEXMA": (0.0053, 0.0133, 0.9788, 0.0026),
}
PAPER_ENTROPY = {
    "attention_entropy": {"MEXMA": 2.5, "LaBSE": 3.4},
    "attention_entropy_without_special": {"MEXMA": 3.0, "LaBSE": 3.5},
}
PAPER_VALUES: dict[str, dict[str, float]] = {**PAPER_ENTROPY, "word_order_cosine": PAPER}
"""Values that papers report, by measure and model."""
BY_LANGUAGE = {
    "accuracy_gap": "P@1 of each language, both directions with all others",
    "same_language_bias_without_translations": "Nearest sentence in the own language, translations"
    " taken out",
}
_MIXED = "P@1 among the lines of all languages, from the row's language to the column's"
_MOST_LANGUAGES = 60
"""Maximum number of languages in a heat map; with more it would be unreadable."""
AROUND = 70
"""Characters of a text kept on either side of a mark in it."""
ModelAnalyses = Sequence[Analysis]
"""One analysis of each model."""


class Dot(NamedTuple):
    """A point on a scale; positions are percents of its length.

    Attributes:
        place: position of the point.
        label: shown when the pointer is on it.
        kind: ``m0`` and ``m1`` for the models, ``ideal`` and ``paper`` for the values of others.
        low: lower end of its interval.
        width: of the interval; None without one.
    """

    place: float
    label: str
    kind: str
    low: float | None = None
    width: float | None = None


class Marked(NamedTuple):
    """A text with one part marked, cut to the characters around it."""

    before: str
    marked: str
    after: str
    kind: str
    about: str = ""


def write_analysis_page(
    found: Sequence[Sequence[Analysis]], folder: PathLike, *, only: Sequence[str] = ()
) -> Path:
    """Write ``analysis-MODEL.html`` or ``analysis-MODEL-MODEL2.html``.

    The names of chosen analyses are appended.

    Args:
        found: the analyses of one model, or of two; of two, only common parts are drawn side by
            side.
        folder: output folder.
        only: the chosen analyses, so that the file does not replace the page of all analyses.

    Returns:
        The file.
    """
    models = [analyses[0].model for analyses in found if analyses]
    # A model may be called owner/name, which can't be the name of a file.
    name = re.sub(r"[^A-Za-z0-9_.+-]", "_", "-".join(["analysis", *models, *only]))
    path = Path(folder) / f"{name}.html"
    with atomic_write(path) as file:
        file.write(render_analyses(found))
    return path


def render_analyses(found: Sequence[Sequence[Analysis]]) -> str:
    """Return the page's text.

    Args:
        found: see ``write_analysis_page``.
    """
    sides: list[ModelAnalyses] = [[one] for one in found[0]]
    # With two models, the common analyses come first, then the analyses of only one model.
    if len(found) == 2:
        both: list[ModelAnalyses] = [list(pair) for pair in paired(found)]
        compared = {side[0].task for side in both}
        sides = both + [[one] for analyses in found for one in analyses if one.task not in compared]
    firsts = [analyses[0] for analyses in found if analyses]
    date = ""
    if firsts:
        # The day of 2026-11-25T19:17:30.
        date = firsts[0].provenance["date"][:10]
    return render_page(
        "analyse.html",
        title=" and ".join(first.model for first in firsts),
        models=[first.model for first in firsts],
        date=date,
        sections=[_section(side) for side in sides],
        about=[_about(first) for first in firsts],
    )


def _about(analysis: Analysis) -> str:
    """Return the line at the foot of the page with the origin of the numbers."""
    made = analysis.provenance
    model = made["model"]
    facts = [
        f"{model['name']} {model['revision']}",
        model["library"],
        f"pooling {model['pooling']}",
    ]
    if made["prompt"]:
        facts.append(f"prompt {made['prompt']!r}")
    return " · ".join([*facts, made["date"], made["command"]])


def _section(side: ModelAnalyses) -> dict[str, Any]:
    """Return the page's values for one analysis, of one model or of two that are compared."""
    first = side[0]
    # The data's name may follow the analysis's name; an analysis that is not ours has no drawing.
    kind = next((name for name in DRAWN if first.task.startswith(name)), "")
    title, draw = DRAWN.get(kind, (first.task, _nothing))
    compared: dict[str, Change] = {}
    if len(side) == 2:
        compared = {change.before.name: change for change in changes(*side)}
    measures = []
    for measure in first.measures:
        of_all = [m for one in side for m in one.measures if m.name == measure.name]
        measures.append(_measure(of_all, compared.get(measure.name)))
    notes = dict.fromkeys(note for one in side for note in one.notes)
    return {
        "kind": kind,
        "title": title,
        "heading": analysis_heading(first),
        "measures": measures,
        "own": draw(side),
        "notes": list(notes),
    }


def _measure(measures: Sequence[Measure], change: Change | None) -> dict[str, Any]:
    """Return the page's values for a measure.

    They are the measure of each model, its position on a scale next to others' numbers, and the
    difference.
    """
    first = measures[0]
    paper = PAPER_VALUES.get(first.name, {})
    meaning = f"{first.definition[:1].upper()}{first.definition[1:]}."
    if first.better:
        meaning += f" {first.better.capitalize()} is better."
    # A difference in percent has no bounds, which a scale needs.
    dots: list[Dot] = []
    if first.unit != "percent":
        dots = _dots(measures, paper)
    row = {
        "title": first.title,
        "meaning": meaning,
        "paper": paper,
        "dots": dots,
        "shown": [format_value(measure.value, measure.unit) for measure in measures],
        "difference": "",
    }
    if change is not None:
        row["difference"] = format_value(change.difference, change.before.unit, sign=True)
        # Colored only if an interval supports the verdict.
        row["proven"] = change.verdict if change.tested is not None else ""
        bounds = difference_interval(change)
        row["verdict"] = f"{bounds} {change.verdict}" if bounds or change.verdict else ""
    return row


def _dots(measures: Sequence[Measure], paper: Mapping[str, float]) -> list[Dot]:
    """Return the models' values on one scale, after the paper's and the ideal."""
    first = measures[0]
    values = [measure.value for measure in measures]
    others = [(value, f"{model}: {value}", "paper") for model, value in paper.items()]
    if first.ideal is not None:
        others.append(
            (first.ideal, f"without language: {format_value(first.ideal, first.unit)}", "ideal")
        )
    known = [value for value, _, _ in others] + values
    # Shares and cosines end at 1; any other scale ends a little above its largest number.
    low = min(0.0, *known)
    is_share = first.unit in ("share", "cosine") or first.name == "partition_isotropy"
    high = 1.0 if is_share else 1.15 * max(*known, 1e-9)

    def place(value: float) -> float:
        """Return the percent of the scale's length."""
        return 100 * min(1.0, max(0.0, (value - low) / ((high - low) or 1.0)))

    dots = [Dot(place(value), label, kind) for value, label, kind in others]
    for number, measure in enumerate(measures):
        dot = Dot(place(measure.value), format_value(measure.value, measure.unit), f"m{number}")
        if measure.low is not None and measure.high is not None:
            start = place(measure.low)
            dot = dot._replace(low=start, width=place(measure.high) - start)
        dots.append(dot)
    return dots


def _panel(side: ModelAnalyses) -> dict[str, Any]:
    """Return bars by language, ordered by the first model, and a grid of pairs of each model."""
    by_language = []
    for name, title in BY_LANGUAGE.items():
        tables = [one[name].by_language for one in side]
        order = sorted(tables[0], key=lambda code: -tables[0][code])
        rows = []
        for code in order:
            shares = [table[code] for table in tables]
            rows.append(
                (
                    resolve_language(code).name,
                    [(share, format_value(share, "share")) for share in shares],
                )
            )
        by_language.append((title, rows))
    grids = []
    if len(side[0].languages) <= _MOST_LANGUAGES:
        grids = [
            (one.model, one.tables["accuracy_mixed_pool"], list(one.languages)) for one in side
        ]
    return {"by_language": by_language, "grids": grids, "grids_title": _MIXED}


def _token_matching(side: ModelAnalyses) -> dict[str, Any]:
    """Return the shares of the classes, then those of the paper's models, and example tokens."""
    shares = []
    examples = []
    for one in side:
        shares.append((one.model, {name: one[name].value for name in CLASSES}))
        examples.append((one.model, [_matches(example) for example in one.examples]))
    shares += [
        (f"{model} (paper)", dict(zip(CLASSES, row, strict=True))) for model, row in TABLE_9.items()
    ]
    return {"shares": shares, "examples": examples}


def _matches(example: Mapping[str, Any]) -> tuple[Marked, list[Marked]]:
    found = []
    for one in example["neighbors"]:
        about = (
            f"{resolve_language(one['language']).name} · {one['class'].replace('_', ' ')} ·"
            f" {one['cosine']:.2f}"
        )
        marked = mark(one["text"], one["start"], one["end"], one["class"])
        found.append(marked._replace(about=about))
    query = example["query"]
    return mark(query["text"], query["start"], query["end"], "query"), found


def mark(text: str, start: int, end: int, kind: str, *, around: int = AROUND) -> Marked:
    """Mark one part of a text, and cut the text to the characters around it.

    Args:
        text: the whole text.
        start: of the part.
        end: of the part.
        kind: class of the mark.
        around: characters kept on either side.
    """
    # A piece may start with the space before its word.
    while start < end and text[start].isspace():
        start += 1
    first = max(0, start - around)
    last = min(len(text), end + around)
    before = "…" * (first > 0) + text[first:start]
    after = text[end:last] + "…" * (last < len(text))
    return Marked(before, text[start:end], after, kind)


def _attention(side: ModelAnalyses) -> dict[str, Any]:
    """Return the entropy of each head, and the attention to the tokens of some lines.

    The same line of two models is shown next to each other.
    """
    heads = []
    shown_lines = []
    for number, one in enumerate(side):
        by_head = one.tables["attention_entropy_by_head"]
        rows = [(f"head {head}", [(value, f"{value:.2f}")]) for head, value in by_head.items()]
        # The scale reaches at least the entropy of equal attention, so that bars are comparable.
        longest = max([*by_head.values(), one["uniform_entropy"].value])
        heads.append((one.model, rows, longest))
        for place, example in enumerate(one.examples):
            shown_lines.append(((place, number), _attention_example(one.model, example)))
    shown_lines.sort(key=lambda shown_line: shown_line[0])
    return {"heads": heads, "examples": [example for _, example in shown_lines]}


def _attention_example(model: str, example: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a title, tokens with weights and heads, the mean map, and the maps of heads."""
    about = f"{model} · {resolve_language(example['language']).name} · line {example['line']}"
    tokens = [(token["text"], token["weight"], token["special"]) for token in example["tokens"]]
    by_token = [(token["text"], token["heads"]) for token in example["tokens"]]
    maps = example.get("maps", [])
    mean = np.mean(maps, axis=0).tolist() if maps else []
    return about, tokens, by_token, mean, maps


def _word_order(side: ModelAnalyses) -> dict[str, Any]:
    return {"examples": [example["text"] for example in side[0].examples]}


def _nothing(side: ModelAnalyses) -> dict[str, Any]:
    return {}


DRAWN: dict[str, tuple[str, Callable[[ModelAnalyses], dict[str, Any]]]] = {
    "agnosticism": ("Language-agnosticism panel", _panel),
    "token_matching": ("Token matching", _token_matching),
    "attention_entropy": ("Attention of the first token", _attention),
    "word_order": ("Word order", _word_order),
    "uniform_pooling": ("Uniform pooling", _nothing),
}
