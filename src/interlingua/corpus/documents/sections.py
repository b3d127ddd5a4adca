"""Sections of documents, with their headings, for search.

A section is the text between two headings. It knows the title of the document, the headings above
it, and its offset in the document's text. The text of Markdown is the file as it is, with its
markup; that of other documents is the visible text, a line for each unit.

The time is linear in the number of characters, because documents may be malicious.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from interlingua.corpus.documents.kinds import MARKDOWN_SUFFIXES, SECTION_SUFFIXES
from interlingua.corpus.documents.markdown import (
    FoundHeading,
    markdown_headings,
    read_front_matter,
)
from interlingua.corpus.documents.reading import read_blocks, read_decoded
from interlingua.corpus.documents.units import HEADING, LONGEST_HEADING, TextBlock
from interlingua.errors import DataError
from interlingua.storage.files import PathLike, open_text, stem_and_suffix

log = logging.getLogger("interlingua")
HEADING_SEPARATOR = " › "
LONGEST_DOCUMENT = 2**28
"""Maximum number of characters, because the whole document is in memory."""


class DocumentSection(NamedTuple):
    """A part of a document.

    Attributes:
        text: without the headings above it.
        offset: characters of the document's text before it.
        title: of the document; may be empty.
        headings: above the section, outermost first, without the title.
        language: that the document declares, as a code; may be empty.
    """

    text: str
    offset: int
    title: str = ""
    headings: tuple[str, ...] = ()
    language: str = ""


def read_sections(path: PathLike) -> Iterator[DocumentSection]:
    """Yield the sections of a document that have some text.

    If a heading has neither text nor a lower heading below it, the heading itself is the text.

    Args:
        path: a file of ``SECTION_SUFFIXES``; any other file is plain text, one section.

    Raises:
        DataError: the file is missing, broken, binary, too long, or its encoding is not certain.
    """
    suffix = stem_and_suffix(path)[1]
    title = language = content = ""
    headings: list[FoundHeading] = []
    start = 0
    if suffix in SECTION_SUFFIXES:
        document = read_blocks(path)
        title, language = document.title, document.language
        content, headings = _text_of(document.blocks)
        for note in document.notes:
            _warn_once(os.fspath(path), note)
    if suffix in MARKDOWN_SUFFIXES:
        # Its text is the file as it is.
        content = read_decoded(path).text
        start = read_front_matter(content).stop
        headings = list(markdown_headings(content, start))
    elif suffix not in SECTION_SUFFIXES:
        with open_text(path, in_lines=False) as file:
            content = file.read(LONGEST_DOCUMENT + 1)
    if len(content) > LONGEST_DOCUMENT:
        raise DataError(
            f"has more than {LONGEST_DOCUMENT:,} characters; split it into several files", path=path
        )
    for section in _sections(content, start, title, headings):
        yield section._replace(language=language)


@functools.cache
def _warn_once(path: str, note: str) -> None:
    """Log a doubt about a document only once, although a file may be read several times."""
    log.warning("%s: %s", path, note)


def _text_of(blocks: Iterable[TextBlock]) -> tuple[str, list[FoundHeading]]:
    """Return blocks as one text, and where its headings are."""
    parts = []
    headings = []
    at = 0
    for text, kind, level in blocks:
        stop = at + len(text) + 1
        if kind == HEADING and len(text) <= LONGEST_HEADING:
            headings.append(FoundHeading(level, " ".join(text.split()), at, stop))
        parts.append(f"{text}\n")
        at = stop
    return "".join(parts), headings


def _sections(
    content: str, start: int, title: str, headings: list[FoundHeading]
) -> Iterator[DocumentSection]:
    """Yield the parts of a text between its headings."""
    if not title:
        title = next((heading.text for heading in headings if heading.level == 1), "")
    above: list[FoundHeading] = []
    # The text in front of the first heading has no heading of its own.
    bounds = [FoundHeading(0, "", start, start), *headings]
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
            # Otherwise this heading would be lost, because no section below it contains it.
            yield DocumentSection(
                content[heading.start : heading.stop], heading.start, title, names[:-1]
            )


def joined_headings(*names: str) -> str:
    """Return a title and headings as one text, without empty ones."""
    return HEADING_SEPARATOR.join(name for name in names if name)
