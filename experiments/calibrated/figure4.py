"""Draw Figure 4 of Ham and Kim (2021): similarity within a language against retrieval.

    interlingua evaluate MODEL --suite sts17,tatoeba -o reports
    python experiments/calibrated/figure4.py reports/results -o figure4.svg

A point for each model with results of both tasks, next to the paper's own points. Across:
Spearman's correlation, mean of the three monolingual sets of STS17 (Table 2). Up: Tatoeba, mean of
14 languages (Table 3); ours is into English.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from interlingua.errors import DataError
from interlingua.evaluation.results import read_results
from interlingua.evaluation.scores import TaskResult

PRINTED = {
    "LASER": (75.4, 95.3),
    "m-USE": (83.2, 93.0),
    "LaBSE": (76.4, 95.3),
    "Reimers and Gurevych (2020)": (84.6, 94.8),
    "Ham and Kim (2021)": (84.8, 95.4),
}
"""Model -> percent of Tables 2 and 3."""
ACROSS = ("sts17", "sts17_monolingual_3of3", "spearman")
UP = ("tatoeba", "muse_14of14", "accuracy_forward")
"""Task, group and metric of each axis."""
SIDE = 460
MARGIN = 60


class Point(NamedTuple):
    """A model in the figure."""

    name: str
    across: float
    up: float
    is_printed: bool


def points(results: Sequence[TaskResult]) -> list[Point]:
    """Return the points of the paper and of all models with both tasks, in percent."""
    found: dict[str, dict[str, float]] = {}
    for result in results:
        model = result.provenance["model"]
        assert isinstance(model, Mapping)
        for task, group, metric in (ACROSS, UP):
            value = result.groups.get(group, {}).get(metric)
            if result.task == task and value is not None:
                found.setdefault(model["name"], {})[task] = 100 * value
    printed = [Point(name, *place, True) for name, place in PRINTED.items()]
    both = {name: scores for name, scores in found.items() if len(scores) == 2}
    return printed + [
        Point(name, scores[ACROSS[0]], scores[UP[0]], False) for name, scores in both.items()
    ]


def draw(shown: Sequence[Point]) -> str:
    """Draw the figure as SVG. The paper's points are hollow."""
    low_x = min(point.across for point in shown) - 1
    high_x = max(point.across for point in shown) + 1
    low_y = min(point.up for point in shown) - 1
    high_y = max(point.up for point in shown) + 1
    size = SIDE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}"'
        f' font-family="sans-serif" font-size="12">',
        f'<rect width="{size}" height="{size}" fill="#fff"/>',
        f'<path d="M{MARGIN} {MARGIN}v{SIDE}h{SIDE}" fill="none" stroke="#59636e"/>',
        f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">STS17 within a language,'
        f" Spearman, %: {low_x:.1f} to {high_x:.1f}</text>",
        f'<text x="{MARGIN}" y="{MARGIN - 20}">Tatoeba, 14 languages, %: {low_y:.1f} to'
        f" {high_y:.1f}</text>",
    ]
    for point in shown:
        x = MARGIN + SIDE * (point.across - low_x) / (high_x - low_x)
        y = MARGIN + SIDE * (high_y - point.up) / (high_y - low_y)
        fill = "#fff" if point.is_printed else "#0b6e99"
        name = escape(point.name)
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}" stroke="#0b6e99"'
            f' stroke-width="2">'
            f"<title>{name}: {point.across:.1f}, {point.up:.1f}</title></circle>",
            f'<text x="{x - 9:.1f}" y="{y + 4:.1f}" text-anchor="end">{name}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path, help="result files, or folders of them")
    parser.add_argument("-o", "--output", type=Path, default=Path("figure4.svg"))
    options = parser.parse_args()
    try:
        shown = points(read_results(options.results))
    except DataError as error:
        parser.error(str(error))
    if all(point.is_printed for point in shown):
        parser.error(
            "no model has results of both tasks; run interlingua evaluate MODEL --suite"
            " sts17,tatoeba"
        )
    options.output.write_text(draw(shown), encoding="utf-8")
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
