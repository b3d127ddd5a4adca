"""Blocks of Markdown: headings, paragraphs, list items, table cells and code.

This module reads the blocks of CommonMark and GitHub's tables. Marks inside of a block are removed:
emphasis, the addresses of links, and tags of HTML.

The time is linear in the number of characters, because documents may be malicious.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from interlingua.corpus.documents.units import (
    CELL,
    HEADING,
    ITEM,
    PARAGRAPH,
    SOURCE_CODE,
    TextBlock,
)

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_FRONT_VALUE = re.compile(r"^(title|lang|language):[ \t]*(\S.*)$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|(-+))[ \t]*")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(?:\[[ xX]\][ \t]+)?|$)")
_QUOTE = re.compile(r" {0,3}>[ \t]?")
_TABLE_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_DEFINITION = re.compile(r" {0,3}\[[^\]\[]{1,999}\]:[ \t]*\S")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_LINK = re.compile(
    r"!?\[((?:[^\[\]\\]|\\.){0,1000})\]"
    r"(?:\([^()\s]{0,2000}(?:[ \t]+\"[^\"]{0,500}\")?\)|\[[^\[\]]{0,500}\])"
)
_ADDRESS = re.compile(r"<((?:https?|mailto|ftp):[^\s<>]{1,2000})>")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>|<!--.{0,1000}?-->")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#.:][^{}]{0,200}\}[ \t]*$")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,500}?)(?<!`)\1(?!`)")
_EMPHASIS = re.compile(r"(\*{1,3}|~~)(?=\S)([^*~]{1,2000}?)(?<=\S)\1")
_UNDERSCORES = re.compile(r"(?<!\w)(_{1,3})(?=\S)([^_]{1,2000}?)(?<=\S)\1(?!\w)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_TABS = 4
_ITEM_INDENT = 2
"""Minimum indentation of the text of an item, in columns from the item's mark."""


class FoundHeading(NamedTuple):
    """A heading and its place in the document's text."""

    level: int
    text: str
    start: int
    stop: int


class FrontMatter(NamedTuple):
    """The front matter above a text of Markdown.

    Attributes:
        title: of the document; may be empty.
        language: as it is written.
        stop: position at which the front matter ends and the text starts.
    """

    title: str = ""
    language: str = ""
    stop: int = 0


def read_front_matter(content: str) -> FrontMatter:
    """Return the title and the language in the front matter of Markdown."""
    matter = _FRONT_MATTER.match(content)
    if matter is None:
        return FrontMatter()
    found = {key: value.strip().strip("\"'") for key, value in _FRONT_VALUE.findall(matter[1])}
    language = found.get("lang", found.get("language", ""))
    return FrontMatter(found.get("title", ""), language, matter.end())


def markdown_headings(content: str, start: int) -> Iterator[FoundHeading]:
    """Yield the headings: ``# Heading``, or a line with ``===`` or ``---`` below it."""
    fence = ""
    at = start
    # A heading that is underlined must be a paragraph of one line.
    previous = before = ""
    for line in content[start:].splitlines(keepends=True):
        text = line.strip()
        mark = _FENCE.match(line)
        heading = _HEADING.match(line)
        underline = _UNDERLINE.fullmatch(line.rstrip("\r\n"))
        if fence:
            is_end = mark is not None and mark[1].startswith(fence) and text == mark[1]
            if is_end:
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading:
            name = _without_closing_marks(text[len(heading[1]) :])
            yield FoundHeading(len(heading[1]), name, at, at + len(line))
            text = ""
        elif underline and previous.strip() and not before.strip():
            level = 1 if underline[1] else 2
            yield FoundHeading(level, previous.strip(), at - len(previous), at + len(line))
            text = ""
        before = previous
        previous = line if text else ""
        at += len(line)


