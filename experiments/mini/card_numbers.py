"""Put the tables of docs/results/ into the cards of mini and nano, behind ``## Numbers``.

    python experiments/mini/card_numbers.py

To be run when ship.py has written a model and its table is in docs/results/.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from interlingua.storage.files import atomic_write

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from ship import DIGEST, digest

from tools.draw_mixed_pool import ROOT, results_text, tables

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
        "mini on every measure",
        ("mini", "multilingual-e5-small", "mUSE", "all-MiniLM-L6-v2"),
    ),
    Card(
        ROOT / "models/nano/src/interlingua_nano/model/README.md",
        "nano, a table of token vectors",
        ("nano", "mini"),
    ),
)


def table_of(card: Card, results: str) -> str:
    """Return the card's table in Markdown.

    Raises:
        LookupError: the results have no such section, or its first table no such column.
    """
    rows = tables(results, card.section)[0]
    lines = [("measure", *card.columns), ("---", *["---:"] * len(card.columns))]
    lines += [(name, *(row[column] for column in card.columns)) for name, row in rows.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_numbers(card: str, table: str) -> str:
    """Replace the section of numbers in a card by this table.

    Raises:
        ValueError: it has no such section.
    """
    before, heading, rest = card.partition(HEADING)
    if not heading:
        raise ValueError(f"the card has no {HEADING.strip()!r}")
    after = rest.partition("\n## ")
    return before + heading + table + REMARK + "".join(after[1:])


def main() -> None:
    """Write both cards, and mini's digest, which includes its card."""
    results = results_text()
    for card in CARDS:
        text = with_numbers(card.path.read_text(encoding="utf-8"), table_of(card, results))
        with atomic_write(card.path) as file:
            file.write(text)
    packed = CARDS[0].path.parent
    (packed / DIGEST).write_text(digest(packed) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
