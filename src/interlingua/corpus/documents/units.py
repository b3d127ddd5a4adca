"""The parts of a document: headings, paragraphs, list items, table cells and cues."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from interlingua.config.languages import find_code

HEADING = "heading"
PARAGRAPH = "paragraph"
ITEM = "item"
CELL = "cell"
CUE = "cue"
SOURCE_CODE = "code"
DEEPEST_HEADING = 6
LONGEST_HEADING = 300
"""Maximum characters of a heading; a longer one, such as one that is not closed, is a paragraph."""


class TextUnit(NamedTuple):
    """A part of a document, in reading order.

    Attributes:
        text: one paragraph, heading, list item, table cell or cue, without line breaks.
        kind: ``heading``, ``paragraph``, ``item``, ``cell``, ``cue`` or ``code``.
        level: of a heading, 1 to 6; of a list item the number of lists around it; 0 otherwise.
    """

    text: str
    kind: str = PARAGRAPH
    level: int = 0


class TextDocument(NamedTuple):
    """The text of a document.

    Attributes:
        units: its parts in reading order; none is blank.
        title: that the file declares; may be empty.
        language: that the file declares, as a code; empty if it declares none.
        notes: doubts about how the file was read, such as a detected encoding.
    """

    units: list[TextUnit]
    title: str = ""
    language: str = ""
    notes: tuple[str, ...] = ()


class TextBlock(NamedTuple):
    """A part of a document as it was read, with its line breaks."""

    text: str
    kind: str = PARAGRAPH
    level: int = 0


class BlockDocument(NamedTuple):
    """The blocks of a document as they were read, in reading order."""

    blocks: list[TextBlock]
    title: str = ""
    language: str = ""
    notes: tuple[str, ...] = ()


def join_texts(before: str, after: str) -> str:
    """Join two parts of a text with a space, except between Chinese or Japanese characters."""
    if not before or not after:
        return before or after
    if _is_unspaced(before[-1]) and _is_unspaced(after[0]):
        return before + after
    return f"{before} {after}"


def _is_unspaced(character: str) -> bool:
    """Return whether a character is of a wide script without spaces; Korean is wide with spaces."""
    is_wide = unicodedata.east_asian_width(character) in "WF"
    return is_wide and not "\uac00" <= character <= "\ud7a3"


def units_of(blocks: Iterable[TextBlock]) -> list[TextUnit]:
    """Return blocks as units: white space collapsed, without blank ones."""
    units = []
    for text, kind, level in blocks:
        joined = " ".join(text.split())
        if not joined:
            continue
        if kind == HEADING and len(joined) > LONGEST_HEADING:
            kind = PARAGRAPH
            level = 0
        units.append(TextUnit(joined, kind, level))
    return units


def declared_language(name: str | None) -> str:
    """Return the code of a declared language; empty if none is declared or it is unknown."""
    # "en; de" and "en,fr" name several languages; none is that of the whole document.
    found = find_code(name.strip()) if name and name.strip() else None
    if found is None or found.startswith(("und", "mul", "zxx")):
        return ""
    return found
