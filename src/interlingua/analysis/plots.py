"""Drawings for the page: HTML and SVG fragments that need only the page's style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

CELL = 18
"""Side of a heat map's cell, SVG units."""
LABEL = 74
"""Room for a language's code next to a heat map."""


class Dot(NamedTuple):
    """A point on a scale.

    Attributes:
        value: where.
        label: for whoever points at it.
        kind: ``m0`` and ``m1`` are the models, ``ideal`` and ``paper`` others' numbers.
        low: lower end of its interval.
        high: upper end.
    """

    value: float
    label: str
    kind: str
    low: float | None = None
    high: float | None = None


def scale(dots: Sequence[Dot], *, low: float, high: float) -> str:
    """A line with dots, their intervals, and ticks for other numbers.

    Args:
        dots: all of them within the scale, or set at its ends.
        low: of the scale.
        high: of the scale.
    """
    span = high - low or 1.0

    def at(value: float) -> float:
        return 100 * min(1.0, max(0.0, (value - low) / span))

    parts = []
    for dot in dots:
        if dot.low is not None and dot.high is not None:
            width = at(dot.high) - at(dot.low)
            parts.append(f'<b class="{dot.kind}" style="left:{at(dot.low):.2f}%;width:{width:.2f}%"></b>')
    for dot in dots:
        parts.append(f'<i class="{dot.kind}" style="left:{at(dot.value):.2f}%" title="{escape(dot.label)}"></i>')
    return f'<div class="scale">{"".join(parts)}</div>'


def bars(rows: Sequence[tuple[str, Sequence[tuple[float, str]]]], *, highest: float) -> str:
    """Names with a bar for each model.

    Args:
        rows: name, and the value of each model with its text.
        highest: what a full bar stands for.
    """
    lines = []
    for name, values in rows:
        drawn = "".join(
            f'<span class="bar"><i class="m{place}" style="width:{100 * max(0.0, value) / (highest or 1):.1f}%"></i>'
            f"</span><span>{escape(text)}</span>"
            for place, (value, text) in enumerate(values)
        )
        lines.append(f'<div class="name">{escape(name)}</div><div class="values">{drawn}</div>')
    return f'<div class="bars">{"".join(lines)}</div>'


def stacked(rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """A bar per row with shares as its parts, and a legend.

    Args:
        rows: name, and part -> share; the parts are the same in every row.
    """
    names = list(rows[0][1])
    legend = "".join(
        f'<span><i class="key c{place}"></i>{escape(_words(name))}</span>' for place, name in enumerate(names)
    )
    lines = []
    for name, shares in rows:
        parts = "".join(
            f'<i class="c{place}" style="width:{100 * shares[part]:.2f}%" title="{escape(_words(part))}:'
            f' {100 * shares[part]:.1f} %">{f"{100 * shares[part]:.0f}" if shares[part] >= 0.07 else ""}</i>'
            for place, part in enumerate(names)
        )
        lines.append(f'<div class="name">{escape(name)}</div><div class="stack">{parts}</div>')
    return f'<div class="legend">{legend}</div><div class="stacks">{"".join(lines)}</div>'


def heat_map(values: Mapping[str, float], languages: Sequence[str], *, title: str) -> str:
    """A grid of ordered pairs of languages; rows are sources, columns targets, dark is high.

    Args:
        values: ``deu_Latn-eng_Latn`` -> share.
        languages: in the order of rows and columns.
        title: for who can't see it.
    """
    side = LABEL + CELL * len(languages)
    parts = []
    for row, source in enumerate(languages):
        y = LABEL + CELL * row
        parts.append(f'<text x="{LABEL - 6}" y="{y + 13}" text-anchor="end">{source}</text>')
        parts.append(f'<text transform="translate({LABEL + CELL * row + 13},{LABEL - 6}) rotate(-90)">{source}</text>')
        for column, target in enumerate(languages):
            value = values.get(f"{source}-{target}")
            if value is not None:
                parts.append(
                    f'<rect x="{LABEL + CELL * column}" y="{y}" width="{CELL - 1}" height="{CELL - 1}"'
                    f' fill-opacity="{0.04 + 0.96 * value:.3f}"><title>{source} to {target}: {100 * value:.1f} %'
                    "</title></rect>"
                )
    return (
        f'<div class="scroll"><svg class="heat" role="img" aria-label="{escape(title)}" viewBox="0 0 {side} {side}"'
        f' style="width:{side}px;min-width:{min(side, 900)}px">{"".join(parts)}</svg></div>'
    )


def marked_text(text: str, start: int, end: int, kind: str, *, around: int = 110) -> str:
    """A text with one part marked, cut to what stands around it.

    Args:
        text: the whole.
        start: of the part.
        end: of the part.
        kind: class of the mark.
        around: characters kept on either side.
    """
    while start < end and text[start].isspace():  # a piece may begin with the space before its word
        start += 1
    first = max(0, start - around)
    last = min(len(text), end + around)
    before = "…" * (first > 0) + text[first:start]
    after = text[end:last] + "…" * (last < len(text))
    return f'{escape(before)}<mark class="{kind}">{escape(text[start:end])}</mark>{escape(after)}'


def attention(tokens: Sequence[tuple[str, float, bool]]) -> str:
    """A sentence with tokens that are darker the more attention they get; special tokens stand in frames.

    Args:
        tokens: text, weight and whether it is special; weights are shown relative to the largest one of text.
    """
    most = max((weight for _, weight, special in tokens if not special), default=0.0) or 1.0
    parts = []
    for text, weight, special in tokens:
        share = min(1.0, weight / most)
        kind = " special" if special else ""
        ink = " dark" if share > 0.55 else ""
        parts.append(
            f'<span class="tok{kind}{ink}" style="--w:{share:.3f}" title="{100 * weight:.1f} %">{escape(text)}</span>'
        )
    return f'<p class="attention" dir="auto">{"".join(parts)}</p>'


def heads(tokens: Sequence[str], weights: Sequence[Sequence[float]]) -> str:
    """A grid of tokens and heads.

    Args:
        tokens: a row each.
        weights: of each token, one per head.
    """
    body = "".join(
        f"<tr><th>{escape(token)}</th>"
        + "".join(f'<td style="--w:{min(1.0, weight):.3f}" title="{100 * weight:.1f} %"></td>' for weight in row)
        + "</tr>"
        for token, row in zip(tokens, weights, strict=True)
    )
    numbers = "".join(f"<th>{number + 1}</th>" for number in range(len(weights[0])))
    return f'<div class="scroll"><table class="heads"><tr><th>token, head</th>{numbers}</tr>{body}</table></div>'


def _words(name: str) -> str:
    return name.replace("_", " ")