def _without_closing_marks(text: str) -> str:
    """Return the text of a heading without the ``#`` that may close it."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.strip() if not bare or bare[-1] in " \t" else text


def markdown_blocks(content: str, start: int = 0) -> list[TextBlock]:
    """Return the blocks of Markdown.

    Args:
        content: of the file.
        start: where the text starts, behind the front matter.
    """
    headings = iter(markdown_headings(content, start))
    reader = _BlockReader()
    at = start
    heading = next(headings, None)
    for line in content[start:].splitlines(keepends=True):
        end = at + len(line)
        if heading is not None and at >= heading.start:
            # A heading that is underlined has two lines.
            if end >= heading.stop:
                reader.add_heading(heading)
                heading = next(headings, None)
        else:
            reader.add_line(line.rstrip("\r\n"))
        at = end
    reader.end_block()
    return reader.blocks


class _BlockReader:
    """A builder of blocks from lines."""

    def __init__(self) -> None:
        self.blocks: list[TextBlock] = []
        self._lines: list[str] = []
        self._kind = PARAGRAPH
        self._indents: list[int] = []
        """For each open list item, the minimum indentation of a line that belongs to the item."""
        self._fence = ""
        self._was_blank = True
        self._is_table = False

    def add_heading(self, heading: FoundHeading) -> None:
        """Add a heading, which ends the open block and all open lists."""
        self.end_block()
        self._indents = []
        self._was_blank = True
        text = _ATTRIBUTES.sub("", heading.text)
        self.blocks.append(TextBlock(plain_markdown(text), HEADING, heading.level))

    def add_line(self, line: str) -> None:
        """Add a line that is not part of a heading."""
        mark = _FENCE.match(line.lstrip() if self._indents else line)
        if self._fence:
            self._add_code(line, mark)
        elif mark:
            self.end_block()
            self._fence = mark[1]
            self._kind = SOURCE_CODE
        elif not line.strip():
            self.end_block()
            self._was_blank = True
        else:
            self._add_text(line.expandtabs(_TABS))
            self._was_blank = False

    def _add_code(self, line: str, mark: re.Match[str] | None) -> None:
        if mark is not None and mark[1].startswith(self._fence) and line.strip() == mark[1]:
            self._fence = ""
            self.end_block()
        else:
            self._lines.append(line)

    def _add_text(self, line: str) -> None:
        indent = len(line) - len(line.lstrip())
        if self._was_blank:
            # Text that is indented less than the text of an item is outside of the item.
            while self._indents and indent < self._indents[-1] and not _ITEM.match(line):
                self._indents.pop()
        quote = _QUOTE.match(line)
        while quote:
            line = line[quote.end() :]
            quote = _QUOTE.match(line)
        item = _ITEM.match(line)
        is_code = (
            not self._indents and indent >= 4 and (self._was_blank or self._kind == SOURCE_CODE)
        )
        if _RULE.fullmatch(line):
            self.end_block()
            self._indents = []
        elif is_code:
            self._kind = SOURCE_CODE
            self._lines.append(line)
        elif item and not (self._lines and self._kind == PARAGRAPH and item.end() == len(line)):
            self._begin_item(len(item[1]), line[item.end() :])
        elif self._is_row(line):
            self._add_row(line)
        elif line.strip() and not _DEFINITION.match(line):
            self._lines.append(line.strip() + ("\n" if line.endswith("  ") else ""))

    def _begin_item(self, indent: int, text: str) -> None:
        self.end_block()
        while self._indents and indent < self._indents[-1]:
            self._indents.pop()
        self._indents.append(indent + _ITEM_INDENT)
        self._lines.append(text)

    def _is_row(self, line: str) -> bool:
        """Return whether a line is a row of a table."""
        if self._is_table:
            return "|" in line
        if line.lstrip().startswith("|"):
            return True
        # The rule below the names of the columns shows that the line above it is a table row.
        return (
            len(self._lines) == 1
            and "|" in line
            and _TABLE_RULE.fullmatch(line.strip()) is not None
        )

    def _add_row(self, line: str) -> None:
        if not self._is_table:
            head = self._lines
            self._lines = []
            self._is_table = True
            for row in head:
                self._add_cells(row)
        if not _TABLE_RULE.fullmatch(line.strip()):
            self._add_cells(line)

    def _add_cells(self, row: str) -> None:
        for cell in _CELL_BORDER.split(row.strip().removeprefix("|").removesuffix("|")):
            text = plain_markdown(cell.replace("\\|", "|"))
            if text.strip():
                self.blocks.append(TextBlock(text, CELL))

    def end_block(self) -> None:
        """End the block that is open."""
        lines = self._lines
        kind = self._kind
        self._lines = []
        self._kind = PARAGRAPH
        self._is_table = False
        if kind == SOURCE_CODE:
            self.blocks.append(TextBlock("\n".join(lines), SOURCE_CODE))
            return
        text = plain_markdown("\n".join(lines))
        if not text.strip():
            return
        if self._indents:
            self.blocks.append(TextBlock(text, ITEM, len(self._indents)))
        else:
            self.blocks.append(TextBlock(text, PARAGRAPH))


def plain_markdown(text: str) -> str:
    """Return the text of a block without its marks, as a browser would show it."""
    if not re.search(r"[\\`*_~\[<&]", text):
        return text
    # Code is shown as it is written, so code spans are kept apart until the end.
    kept: list[str] = []

    def set_aside(found: re.Match[str]) -> str:
        kept.append(found[found.lastindex or 0])
        return f"\x00{len(kept) - 1}\x00"

    text = text.replace("\x00", "")
    text = _CODE_SPAN.sub(set_aside, text)
    text = _ESCAPED.sub(set_aside, text)
    text = _ADDRESS.sub(set_aside, text)
    # An image may be the text of a link.
    for _ in range(2):
        text = _LINK.sub(r"\1", text)
    text = _TAG.sub("", text)
    for _ in range(2):
        text = _EMPHASIS.sub(r"\2", text)
        text = _UNDERSCORES.sub(r"\2", text)
    text = html.unescape(text)
    return re.sub("\x00(\\d+)\x00", lambda found: kept[int(found[1])], text)
