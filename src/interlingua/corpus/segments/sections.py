"""Sections of documents: Markdown, HTML and plain text, with their headings.

A section is the text between two headings. It knows the title of the document, the headings above
it, and the place in the document's text where it begins. The text of Markdown is the file as it is,
with its markup; that of HTML is what a browser would show, a line for each block.

The time is linear in the characters: documents come from strangers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple

from interlingua.errors import DataError
from interlingua.storage.files import PathLike, open_text, stem_and_suffix

MARKDOWN_SUFFIXES = (".md", ".markdown")
HTML_SUFFIXES = (".html", ".htm", ".xhtml")
DOCUMENT_SUFFIXES = (*MARKDOWN_SUFFIXES, *HTML_SUFFIXES)
HEADING_SEPARATOR = " › "
LONGEST_HEADING = 300
"""Characters; a longer one is a paragraph, as in HTML with a heading that is not closed."""
LONGEST_DOCUMENT = 2**28
"""Characters. A document is in memory as a whole."""
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(\S.*)$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|(-+))[ \t]*")
# Tags after which the text goes on in the same line.
_INLINE_NAMES = """
a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark meter output q
ruby s samp small span strike strong sub sup time tt u var wbr
"""
_INLINE = frozenset(_INLINE_NAMES.split())


class DocumentSection(NamedTuple):
    """A part of a document.

    Attributes:
        text: without the headings above it.
        offset: characters of the document's text before it.
        title: of the document; may be empty.
        headings: above the section, outermost first, without the title.
    """

    text: str
    offset: int
    title: str = ""
    headings: tuple[str, ...] = ()


class _Heading(NamedTuple):
    """A heading and its place in the document's text."""

    level: int
    text: str
    start: int
    stop: int


def is_document(path: PathLike) -> bool:
    """Return whether a file is a document by its name: Markdown or HTML."""
    return stem_and_suffix(path)[1] in DOCUMENT_SUFFIXES


def read_sections(path: PathLike) -> Iterator[DocumentSection]:
    """Yield the sections of a document that have some text.

    A heading without text, and without a heading below it, is its own text.

    Args:
        path: ``.md``, ``.html`` and the like; any other file is plain text, one section.

    Raises:
        DataError: the file is missing, not UTF-8, binary, or too long.
    """
    suffix = stem_and_suffix(path)[1]
    is_markup = suffix in DOCUMENT_SUFFIXES
    with open_text(path, in_lines=False, any_text=is_markup) as file:
        content = file.read(LONGEST_DOCUMENT + 1)
    if len(content) > LONGEST_DOCUMENT:
        raise DataError(f"longer than {LONGEST_DOCUMENT:,} characters; cut it in files", path=path)
    title = ""
    headings: list[_Heading] = []
    start = 0
    if suffix in MARKDOWN_SUFFIXES:
        title, start = _front_matter(content)
        headings = list(_markdown_headings(content, start))
    elif suffix in HTML_SUFFIXES:
        parser = _Document()
        parser.feed(content)
        parser.close()
        content, title, headings = parser.result()
    yield from _sections(content, start, title, headings)


def _sections(
    content: str, start: int, title: str, headings: list[_Heading]
) -> Iterator[DocumentSection]:
    """Yield the parts of a text between its headings."""
    if not title:
        title = next((heading.text for heading in headings if heading.level == 1), "")
    above: list[_Heading] = []
    # The text in front of the first heading has none.
    bounds = [_Heading(0, "", start, start), *headings]
    for number, heading in enumerate(bounds):
        following = bounds[number + 1] if number + 1 < len(bounds) else None
        stop = following.start if following else len(content)
        above = [one for one in above if one.level < heading.level]
        if heading.text:
            above.append(heading)
        names = tuple(one.text for one in above if one.text != title)
        text = content[heading.stop : stop]
        if text.strip():
            yield DocumentSection(text, heading.stop, title, names)
        elif heading.text and (following is None or following.level <= heading.level):
            # It would be lost: no section below it shows it.
            yield DocumentSection(
                content[heading.start : heading.stop], heading.start, title, names[:-1]
            )


def _front_matter(content: str) -> tuple[str, int]:
    """Return the title in the front matter of Markdown, and where the text begins."""
    matter = _FRONT_MATTER.match(content)
    if matter is None:
        return "", 0
    found = _FRONT_TITLE.search(matter[1])
    title = found[1].strip().strip("\"'") if found else ""
    return title, matter.end()


def _markdown_headings(content: str, start: int) -> Iterator[_Heading]:
    """Yield the headings of Markdown: ``# Heading``, or a line with ``===`` or ``---`` below it."""
    fence = ""
    at = start
    # A heading with a line below it is a paragraph of one line.
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
            yield _Heading(len(heading[1]), name, at, at + len(line))
            text = ""
        elif underline and previous.strip() and not before.strip():
            level = 1 if underline[1] else 2
            yield _Heading(level, previous.strip(), at - len(previous), at + len(line))
            text = ""
        before = previous
        previous = line if text else ""
        at += len(line)


def _without_closing_marks(text: str) -> str:
    """Return the text of a heading without the ``#`` that may close it."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.strip() if not bare or bare[-1] in " \t" else text


class _Document(HTMLParser):
    """Takes the text and the headings out of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._length = 0
        self._title = ""
        self._in_title = False
        self._preformatted = 0
        self._headings: list[_Heading] = []
        # Level and place of a heading that is not closed yet.
        self._open: tuple[int, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _INLINE:
            return
        self._close_heading()
        self._break_line()
        if tag == "title":
            self._in_title = not self._title
        elif tag == "pre":
            self._preformatted += 1
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._open = int(tag[1]), self._length

    def handle_endtag(self, tag: str) -> None:
        if tag in _INLINE:
            return
        self._close_heading()
        self._break_line()
        if tag == "title":
            self._in_title = False
        elif tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)

    def handle_data(self, data: str) -> None:
        # What is inside of script and style.
        if self.cdata_elem in ("script", "style"):
            return
        if self._in_title:
            self._title = f"{self._title} {' '.join(data.split())}".strip()
            return
        if not self._preformatted:
            data = re.sub(r"\s+", " ", data)
            if not self._parts or self._parts[-1][-1:].isspace():
                data = data.lstrip()
        self._add(data)

    def result(self) -> tuple[str, str, list[_Heading]]:
        """Return the text, the title and the headings."""
        self._close_heading()
        headings = [one for one in self._headings if 0 < len(one.text) <= LONGEST_HEADING]
        return "".join(self._parts), self._title, headings

    def _add(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)

    def _break_line(self) -> None:
        if self._parts and not self._parts[-1].endswith("\n"):
            self._add("\n")

    def _close_heading(self) -> None:
        if self._open is None:
            return
        level, start = self._open
        self._open = None
        # The parts of a heading are the last ones.
        pieces: list[str] = []
        left = self._length - start
        for part in reversed(self._parts):
            if left <= 0:
                break
            pieces.append(part)
            left -= len(part)
        text = " ".join("".join(reversed(pieces)).split())
        self._headings.append(_Heading(level, text, start, self._length))


def joined_headings(*names: str) -> str:
    """Return a title and headings as one text, without empty ones."""
    return HEADING_SEPARATOR.join(name for name in names if name)
