"""Blocks of HTML: headings, paragraphs, list items, table cells and code, in reading order.

A block ends where a browser would start a new line. No text is lost if a tag is not
closed, or is closed twice. Text that a reader does not see is left out: scripts, styles, templates,
and the readings above Chinese and Japanese characters.

The time is linear in the number of characters, because documents may be malicious.
"""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

from interlingua.corpus.documents.units import (
    CELL,
    DEEPEST_HEADING,
    HEADING,
    ITEM,
    LONGEST_HEADING,
    PARAGRAPH,
    SOURCE_CODE,
    BlockDocument,
    TextBlock,
    declared_language,
)

# Tags after which the text continues in the same line.
_INLINE_NAMES = """
a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark meter output q
ruby rb s samp small span strike strong sub sup time tt u var wbr
"""
_INLINE = frozenset(_INLINE_NAMES.split())
_READINGS = ("rt", "rp", "rtc")
_HIDDEN = frozenset(("script", "style", "template", "noscript", "iframe", *_READINGS))
"""Elements with content that is not shown, or is no text."""
_LISTS = frozenset(("ul", "ol", "menu", "dl"))
_ITEMS = frozenset(("li", "dt", "dd", "option"))
_CELLS = frozenset(("td", "th"))
_CONTAINERS = _LISTS | _ITEMS | _CELLS | {"table"}
_VOID = frozenset(("br", "hr", "img", "wbr"))
_BREAK = "\n"
_PIECES = re.compile(r"\n[ \t]*\n")


def parse_markup(content: str) -> BlockDocument:
    """Return the blocks, the title and the declared language of HTML or XHTML."""
    parser = _Parser()
    parser.feed(content)
    parser.close()
    parser.end_block()
    blocks = [block for block in parser.blocks if block.text.strip()]
    return BlockDocument(blocks, " ".join("".join(parser.titles).split()), parser.language)


class _Parser(HTMLParser):
    """A parser that collects the blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[TextBlock] = []
        self.titles: list[str] = []
        self.language = ""
        self._in_title = False
        self._parts: list[str] = []
        self._preformatted = 0
        self._heading = 0
        self._hidden: Counter[str] = Counter()
        self._open: list[str] = []
        """Lists, items, tables and cells that are open."""
        self._numbers: Counter[str] = Counter()
        """Number of these open elements by their names."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._find_language(tag, attrs)
        if tag in _HIDDEN:
            self._hidden[tag] += 1
        if tag == "br":
            self._parts.append(_BREAK)
            return
        if tag in _INLINE or tag in _HIDDEN or self._is_hidden():
            return
        self.end_block()
        if tag == "title":
            # Only the first title counts, because an image may have titles as well.
            self._in_title = not self.titles
        elif tag == "pre":
            self._preformatted += 1
        elif len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self._heading = min(max(int(tag[1]), 1), DEEPEST_HEADING)
        elif tag in _CONTAINERS:
            self._open_container(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # <script/> of XHTML is empty, and has no end tag.
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)
        if tag in ("script", "style"):
            self.clear_cdata_mode()

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden[tag] = max(0, self._hidden[tag] - 1)
            if not self._hidden[tag]:
                del self._hidden[tag]
        if tag == "ruby":
            self._end_readings()
        if tag in _INLINE or tag in _HIDDEN or tag == "br" or self._is_hidden():
            return
        self.end_block()
        if tag == "title":
            self._in_title = False
        elif tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        elif self._numbers[tag]:
            self._close_containers(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.titles.append(data)
        elif not self._hidden:
            self._parts.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def end_block(self) -> None:
        """End the block that is open."""
        self._end_readings()
        text = "".join(self._parts)
        self._parts = []
        level = self._heading
        self._heading = 0
        if not text.strip():
            return
        if self._preformatted:
            self.blocks.append(TextBlock(text.strip("\n"), SOURCE_CODE))
            return
        lines = [" ".join(line.split()) for line in text.split(_BREAK)]
        text = _BREAK.join(lines).strip()
        if level and len(text) <= LONGEST_HEADING:
            self.blocks.append(TextBlock(" ".join(text.split()), HEADING, level))
            return
        kind, level = self._kind()
        # Two line breaks are the border of a paragraph.
        for piece in _PIECES.split(text):
            self.blocks.append(TextBlock(piece.strip(), kind, level))

    def _is_hidden(self) -> bool:
        """Return whether all blocks are hidden, by an open element that is not a reading."""
        return any(tag not in _READINGS for tag in self._hidden)

    def _end_readings(self) -> None:
        """End readings above characters, which need no end tags, so that text is shown again."""
        for tag in _READINGS:
            self._hidden.pop(tag, None)

    def _kind(self) -> tuple[str, int]:
        """Return the kind and level of a block by the open elements around it."""
        innermost = self._open[-1] if self._open else ""
        if innermost in _CELLS:
            return CELL, 0
        if innermost in _ITEMS:
            return ITEM, max(1, sum(self._numbers[name] for name in _LISTS))
        return PARAGRAPH, 0

    def _open_container(self, tag: str) -> None:
        if tag in _ITEMS:
            # The item before it may have no end tag.
            while self._open and self._open[-1] in _ITEMS:
                self._pop()
        elif tag in _CELLS and self._numbers["table"]:
            while self._open[-1] != "table":
                self._pop()
        self._open.append(tag)
        self._numbers[tag] += 1

    def _close_containers(self, tag: str) -> None:
        while self._pop() != tag:
            pass

    def _pop(self) -> str:
        tag = self._open.pop()
        self._numbers[tag] -= 1
        return tag

    def _find_language(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the language of the page from its first declaration."""
        if self.language or tag not in ("html", "body", "meta"):
            return
        values = dict(attrs)
        if tag == "meta":
            if (values.get("http-equiv") or "").lower() == "content-language":
                self.language = declared_language(values.get("content"))
            return
        self.language = declared_language(values.get("lang") or values.get("xml:lang"))
