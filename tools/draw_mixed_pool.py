#!/usr/bin/env python3
"""Draw the README's picture, docs/mixed-pool.svg, from the tables of docs/results/.

    python tools/draw_mixed_pool.py

A row for each model: how many translations it finds among the sentences of one language (own pool),
and among those of 15 languages together (mixed pool). The picture has colors for light and for dark
pages.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PICTURE = ROOT / "docs" / "mixed-pool.svg"

WIDTH = 760
LEFT = 270
"""Start of the scale in SVG units; names are to the left of it."""
RIGHT = 52
TOP = 84
ROW = 44
STYLE = """
  .page { fill: #ffffff; } .text { fill: #1f2328; } .faint { fill: #59636e; } .grid { stroke: #d1d9e0; }
  .span { stroke: #b6c2cf; } .own { fill: #ffffff; stroke: #0b6e99; } .mixed { fill: #0b6e99; stroke: #0b6e99; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } .text { fill: #f0f6fc; } .faint { fill: #9198a1; } .grid { stroke: #3d444d; }
    .span { stroke: #59636e; } .own { fill: #0d1117; stroke: #58b9e0; } .mixed { fill: #58b9e0; stroke: #58b9e0; }
  }
"""


class Row(NamedTuple):
    """A model in the picture, with both accuracies in percent."""

    name: str
    note: str
    own_pool: float
    mixed_pool: float


def results_text(folder: Path = RESULTS) -> str:
    """Return the text of all pages with results, joined.

    Args:
        folder: of the pages, Markdown.
    """
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted(folder.glob("*.md")))


def tables(text: str, heading: str) -> list[dict[str, dict[str, str]]]:
    """Return the tables of a page below a heading and before the next one.

    Args:
        text: of one or more pages, Markdown.
        heading: of the section, without its marks.

    Returns:
        For each table: first cell of a row -> head of the column -> cell, without bold marks.

    Raises:
        LookupError: the text has no such section.
    """
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"no section {heading!r}")
    parsed = []
    for block in re.findall(r"(?:^\|.*\n)+", found.group(1), re.MULTILINE):
        lines = [
            [cell.strip(" *") for cell in line.strip("|").split("|")] for line in block.splitlines()
        ]
        head = lines[0]
        parsed.append({line[0]: dict(zip(head[1:], line[1:], strict=True)) for line in lines[2:]})
    return parsed


def number(cell: str) -> float:
    """Return the value of a cell, without a standard deviation."""
    return float(cell.split(" ±")[0].strip(" *"))


def rows(text: str) -> list[Row]:
    """Return the models, best in the mixed pool first.

    Args:
        text: of the pages in docs/results/.
    """
    [panel] = tables(text, "agnosticism: 15 languages, 1,012 lines each of flores200_devtest")
    own = panel["accuracy own pool, %"]
    mixed = panel["accuracy mixed pool, %"]
    [mapped] = tables(text, "Vectors without language")
    with_map = "with the map (`project`, 14 directions)"
    [trained] = tables(text, "Anchor compared with distillation")
    student = trained["anchor (3 seeds)"]
    small = tables(text, "mini on every measure")[0]
    minutes = round(number(student["training CPU seconds"]) / 60)

    def of_panel(name: str, note: str) -> Row:
        return Row(name, note, number(own[name]), number(mixed[name]))

    found = [
        Row(
            "mini",
            "comes with this library; 57 languages",
            number(small["the same, own pool"]["mini"]),
            number(small["mixed pool of 15 languages"]["mini"]),
        ),
        of_panel("multilingual-e5-small", "as it is"),
        of_panel("mUSE", "16 languages, these among them"),
        of_panel("all-MiniLM-L6-v2", "a model of English"),
        Row(
            "multilingual-e5-small, debiased",
            "interlingua debias: a linear map",
            number(mapped["FLORES-200, 15 languages: own pool, %"][with_map]),
            number(mapped["FLORES-200, 15 languages: mixed pool, %"][with_map]),
        ),
        Row(
            "multilingual-e5-small, 4 layers",
            f"method anchor, {minutes} CPU minutes",
            number(student["own pool"]),
            number(student["mixed_pool: accuracy mixed pool, mean of 15"]),
        ),
    ]
    return sorted(found, key=lambda row: -row.mixed_pool)


def draw(models: Sequence[Row]) -> str:
    """Draw the picture as SVG.

    Args:
        models: a row each, from above.
    """
    height = TOP + ROW * len(models) + 34

    def at(percent: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * percent / 100, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-size="13"'
        ' font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" role="img">',
        "<title>Translations found in the own pool and in the mixed pool</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>',
        '<text class="text" x="20" y="30" font-size="16" font-weight="600">'
        "Translations found once all languages share one index, %</text>",
        '<circle class="own" cx="26" cy="52" r="5" stroke-width="2"/>'
        '<text class="faint" x="38" y="56">among the sentences of one language</text>',
        '<circle class="mixed" cx="346" cy="52" r="5" stroke-width="2"/>'
        '<text class="faint" x="358" y="56">among the sentences of 15 languages together</text>',
    ]
    bottom = TOP + ROW * len(models)
    for percent in range(0, 101, 20):
        x = at(percent)
        parts.append(f'<line class="grid" x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{bottom}"/>')
        parts.append(
            f'<text class="faint" x="{x}" y="{bottom + 20}" text-anchor="middle">{percent}</text>'
        )
    for place, row in enumerate(models):
        y = TOP + ROW * place + 16
        own, mixed = at(row.own_pool), at(row.mixed_pool)
        parts += [
            f'<text class="text" x="20" y="{y - 2}">{escape(row.name)}</text>',
            f'<text class="faint" x="20" y="{y + 14}" font-size="11">{escape(row.note)}</text>',
            f'<line class="span" x1="{mixed}" y1="{y}" x2="{own}" y2="{y}" stroke-width="4"/>',
            f'<circle class="own" cx="{own}" cy="{y}" r="6" stroke-width="2"/>',
            f'<circle class="mixed" cx="{mixed}" cy="{y}" r="6" stroke-width="2"/>',
            f'<text class="text" x="{own + 11}" y="{y + 4}">{row.own_pool:.1f}</text>',
            f'<text class="text" x="{mixed - 11}" y="{y + 4}" text-anchor="end" font-weight="600">'
            f"{row.mixed_pool:.1f}</text>",
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the pages")
    parser.add_argument("--output", type=Path, default=PICTURE)
    options = parser.parse_args(arguments)
    options.output.write_text(draw(rows(results_text(options.results))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
