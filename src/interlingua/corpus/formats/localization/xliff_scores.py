"""Write scores into a copy of an XLIFF file; all other bytes stay as they are.

In both versions of the standard, the only place for the quality of a translation is in a proposed
translation:

- 1.2: ``<alt-trans origin="interlingua" match-quality="87.3%">`` behind the ``<target>``, with
  ``mid`` for a segment; its ``<note>`` has the score.
- 2.x: ``<mtc:match origin="interlingua" ref="#segment" matchQuality="87.3">`` of the module
  Translation Candidates; its metadata have the score. A segment without an id gets one.

The quality, in percent, is the calibrated probability, or else the cosine. The target of the
proposal is that of the unit. Proposals of an earlier run are replaced.

A unit is found by its number in the order of the reader; its bytes are then parsed by expat, which
reports the position of each tag.
"""

from __future__ import annotations

import logging
import math
import re
import xml.parsers.expat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from interlingua.corpus.formats.charsets import decoded
from interlingua.corpus.formats.xml_stream import declared_encoding, wide_encoding, xml_pieces
from interlingua.errors import count_of
from interlingua.storage.files import open_bytes, open_text_writer

log = logging.getLogger("interlingua")
ALT_ORIGIN = "interlingua"
SCORE_IN_NOTE = re.compile(r"^score (-?[0-9.]+(?:e[-+]?\d+)?)")
_MATCHES = "urn:oasis:names:tc:xliff:matches:2.0"
_METADATA = "urn:oasis:names:tc:xliff:metadata:2.0"
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]|&#x?[0-9A-Fa-f]+;")
"""Characters that XML forbids, and all numeric references: masked before a unit is parsed."""
_TAG = re.compile(rb"<[^\s/>]+(?:\s+[^\s=/>]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*/?>")


class MatchValues(NamedTuple):
    """The values that are written for a pair."""

    quality: float | None
    """Percent."""
    values: tuple[tuple[str, str], ...]
    """Names and values: score, probability, cosine, reasons of a rejection."""

    @property
    def note(self) -> str:
        """All values in a line."""
        return "; ".join(f"{name} {value}" for name, value in self.values)

    def alternative(self, prefix: str, target: str, mark: str | None) -> str:
        """Return the element of 1.2 that contains a target; ``target`` is a whole element."""
        attributes = f'origin="{ALT_ORIGIN}"'
        if mark is not None:
            attributes += f" mid={quoteattr(mark)}"
        if self.quality is not None:
            attributes += f' match-quality="{self.quality:.1f}%"'
        return (
            f"<{prefix}alt-trans {attributes}>{target}<{prefix}note"
            f' from="{ALT_ORIGIN}">{escape(self.note)}</{prefix}note></{prefix}alt-trans>'
        )

    def candidate(self, prefix: str, texts: tuple[str, str], segment: str) -> str:
        """Return the element of 2.x with a source and a target."""
        quality = ""
        if self.quality is not None:
            quality = f' matchQuality="{self.quality:.1f}"'
        metas = "".join(
            f"<mda:meta type={quoteattr(name)}>{escape(value)}</mda:meta>"
            for name, value in self.values
        )
        return (
            f'<mtc:match xmlns:mtc="{_MATCHES}" id="{ALT_ORIGIN}-{escape(segment)}"'
            f' ref="#{escape(segment)}" origin="{ALT_ORIGIN}"{quality}><mda:metadata'
            f' xmlns:mda="{_METADATA}"><mda:metaGroup category="{ALT_ORIGIN}">{metas}'
            "</mda:metaGroup></mda:metadata>"
            f"<{prefix}source>{texts[0]}</{prefix}source>"
            f"<{prefix}target>{texts[1]}</{prefix}target></mtc:match>"
        )


class ScoredSegment(NamedTuple):
    """A segment of a unit, see ``xliff.XliffSegment``, and its written scores."""

    mark: str | None
    values: MatchValues


def match_values(score: float | None, measures: Mapping[str, Any]) -> MatchValues:
    """Return the texts to write for a pair: a quality in percent, and a note with all values."""
    # A score may be a margin, which has no upper limit and is no percentage.
    share = measures.get("probability", measures.get("cosine", score))
    quality = None
    if share is not None and math.isfinite(share) and share <= 1:
        quality = 100 * max(0.0, float(share))
    values = []
    if score is not None:
        values.append(("score", f"{score:.6g}"))
    names = [name for name in ("probability", "cosine") if name in measures]
    values += [(name, f"{measures[name]:.4g}") for name in names]
    if measures.get("reasons"):
        values.append(("rejected", ", ".join(measures["reasons"])))
    return MatchValues(quality, tuple(values))


