"""Blocks of plain text: wrapped lines joined to paragraphs, headings and list items recognized.

A heading is a line between blank lines that is underlined, or numbered, or short and without a mark
at its end. The first line of a text needs no blank line above it.

The time is linear in the number of characters, because documents may be malicious.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlingua.corpus.documents.units import HEADING, ITEM, PARAGRAPH, TextBlock
from interlingua.corpus.segments.sentence_splitting import CLOSING, WRAPPED_AT_MOST, paragraphs

_UNDERLINE = re.compile(r"=+|-+|~+|\*+|_+|—+|─+|═+")
ITEM_MARK = re.compile(
    r"(?:[-*+•‣◦▪●○–—·・]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|[①-⑳])(?:[ \t\u3000]+)(?=\S)"
)
_NUMBERED = re.compile(r"(?:\d{1,3}(?:\.\d{1,3})*\.?|[IVXLC]{1,7}\.|[A-Z]\.)[ \t]+(?=\S)")
_CHAPTER = re.compile(
    r"第[0-9０-９〇零一二三四五六七八九十百千]{1,6}[章节節回卷部編编篇話话]|제 ?\d{1,4}[장절부]"
)
SHORT_HEADING = 60
"""Maximum characters of a short heading; Chinese and Japanese characters count twice."""
_USUAL_SHARE = 0.98
"""Share of the lines that are not longer than the width."""
_MOST_ENDED = 0.5
"""Maximum share of the lines of wrapped text that end with a mark that ends a sentence."""
SENTENCE_ENDS = tuple(".!?…。！？।॥؟۔።։။")
_MARKS = '.!?…。！？।॥؟۔։።:;,：；，、،؛"”»」』)–—-'
"""Ends of lines that are no headings."""


def text_blocks(content: str) -> list[TextBlock]:
    """Return the blocks of a plain text."""
    lines = [line.rstrip() for line in content.replace("\f", "\n\n").splitlines()]
    groups = list(_groups(lines))
    width = wrapped_width(groups)
    blocks: list[TextBlock] = []
    for number, group in enumerate(groups):
        is_last = number == len(groups) - 1
        blocks += _blocks_of(group, width, is_last)
    return blocks


def _groups(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines between blank ones."""
    group: list[str] = []
    for line in lines:
        if line.strip():
            group.append(line)
        elif group:
            yield group
            group = []
    if group:
        yield group


def wrapped_width(groups: list[list[str]]) -> int:
    """Return the width at which a text was wrapped; 0 if each line is a paragraph.

    A few lines may be longer, because web addresses cannot be wrapped. In a text with one sentence
    per line, most lines end with a mark that ends a sentence.

    Args:
        groups: lines between blank ones.
    """
    inner = [line.strip() for group in groups for line in group[:-1]]
    if not inner:
        return 0
    lengths = sorted(len(line.strip()) for group in groups for line in group)
    width = lengths[int(_USUAL_SHARE * (len(lengths) - 1))]
    ended = sum(line.rstrip(CLOSING)[-1:] in SENTENCE_ENDS for line in inner)
    if width > WRAPPED_AT_MOST or ended > _MOST_ENDED * len(inner):
        return 0
    return width


def _blocks_of(group: list[str], width: int, is_last: bool) -> Iterator[TextBlock]:
    """Yield the blocks of the lines between two blank ones."""
    first = group[0].strip()
    if len(group) > 1 and _is_underline(group[1].strip(), first):
        level = 1 if group[1].strip()[0] in "=═*" else 2
        yield TextBlock(first, HEADING, level)
        group = group[2:]
    elif len(group) == 1 and not is_last and _is_heading(first):
        yield TextBlock(first, HEADING, _heading_level(first))
        return
    parts: list[str] = []
    kind = PARAGRAPH
    for line in group:
        # Between paragraphs there may be lines of only marks.
        if _UNDERLINE.fullmatch(line.strip()):
            continue
        mark = ITEM_MARK.match(line.strip())
        if mark and (kind == ITEM or not parts):
            yield from _paragraphs(parts, kind, width)
            parts = [line.strip()[mark.end() :]]
            kind = ITEM
        else:
            parts.append(line)
    yield from _paragraphs(parts, kind, width)


def _paragraphs(lines: list[str], kind: str, width: int) -> Iterator[TextBlock]:
    for text in paragraphs(lines, width):
        yield TextBlock(text, kind, int(kind == ITEM))


def _is_underline(line: str, above: str) -> bool:
    """Return whether a line underlines the one above."""
    if len(line) < 3 or not _UNDERLINE.fullmatch(line):
        return False
    return not _UNDERLINE.fullmatch(above) and len(above) <= 2 * SHORT_HEADING


def _is_heading(line: str) -> bool:
    """Return whether a line between blank ones is a heading."""
    columns = sum(2 if one > "\u2e80" else 1 for one in line[: SHORT_HEADING + 1])
    if columns > SHORT_HEADING or not any(map(str.isalnum, line)):
        return False
    if _CHAPTER.match(line) or _NUMBERED.match(line):
        return line[-1] not in ",;،؛，；、"
    if ITEM_MARK.match(line) or line[-1] in _MARKS:
        return False
    first = next(one for one in line if one.isalnum())
    return not first.islower()


def _heading_level(line: str) -> int:
    """Return the level of a heading by its number: 1 for ``2.`` and 2 for ``2.1``."""
    number = re.match(r"\d{1,3}(?:\.\d{1,3})*", line)
    return min(6, 1 + number[0].count(".")) if number else 1
