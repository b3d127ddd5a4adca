"""The elements of an XML file one at a time: memory holds one entry, whatever the file holds.

The parser builds a tree as it reads; each entry is taken out of the tree once it has been handed
out. Entity bombs are refused by expat itself (2.4.1 on), and external entities are never fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from interlingua.errors import DamagedFileError, DataError
from interlingua.files import PathLike, open_bytes
from interlingua.limits import refuse_long

BLOCK_BYTES = 1 << 16
MAX_DEPTH = 100
"""Elements in elements."""


def xml_events(path: PathLike, entry: str) -> Iterator[tuple[str, Element]]:
    """The beginnings and ends of all elements, ``("start", element)`` and ``("end", element)``.

    Args:
        path: the file, plain or compressed.
        entry: tag of the elements that the file is a list of; one is emptied after its end has been
            handed out, and none may be longer than a line of text.

    Raises:
        DataError: it is not well-formed XML, has an encoding unknown to the parser, is nested
            too deeply, or an entry is too long.
    """
    depth = 0
    since_entry = 0
    open_elements: list[Element] = []
    with open_bytes(path) as file:
        parser: Any = ElementTree.XMLPullParser(("start", "end"))
        while block := file.read(BLOCK_BYTES):
            _feed(parser, block, path)
            since_entry += len(block)
            for event, element in _events(parser, path):
                if event == "start":
                    depth += 1
                    open_elements.append(element)
                    if depth > MAX_DEPTH:
                        raise DataError(
                            f"more than {MAX_DEPTH} elements in each other; is it cut short?",
                            path=path,
                        )
                yield event, element
                if event == "end":
                    depth -= 1
                    open_elements.pop()
                    if element.tag == entry:
                        since_entry = 0
                        # What is before the entry in its parent has been handed out as well.
                        parent = element
                        if open_elements:
                            parent = open_elements[-1]
                        parent.clear()
            # An entry without an end would grow as long as the file.
            refuse_long(since_entry, f"what stands between two ends of <{entry}>", path=path)
        yield from _events(parser, path, is_last=True)


def _feed(parser: Any, block: bytes, path: PathLike) -> None:
    try:
        parser.feed(block)
    except (ValueError, LookupError) as error:
        # Encodings of several bytes, and those that Python has not.
        raise DataError(
            f"its XML encoding can't be read ({error}); convert it to UTF-8", path=path
        ) from error


def _events(parser: Any, path: PathLike, *, is_last: bool = False) -> Iterator[tuple[str, Element]]:
    try:
        if is_last:
            parser.close()
        yield from parser.read_events()
    except ElementTree.ParseError as error:
        raise DamagedFileError(
            f"not well-formed XML: {error}", path=path, line=error.position[0]
        ) from error