def copy_with_scores(
    source: str, target: str, scored: Mapping[int, list[ScoredSegment]], *, entry: str
) -> None:
    """Write a copy of a file with scores; it may replace the file itself.

    Args:
        source: the file.
        target: the copy, which appears when it is complete.
        scored: number of a unit, from 1 -> its scored segments.
        entry: tag of its units: trans-unit in 1.2, unit in 2.x.
    """
    with open_bytes(source) as file:
        head = file.read(4)
    wide = wide_encoding(head)
    codec = (wide or "utf-8", "surrogateescape")
    number = 0
    failed = 0
    encoding = ""
    with open_text_writer(target) as text:
        # The bytes are written to the file under the text layer, with the same compression.
        binary = text.buffer
        if wide is not None and not head.startswith((b"<", b"\0<")):
            binary.write(head[:2])
        for piece, events in xml_pieces(source, entry, rejected=lambda error, content: None):
            encoding = encoding or declared_encoding(piece, source)
            for event, element in events:
                if event != "end" or element.tag != entry:
                    continue
                number += 1
                if number in scored:
                    changed = _with_scores(piece, scored[number], entry, encoding)
                    failed += changed is None
                    piece = changed or piece
            binary.write(piece.decode("utf-8", "surrogateescape").encode(*codec))
    if failed:
        log.warning(
            "%s: the scores of %s are not written, because the XML has an unusual form",
            target,
            count_of(failed, "units"),
        )


@dataclass(slots=True)
class _Node:
    """An element with the positions of its parts in the bytes of a unit."""

    tag: str
    attributes: Mapping[str, str]
    start: int
    inner: int = 0
    """Behind the start tag."""
    inner_end: int = 0
    end: int = 0
    children: list[_Node] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        """The prefix of the namespace, with its colon."""
        return "".join(self.tag.rpartition(":")[:2])

    @property
    def name(self) -> str:
        """The tag without its prefix."""
        return self.tag.rpartition(":")[2]

    def named(self, name: str) -> list[_Node]:
        """Return the children with a name."""
        return [child for child in self.children if child.name == name]

    def walk(self) -> Iterator[_Node]:
        """Yield all elements in this one, itself first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)


def _with_scores(
    piece: bytes, segments: list[ScoredSegment], entry: str, encoding: str
) -> bytes | None:
    """Return a piece with the scores of the unit at its end; None if the unit can't be found."""
    text = decoded(piece, encoding)
    content = text.encode("utf-8", "surrogateescape")
    # A comment before the unit may contain another start tag of a unit; only the real unit can be
    # parsed up to the end.
    begins = re.compile(rb"<(?:[\w.-]+:)?" + entry.encode() + rb"[\s>/]")
    for begin in reversed([found.start() for found in begins.finditer(content)]):
        unit = _parsed(content[begin:])
        if unit is None:
            continue
        changes = {"unit": _changes_2, "trans-unit": _changes_1}[entry]
        changed = _edited(content[begin:], changes(unit, content[begin:], segments))
        whole = content[:begin] + changed
        # Valid UTF-8 was read as such, whatever the file declares.
        if text.encode("utf-8", "replace") == piece or piece == content:
            return whole
        return whole.decode("utf-8", "surrogateescape").encode(encoding, "surrogateescape")
    return None


def _parsed(content: bytes) -> _Node | None:
    """Return the elements of a unit with their positions; None if it is not well-formed."""
    masked = _FORBIDDEN.sub(lambda found: b" " * len(found[0]), content)
    masked = masked.decode("utf-8", "surrogateescape").encode("utf-8", "surrogateescape")
    parser = xml.parsers.expat.ParserCreate("utf-8")
    outside = _Node("", {}, 0)
    opened = [outside]

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = _Node(tag, attributes, parser.CurrentByteIndex)
        node.inner = node.start
        if found := _TAG.match(content, node.start):
            node.inner = found.end()
        opened[-1].children.append(node)
        opened.append(node)

    def end(tag: str) -> None:
        node = opened.pop()
        # An empty element has no end tag: both events have the position of its only tag.
        if content[node.inner - 2 : node.inner] == b"/>":
            node.inner_end = node.end = node.inner
            return
        node.inner_end = parser.CurrentByteIndex
        node.end = content.index(b">", node.inner_end) + 1

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(masked, True)
    except (xml.parsers.expat.ExpatError, ValueError):
        return None
    return outside.children[0]


