"""The page's sections, one per analysis: what one model, or two, look like in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from interlingua.analysis import plots
from interlingua.analysis.differences import Change, changes
from interlingua.analysis.record import Analysis, Measure
from interlingua.analysis.tables import difference_interval, heading, shown
from interlingua.analysis.token_matching import CLASSES
from interlingua.analysis.word_order import PAPER
from interlingua.languages import resolve

TABLE_9 = {  # MEXMA, Table 9: same sentence, same language, translation, other
    "XLM-R": (0.0265, 0.6389, 0.3228, 0.0119),
    "LaBSE": (0.4233, 0.0013, 0.5754, 0.0),
    "SONAR": (0.002, 0.0013, 0.9967, 0.0),
    "MEXMA": (0.0053, 0.0133, 0.9788, 0.0026),
}
PAPER_ENTROPY = {"attention_entropy": {"MEXMA": 2.5, "LaBSE": 3.4},
                 "attention_entropy_without_special": {"MEXMA": 3.0, "LaBSE": 3.5}}  # fmt: skip
BY_LANGUAGE = {
    "accuracy_gap": "P@1 of each language, both directions with all others",
    "same_language_bias_without_translations": "Nearest sentence in the own language, translations taken out",
}
MIXED = "P@1 among the lines of all languages, from the row's language to the column's"
MOST_LANGUAGES = 60
"""More do not fit into a heat map that can be read."""
Side = Sequence[Analysis]
"""One analysis of each model."""


def section(side: Side) -> str:
    """The section of one analysis.

    Args:
        side: of one model, or of two; the same analysis of the same texts.
    """
    first = side[0]
    own = next((draw for name, (_, draw) in DRAWN.items() if first.task.startswith(name)), lambda side: "")
    title = next((title for name, (title, _) in DRAWN.items() if first.task.startswith(name)), first.task)
    notes = "".join(
        f'<p class="soft">{escape(note)}.</p>' for note in dict.fromkeys(n for one in side for n in one.notes)
    )
    return (
        f'<section><h2>{escape(title)}</h2><p class="soft">{escape(heading(first))}</p>'
        f"{_measures(side)}{own(side)}{notes}</section>"
    )


def _measures(side: Side) -> str:
    compared = changes(*side) if len(side) == 2 else []
    rows = []
    for measure in side[0].measures:
        of_all = [next((m for m in one.measures if m.name == measure.name), None) for one in side]
        present = [m for m in of_all if m is not None]
        change = next((c for c in compared if c.before.name == measure.name), None)
        rows.append(_row(present, change))
    return f'<div class="measures">{"".join(rows)}</div>'


def _row(measures: Sequence[Measure], change: Change | None) -> str:
    first = measures[0]
    dots = [
        plots.Dot(m.value, f"{shown(m.value, m.unit)}", f"m{number}", m.low, m.high)
        for number, m in enumerate(measures)
    ]
    if first.ideal is not None:
        dots.insert(0, plots.Dot(first.ideal, f"without language: {shown(first.ideal, first.unit)}", "ideal"))
    others = PAPER_ENTROPY.get(first.name, PAPER if first.name == "word_order_cosine" else {})
    dots[:0] = [plots.Dot(value, f"{model}: {value}", "paper") for model, value in others.items()]
    low, high = _range(first, [dot.value for dot in dots])
    values = "".join(f'<span class="value v{n}">{shown(m.value, m.unit)}</span>' for n, m in enumerate(measures))
    drawn = "" if first.unit == "percent" else plots.scale(dots, low=low, high=high)
    paper = f'<span class="soft">paper: {", ".join(f"{m} {v}" for m, v in others.items())}</span>' if others else ""
    direction = f" {first.better.capitalize()} is better." if first.better else ""
    meaning = first.definition[:1].upper() + first.definition[1:]
    return (
        f'<div class="measure"><div class="what"><strong>{escape(first.title)}</strong><span class="soft">'
        f"{escape(meaning)}.{direction}</span>{paper}</div>"
        f'<div class="drawn">{drawn}</div><div class="numbers">{values}{_verdict(change)}</div></div>'
    )


def _verdict(change: Change | None) -> str:
    if change is None:
        return ""
    bounds = difference_interval(change)
    proven = change.verdict if change.tested is not None else ""
    value = f'<span class="verdict {proven}">{shown(change.difference, change.before.unit, sign=True)}</span>'
    return value + (f'<span class="soft">{bounds} {change.verdict}</span>' if bounds or change.verdict else "")


def _range(measure: Measure, values: Sequence[float]) -> tuple[float, float]:
    if measure.unit in ("share", "cosine") or measure.name == "partition_isotropy":
        return min(0.0, *values), 1.0
    return min(0.0, *values), 1.15 * max(*values, 1e-9)


def _panel(side: Side) -> str:
    parts = []
    for name, title in BY_LANGUAGE.items():
        by_language = [one[name].by_language for one in side]
        order = sorted(by_language[0], key=lambda code: -by_language[0][code])
        rows = [
            (resolve(code).name, [(table[code], shown(table[code], "share")) for table in by_language])
            for code in order
        ]
        parts.append(f"<h3>{escape(title)}</h3>{plots.bars(rows, highest=1.0)}")
    if len(side[0].languages) <= MOST_LANGUAGES:
        grids = [
            f"<div><h4>{escape(one.model)}</h4>"
            + plots.heat_map(one.tables["accuracy_mixed_pool"], one.languages, title=f"{MIXED}: {one.model}")
            + "</div>"
            for one in side
        ]
        parts.append(f'<h3>{escape(MIXED)}</h3><div class="grids">{"".join(grids)}</div>')
    return "".join(parts)


def _token_matching(side: Side) -> str:
    rows = [(one.model, {name: one[name].value for name in CLASSES}) for one in side]
    rows += [(f"{model} (paper)", dict(zip(CLASSES, shares, strict=True))) for model, shares in TABLE_9.items()]
    parts = [plots.stacked(rows)]
    for one in side:
        cards = "".join(_matches(example) for example in one.examples)
        parts.append(f'<h3>{escape(one.model)}: nearest tokens</h3><div class="cards">{cards}</div>')
    return "".join(parts)


def _matches(example: Mapping[str, Any]) -> str:
    query = example["query"]
    lines = [f'<p dir="auto">{_marked(query, "query")}</p>']
    for found in example["neighbours"]:
        about = f"{resolve(found['language']).name} · {found['class'].replace('_', ' ')} · {found['cosine']:.2f}"
        lines.append(f'<p dir="auto">{_marked(found, found["class"])}<small>{escape(about)}</small></p>')
    return f'<div class="card">{"".join(lines)}</div>'


def _marked(found: Mapping[str, Any], kind: str) -> str:
    return plots.marked_text(found["text"], found["start"], found["end"], kind, around=70)


def _attention(side: Side) -> str:
    parts = []
    for one in side:
        by_head = one.tables["attention_entropy_by_head"]
        rows = [(f"head {head}", [(value, f"{value:.2f}")]) for head, value in by_head.items()]
        parts.append(
            f"<details><summary>{escape(one.model)}: entropy of each head</summary>"
            f"{plots.bars(rows, highest=max([*by_head.values(), one['uniform_entropy'].value]))}</details>"
        )
    for model, example in [(one.model, example) for one in side for example in one.examples]:
        tokens = [(t["text"], t["weight"], t["special"]) for t in example["tokens"]]
        grid = plots.heads([token["text"] for token in example["tokens"]], [t["heads"] for t in example["tokens"]])
        parts.append(
            f'<div class="card"><small>{escape(model)} · {resolve(example["language"]).name} · line {example["line"]}'
            f"</small>{plots.attention(tokens)}<details><summary>every head</summary>{grid}</details></div>"
        )
    return "".join(parts)


def _word_order(side: Side) -> str:
    return "".join(f'<p class="card">{escape(example["text"])}</p>' for example in side[0].examples)


DRAWN: dict[str, tuple[str, Callable[[Side], str]]] = {
    "agnosticism": ("Language-agnosticism panel", _panel),
    "token_matching": ("Token matching", _token_matching),
    "attention_entropy": ("Attention of the first token", _attention),
    "word_order": ("Word order", _word_order),
    "uniform_pooling": ("Uniform pooling", lambda side: ""),
}
