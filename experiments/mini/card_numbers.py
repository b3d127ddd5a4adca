"""Puts the tables of docs/results.md into the cards of mini and nano, behind ``## Numbers``.

    python experiments/mini/card_numbers.py

To be run when a model was shipped and its table stands in docs/results.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from interlingua.files import atomic_write

sys.path.insert(0, str(Path(__file__).resolve().parent))
from ship import DIGEST, digest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results.md"
HEADING = "## Numbers\n\n"
REMARK = """
In percent; of STS, correlations times 100. What each measure is, and the commands:
`docs/results.md` of interlingua.
"""


class Card(NamedTuple):
    """A model's card, and the table that belongs there."""

    path: Path
    section: str
    columns: tuple[str, ...]


CARDS = (
    Card(
        ROOT / "models/mini/src/interlingua_mini/model/README.md",
        "What mini reaches",
        ("measure", "mini", "multilingual-e5-small", "mUSE", "all-MiniLM-L6-v2"),
    ),
    Card(
        ROOT / "models/nano/src/interlingua_nano/model/README.md",
        "A table of token vectors",
        ("measure", "nano", "mini"),
    ),
)


def first_table(text: str, section: str, columns: tuple[str, ...]) -> str:
    """Some columns of a section's first table, in Markdown.

    Raises:
        ValueError: the page has no such section, or the table no such column.
    """
    found = re.search(rf"^#+ {re.escape(section)}$.*?((?:^\|[^\n]*\n)+)", text, re.MULTILINE | re.S)
    if found is None:
        raise ValueError(f"no section {section!r} with a table")
    rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in found.group(1).splitlines()
    ]
    places = [rows[0].index(column) for column in columns]
    return "".join(f"| {' | '.join(row[place] for place in places)} |\n" for row in rows)


def with_numbers(card: str, table: str) -> str:
    """The card with this table as its section of numbers.

    Raises:
        ValueError: it has no such section.
    """
    before, heading, rest = card.partition(HEADING)
    if not heading:
        raise ValueError(f"the card has no {HEADING.strip()!r}")
    after = rest.partition("\n## ")
    return before + heading + table + REMARK + "".join(after[1:])


def main() -> None:
    """Writes both cards, and mini's digest, which the card is part of."""
    results = RESULTS.read_text(encoding="utf-8")
    for card in CARDS:
        table = first_table(results, card.section, card.columns)
        text = with_numbers(card.path.read_text(encoding="utf-8"), table)
        with atomic_write(card.path) as file:
            file.write(text)
    packed = CARDS[0].path.parent
    (packed / DIGEST).write_text(digest(packed) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