_Change = tuple[int, int, bytes]
"""Start and end of the replaced bytes, with the replacement."""


def _edited(content: bytes, changes: Iterable[_Change]) -> bytes:
    parts = []
    position = 0
    # Of two changes at one place the insertion comes first: it replaces nothing.
    for start, end, new in sorted(changes):
        parts += [content[position:start], new]
        position = end
    return b"".join([*parts, content[position:]])


def _removal(node: _Node, content: bytes) -> _Change:
    """Return the change that removes an element with the line break before it."""
    before = content[: node.start].rstrip(b" \t\r\n")
    if before.endswith(b">"):
        return len(before), node.end, b""
    return node.start, node.end, b""


def _indentation(node: _Node, content: bytes) -> bytes:
    """Return the line break and spaces before an element; nothing if it starts no line."""
    before = content[: node.start]
    line = before[len(before.rstrip(b" \t\r\n")) :]
    if b"\n" not in line:
        return b""
    last = line[line.rindex(b"\n") :]
    if line[: -len(last)].endswith(b"\r"):
        return b"\r" + last
    return last


def _changes_1(unit: _Node, content: bytes, segments: list[ScoredSegment]) -> Iterator[_Change]:
    """Yield the changes of a unit of 1.2."""
    for earlier in unit.named("alt-trans"):
        if earlier.attributes.get("origin") == ALT_ORIGIN:
            yield _removal(earlier, content)
    # Targets of proposals are deeper, so the unit's own target is found by its level.
    target = next(iter(unit.named("target")), None)
    if target is None:
        return
    parts: dict[str | None, _Node] = {None: target}
    for node in target.walk():
        if node.name == "mrk" and node.attributes.get("mtype") == "seg":
            parts.setdefault(node.attributes.get("mid"), node)
    added = b""
    for mark, values in segments:
        part = parts.get(mark)
        if part is None:
            continue
        inner = content[part.inner : part.inner_end].decode("utf-8", "surrogateescape")
        copied = f"<{unit.prefix}target>{inner}</{unit.prefix}target>"
        element = values.alternative(unit.prefix, copied, mark)
        added += _indentation(target, content) + element.encode("utf-8", "surrogateescape")
    yield target.end, target.end, added


def _changes_2(unit: _Node, content: bytes, segments: list[ScoredSegment]) -> Iterator[_Change]:
    """Yield the changes of a unit of 2.x."""
    matches = next(iter(unit.named("matches")), None)
    others = 0
    if matches is not None:
        own = [one for one in matches.children if one.attributes.get("origin") == ALT_ORIGIN]
        others = len(matches.children) - len(own)
        # An element that contains only our candidates is removed as a whole.
        for earlier in (own, [matches])[not others]:
            yield _removal(earlier, content)
    found = unit.named("segment")
    # Ids of segments and of inline tags must differ within a unit.
    used = {node.attributes.get("id") for node in unit.walk()}
    added = []
    for mark, values in segments:
        segment = found[int(mark or 1) - 1]
        name = segment.attributes.get("id")
        if name is None:
            name = next(f"s{n}" for n in range(1, len(used) + 2) if f"s{n}" not in used)
            used.add(name)
            place = segment.start + 1 + len(segment.tag.encode())
            yield place, place, f' id="{name}"'.encode()
        texts = (_inner(segment, "source", content), _inner(segment, "target", content))
        candidate = values.candidate(unit.prefix, texts, name)
        added.append(candidate.encode("utf-8", "surrogateescape"))
    if others and matches is not None:
        line = _indentation(matches.children[0], content)
        yield matches.inner_end, matches.inner_end, b"".join(line + one for one in added)
        return
    line = _indentation(unit.children[0], content)
    opening = f'<mtc:matches xmlns:mtc="{_MATCHES}">'.encode()
    yield unit.inner, unit.inner, line + opening + b"".join(added) + b"</mtc:matches>"


def _inner(segment: _Node, name: str, content: bytes) -> str:
    """Return the markup of a side of a segment, without tags that refer to the unit's data."""
    side = next(iter(segment.named(name)), None)
    if side is None:
        return ""
    inner = content[side.inner : side.inner_end]
    if b"dataRef" in inner:
        inner = re.sub(rb"<[^>]*>", b"", inner)
    return inner.decode("utf-8", "surrogateescape")
