"""The elements of an XML file one at a time: memory holds one entry, whatever the file holds.

The parser builds a tree as it reads; each entry is removed from the tree after it was
yielded. Expat itself refuses entity bombs (since 2.4.1), and external entities are never fetched.

If an entry is not well-formed, only this entry is lost. The bytes are cut behind the end of
each entry; if the parser fails within one, a new parser continues with the next, inside of the same
open elements. Characters that XML forbids are taken out before parsing, and an entry is decoded as
UTF-8 if it is valid UTF-8, whatever the file declares.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from interlingua.corpus.formats.charsets import decoded, is_decoded, known_charset
from interlingua.errors import DamagedFileError, DataError
from interlingua.storage.files import PathLike, open_bytes
from interlingua.storage.limits import refuse_long

BLOCK_BYTES = 1 << 16
_MAX_DEPTH = 100
"""Maximum number of nested elements."""
MAX_TREE_DEPTH = 250
"""Maximum number of nested elements of a document that is read as a whole."""
_HEAD_BYTES = 4096
_ENTITIES = re.compile(rb"<!ENTITY")
CONTROL_CHARACTERS = "character that XML forbids"
_DECLARED = re.compile(rb"<\?xml[^>]*encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_DECLARATION = re.compile(r"^\ufeff?\s*<\?xml.*?\?>", re.DOTALL)
_PREFIX = re.compile(r"\s(xmlns:[\w.-]+)\s*=\s*(\"[^\"<]*\"|'[^'<]*')")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_REFERENCE = re.compile(r"&#(?:x([0-9A-Fa-f]{1,8})|([0-9]{1,10}));")
Rejected = Callable[[DataError, str], None]
"""Receives the error of an entry, and its text."""


def xml_events(
    path: PathLike,
    entry: str | tuple[str, ...],
    *,
    rejected: Rejected | None = None,
    skipped: Counter[str] | None = None,
) -> Iterator[tuple[str, Element]]:
    """Yield the starts and ends of all elements, ``("start", element)`` and ``("end", element)``.

    Names of elements have no namespaces.

    Args:
        path: the file, plain or compressed.
        entry: tag, or several tags, of the elements that the file lists; the content between two
            such elements is removed from memory, and no such element may be longer than the limit
            of a line of text.
        rejected: receives the unreadable entries; by default the first one is an error.
        skipped: counts the characters that XML forbids.

    Raises:
        DataError: it is not well-formed XML, has an encoding that is not known, is
            nested too deeply, or an entry is too long.
    """
    for _, events in xml_pieces(path, entry, rejected=rejected, skipped=skipped):
        yield from events


def xml_pieces(
    path: PathLike,
    entry: str | tuple[str, ...],
    *,
    rejected: Rejected | None = None,
    skipped: Counter[str] | None = None,
) -> Iterator[tuple[bytes, list[tuple[str, Element]]]]:
    """Yield the pieces of a file with their events, for a writer that keeps all other bytes.

    Together, the pieces are the bytes of the file; a file in UTF-16 comes as UTF-8, without a byte
    order mark. A piece ends directly after the end of an entry, if it contains one. The arguments
    are those of ``xml_events``.
    """
    if isinstance(entry, str):
        entry = (entry,)
    with open_bytes(path) as file:
        reader = _Reader(path, entry, rejected, Counter() if skipped is None else skipped)
        for piece in _pieces(file, entry, path):
            yield piece, reader.read(piece)
        yield b"", reader.end()


def parse_tree(content: bytes, path: PathLike) -> Element:
    """Return the root of a small XML file; names of elements and attributes have no namespaces.

    Args:
        content: the whole file.
        path: path that errors name.

    Raises:
        DataError: it is not well-formed XML, declares entities, has an encoding that is not known,
            or is nested too deeply.
    """
    decoder = _wide_decoder(content[:4])
    if decoder is not None:
        content = decoder.decode(content).encode("utf-8", "surrogatepass")
    if _ENTITIES.search(content[:_HEAD_BYTES]):
        raise DataError(
            "the XML declares entities, which are not allowed; leave the file out", path=path
        )
    text = decoded(content, declared_encoding(content[:_HEAD_BYTES], path))
    text = _FORBIDDEN.sub("", _DECLARATION.sub("", text, count=1))
    parser = _new_parser()
    root: Element | None = None
    depth = 0
    try:
        for start in range(0, len(text), BLOCK_BYTES):
            parser.feed(text[start : start + BLOCK_BYTES].encode("utf-8", "replace").decode())
            for event, element in parser.read_events():
                depth += 1 if event == "start" else -1
                if depth > MAX_TREE_DEPTH:
                    raise DataError(
                        f"more than {MAX_TREE_DEPTH} nested elements; check that the file is not"
                        " damaged",
                        path=path,
                    )
                if event == "start":
                    _strip_namespaces(element)
                    root = element if root is None else root
        parser.close()
    except ElementTree.ParseError as error:
        raise DamagedFileError(
            f"is not well-formed XML ({error})", path=path, line=error.position[0]
        ) from error
    if root is None:  # the parser already refuses such a file
        raise DataError("the XML is empty; check that the file is complete", path=path)
    return root


def _strip_namespaces(element: Element) -> None:
    element.tag = element.tag.rpartition("}")[2]
    for name in [name for name in element.attrib if "}" in name]:
        element.attrib[name.rpartition("}")[2]] = element.attrib.pop(name)


class _Reader:
    """A parser of the pieces of a file, each of which ends after an entry."""

    def __init__(
        self,
        path: PathLike,
        entries: tuple[str, ...],
        rejected: Rejected | None,
        skipped: Counter[str],
    ) -> None:
        self.path = path
        self.entries = entries
        self.rejected = rejected
        self.skipped = skipped
        self.encoding = ""
        self.line = 1
        self.start_line = 1
        """Line of the file in which the parser started."""
        self.parser = _new_parser()
        self.open: list[Element] = []
        self.prefixes: dict[str, str] = {}
        """Prefixes of namespaces that were declared outside of entries, with their values."""
        self.begins = re.compile(rf"<(?:[\w.-]+:)?(?:{'|'.join(entries)})[\s>/]")

    def read(self, piece: bytes) -> list[tuple[str, Element]]:
        """Return the events of a piece: those before its entry, and those of the entry."""
        if not self.encoding:
            self.encoding = declared_encoding(piece, self.path)
        text = self._cleaned(decoded(piece, self.encoding))
        found = self.begins.search(text)
        begin = len(text) if found is None else found.start()
        before = text[:begin]
        if not is_decoded(before):
            before = before.encode("utf-8", "replace").decode()
        try:
            events = self._events(before)
        except _EntryError as error:
            raise error.problem from None
        self.line += before.count("\n")
        self.prefixes.update(_PREFIX.findall(before))
        outside = list(self.open)
        text = text[begin:]
        while text:
            text = self._entry(text, outside, events)
        return events

    def _entry(self, text: str, outside: list[Element], events: list[tuple[str, Element]]) -> str:
        """Add the events of an entry; return the text after an unreadable one, else nothing."""
        lines = text.count("\n")
        if not is_decoded(text):
            self._reject(f"is not in its declared character set {self.encoding}", text)
            self.line += lines
            return ""
        try:
            events += self._events(text)
        except _EntryError as error:
            if self.rejected is None or not outside or not self.begins.match(text):
                raise error.problem from None
            broken = text[: self._end_of_broken(text, outside[-1])]
            self._reject(error.problem.problem, broken)
            self.line += broken.count("\n")
            self._restart(outside)
            return text[len(broken) :]
        self.line += lines
        return ""

    def _end_of_broken(self, text: str, parent: Element) -> int:
        """Return where an entry that can't be read ends in its piece.

        If the entry has no end, the next entry starts in the same piece, or the list ends there.
        """
        last = max(found.start() for found in self.begins.finditer(text))
        end = re.search(rf"</(?:[\w.-]+:)?{re.escape(parent.tag)}\s*>", text)
        if last:
            return last
        if end:
            return end.start()
        return len(text)

    def _reject(self, problem: str, text: str) -> None:
        """Give an entry that can't be read to ``rejected``.

        Raises:
            DataError: there is no function that receives unreadable entries.
        """
        error = DataError(problem, path=self.path, line=self.line)
        if self.rejected is None:
            raise error
        self.rejected(error, text.strip())

    def end(self) -> list[tuple[str, Element]]:
        """Return the last events."""
        try:
            return self._events(None)
        except _EntryError as error:
            raise error.problem from None

    def _restart(self, outside: list[Element]) -> None:
        """Start a new parser inside the elements that are open."""
        self.parser = _new_parser()
        self.start_line = self.line
        self.open = []
        # The entries that follow may use prefixes of namespaces.
        declared = "".join(f" {name}={value}" for name, value in self.prefixes.items())
        for element in outside:
            self.parser.feed(f"<{element.tag}{declared}>")
        self.open = [element for _, element in self.parser.read_events()]

    def _events(self, text: str | None) -> list[tuple[str, Element]]:
        """Feed a text, or the end of the file, and return its events.

        Raises:
            _EntryError: it is not well-formed.
        """
        try:
            if text is None:
                self.parser.close()
            else:
                self.parser.feed(text)
            events = list(self.parser.read_events())
            for event, element in events:
                if event == "start":
                    self._opened(element)
                else:
                    self._closed(element)
            return events
        except ElementTree.ParseError as error:
            line = error.position[0] + self.start_line - 1
            problem = DamagedFileError(
                f"is not well-formed XML ({error})", path=self.path, line=line
            )
            raise _EntryError(problem) from error

    def _opened(self, element: Element) -> None:
        if "}" in element.tag:
            element.tag = element.tag.rpartition("}")[2]
        around = [own.tag for own in self.open if own.tag in self.entries]
        if element.tag in self.entries and around:
            problem = f"<{element.tag}> inside <{around[0]}>; the end tag of one of them is missing"
            raise _EntryError(DamagedFileError(problem, path=self.path, line=self.line))
        self.open.append(element)
        if len(self.open) > _MAX_DEPTH:
            raise DataError(
                f"more than {_MAX_DEPTH} nested elements; check that the file is complete",
                path=self.path,
            )

    def _closed(self, element: Element) -> None:
        self.open.pop()
        if element.tag in self.entries:
            # The content of the parent before the entry has been yielded too. The parent keeps its
            # attributes, because its start event may not have been yielded yet.
            parent = self.open[-1] if self.open else element
            del parent[:]
            parent.text = None

    def _cleaned(self, text: str) -> str:
        """Remove the characters that XML forbids from a text, and count each of them."""
        if self.line == 1:
            text = _DECLARATION.sub(lambda found: "\n" * found[0].count("\n"), text, count=1)
        text, count = _FORBIDDEN.subn("", text)
        self.skipped[CONTROL_CHARACTERS] += count
        if "&#" in text:
            text = _REFERENCE.sub(self._reference, text)
        return text

    def _reference(self, found: re.Match[str]) -> str:
        """Return a numeric reference, or nothing for a character that XML forbids."""
        code = int(found[1], 16) if found[1] else int(found[2])
        is_character = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE
        if is_character or 0x10000 <= code <= 0x10FFFF:
            return found[0]
        self.skipped[CONTROL_CHARACTERS] += 1
        return ""


class _EntryError(Exception):
    """An entry, or the content around the entries, is not well-formed."""

    def __init__(self, problem: DamagedFileError) -> None:
        super().__init__(str(problem))
        self.problem = problem


def _new_parser() -> Any:
    return ElementTree.XMLPullParser(("start", "end"))


def _pieces(file: BinaryIO, entries: tuple[str, ...], path: PathLike) -> Iterator[bytes]:
    """Yield the bytes of a file, cut behind the ends of its entries; UTF-16 comes as UTF-8."""
    names = "|".join(entries).encode()
    longest = max(map(len, entries))
    ends = re.compile(rb"</(?:[\w.-]+:)?(?:" + names + rb")\s*>")
    decoder = None
    rest = b""
    is_first = True
    while block := file.read(BLOCK_BYTES):
        if is_first:
            decoder = _wide_decoder(block)
            is_first = False
        if decoder is not None:
            block = decoder.decode(block).encode("utf-8", "surrogatepass")
        # The end of an entry may extend over two blocks.
        searched = max(0, len(rest) - longest - 40)
        rest += block
        begin = 0
        for found in ends.finditer(rest, searched):
            yield rest[begin : found.end()]
            begin = found.end()
        rest = rest[begin:]
        # An entry without an end would grow as long as the file.
        refuse_long(len(rest), f"the part between two end tags of <{entries[0]}>", path=path)
    if rest:
        yield rest


def _wide_decoder(block: bytes) -> codecs.IncrementalDecoder | None:
    """Return a decoder if the bytes are UTF-16, with or without a byte order mark."""
    if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")("replace")
    name = wide_encoding(block)
    if name is None:
        return None
    return codecs.getincrementaldecoder(name)("replace")


def wide_encoding(head: bytes) -> str | None:
    """Return the name of the UTF-16 codec of the first bytes; None if they are not UTF-16."""
    beginnings = (
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"<\0", "utf-16-le"),
        (b"\0<", "utf-16-be"),
    )
    return next((name for start, name in beginnings if head.startswith(start)), None)


def declared_encoding(piece: bytes, path: PathLike) -> str:
    """Return the encoding that the first bytes declare; UTF-8 if it is missing or impossible.

    Raises:
        DataError: Python does not know it.
    """
    found = _DECLARED.search(piece[:1024])
    # UTF-16 has already been converted to UTF-8, so the bytes can't be UTF-16.
    if found is None or found[1].lower().startswith((b"utf-16", b"ucs-2", b"utf16", b"utf-8")):
        return "utf-8"
    name = found[1].decode("ascii")
    known = known_charset(name)
    if known is None:
        raise DataError(
            f"the encoding {name[:40]} of the XML cannot be read; convert the file to UTF-8",
            path=path,
        )
    return known
