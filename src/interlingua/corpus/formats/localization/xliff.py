"""XLIFF 1.2 and 2.x: the files that translation tools exchange (.xlf, .xliff, .sdlxliff, .mqxliff).

A pair is a ``<trans-unit>`` of 1.2, or one of its segments (``<mrk mtype="seg">``), or a
``<segment>`` of 2.x. Texts have no inline tags; the tags are fields of the pair, for checks. Units
that are not to be translated, or not translated yet, are skipped and counted.

Pairs of an XLIFF file are written as the same file with their scores, see ``xliff_scores``; other
pairs become a new file of XLIFF 1.2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from interlingua.config import languages
from interlingua.config.languages import written_tag
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    PairWithOrigin,
    TextPair,
    named_languages,
    one_language_pair,
    peek,
    requested_pair,
    without_lost_values,
)
from interlingua.corpus.formats.localization.language_places import language_of_path
from interlingua.corpus.formats.localization.xliff_scores import (
    ALT_ORIGIN,
    SCORE_IN_NOTE,
    ScoredSegment,
    copy_with_scores,
    match_values,
)
from interlingua.corpus.formats.xml_stream import xml_events
from interlingua.errors import DataError
from interlingua.storage.files import open_bytes, open_text_writer

_NATIVE_CODE = {"bpt", "ept", "ph", "it"}
"""Tags of which the content is formatting of the original, not text."""
_INLINE = {"g", "x", "bx", "ex", "bpt", "ept", "ph", "it", "pc", "sc", "ec"}
_NOT_YET = {"new", "needs-translation"}
"""States of 1.2 in which a target is not a translation."""
_UNTRANSLATED = "untranslated"
_TRANSLATE_NO = "not to be translated"
_OTHER_LANGUAGES = "no such languages"
_IS_2 = re.compile(r"<(?:[\w.-]+:)?xliff\b[^>]*?\sversion\s*=\s*[\"']2")
_HEAD_BYTES = 1 << 16
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_FIELDS = ("id", "segment", "state", "note", "original", "source_tags", "target_tags")


class XliffSegment(NamedTuple):
    """The position of a pair in its file, with the attributes that the file has for it."""

    path: str
    unit: int
    """Number of the unit in the file, from 1."""
    mark: str | None
    """``mid`` of a segment of 1.2; number of a segment of 2.x in its unit; None = whole unit."""
    fields: dict[str, str]


class XliffPair(PairWithOrigin):
    """A pair with its place in an XLIFF file."""

    origin: XliffSegment
    whole_file = "xliff"

    @property
    def fields(self) -> dict[str, str]:
        """Ids, state, notes, the original file, and the inline tags of both texts."""
        return self.origin.fields

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all fields that a unit may have."""
        return _FIELDS


class _Surroundings:
    """Properties of the open elements around a unit: languages, file, whether to translate."""

    def __init__(self) -> None:
        self.codes = ("", "")
        self.original = ""
        self.translate = [True]

    def start(self, element: Element) -> None:
        """Record the start of an element."""
        if element.tag == "xliff" and element.get("srcLang"):
            self.codes = (element.get("srcLang", ""), element.get("trgLang", ""))
        if element.tag == "file":
            self.original = element.get("original", "")
            if element.get("source-language"):
                self.codes = (
                    element.get("source-language", ""),
                    element.get("target-language", ""),
                )
        # translate="no" holds for all units below, unless one says otherwise.
        if element.tag in ("file", "group"):
            self.translate.append(_is_to_translate(element, self.translate[-1]))

    def end(self, element: Element) -> None:
        """Record the end of an element."""
        if element.tag in ("file", "group") and len(self.translate) > 1:
            self.translate.pop()


class Xliff:
    """XLIFF 1.2 and 2.x, read unit by unit; see the module."""

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream the translated segments; a unit that can't be read is left out.

        The languages are those of the file. If it has no target language, an argument or the file's
        name provides it. The caller's languages select ``<file>`` elements and the direction.

        Raises:
            DataError: it is not XLIFF, or no unit can be read.
        """
        entry = _entry_of(path)
        segments = {"unit": _segments_2, "trans-unit": _segments_1}[entry]
        surroundings = _Surroundings()
        has_file = False
        units = 0
        failures: list[DataError] = []

        def rejected(error: DataError, content: str) -> None:
            failures.append(error)
            bad.leave_out(error, content)

        for event, element in xml_events(path, entry, rejected=rejected, skipped=skipped):
            if event == "start":
                has_file = has_file or element.tag == "file"
                surroundings.start(element)
            elif element.tag == entry:
                units += 1
                if not _is_to_translate(element, surroundings.translate[-1]):
                    skipped[_TRANSLATE_NO] += 1
                    continue
                found = segments(element, skipped)
                codes = _codes(surroundings.codes, path, source_language, target_language)
                for pair, mark, fields in found:
                    fields["original"] = surroundings.original
                    kept = {name: fields[name] for name in _FIELDS if fields.get(name)}
                    segment = XliffSegment(path, units, mark, kept)
                    whole = XliffPair.of(TextPair(*pair[:2], *codes, pair[2]), segment)
                    chosen = requested_pair(whole, source_language, target_language)
                    if chosen is None:
                        skipped[_OTHER_LANGUAGES] += 1
                    else:
                        yield chosen
            else:
                surroundings.end(element)
        if not has_file:
            raise DataError("the file contains no <file>; check that it is XLIFF", path=path)
        if failures and not units:
            raise failures[0]

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write a copy of the pairs' XLIFF file with their scores, or a new file of other pairs."""
        first, pairs = peek(pairs)
        if first is None:
            raise DataError(
                "there is no pair, so the languages of the file are unknown; nothing is written",
                path=path,
            )
        if not isinstance(first, XliffPair):
            return _write_new(pairs, path, first)
        # The file is copied when all scores are known: in memory, a pair takes some hundred bytes.
        scored: dict[int, list[ScoredSegment]] = {}
        count = 0
        for pair in pairs:
            if not isinstance(pair, XliffPair) or pair.origin.path != first.origin.path:
                raise DataError(
                    f"pairs of {first.origin.path} and of another file cannot be written to one"
                    " XLIFF file; use TMX",
                    path=path,
                )
            values = match_values(pair.score, pair.measures)
            unit = scored.setdefault(pair.origin.unit, [])
            unit.append(ScoredSegment(pair.origin.mark, values))
            count += 1
        entry = _entry_of(first.origin.path)
        copy_with_scores(first.origin.path, path, scored, entry=entry)
        return count

    def write_empty(self, path: str, head: TextPair) -> None:
        """Write a new file without units, for the languages of a pair."""
        _write_new((), path, head)


def _entry_of(path: str) -> str:
    """Return the tag of the units of a file, by its version."""
    with open_bytes(path) as file:
        head = file.read(_HEAD_BYTES)
    # UTF-16 has a NUL in each character of markup.
    if _IS_2.search(head.replace(b"\0", b"").decode("latin-1")):
        return "unit"
    return "trans-unit"


def _is_to_translate(element: Element, inherited: bool) -> bool:
    found = element.get("translate")
    if found is None:
        return inherited
    return found != "no"


def _codes(
    declared: tuple[str, str], path: str, source: str | None, target: str | None
) -> tuple[str, str]:
    """Return the languages of a file, from its declaration, or else from the caller or its name.

    Raises:
        DataError: one of the two languages is unknown.
    """
    found = [languages.find_code(code) for code in declared]
    if found[1] is None:
        found[1] = languages.find_code(target or "") or language_of_path(path)
    if found[0] is None:
        found[0] = languages.find_code(source or "")
    if found[0] is None or found[1] is None:
        return named_languages(path, found[0], found[1])
    return found[0], found[1]


_Part = tuple[str | None, Element, Element | None]
"""Mark, source and target of a segment."""
_Segment = tuple[tuple[str, str, float | None], str | None, dict[str, str]]
"""Texts and score, mark, fields."""


def _segments_1(unit: Element, skipped: Counter[str]) -> list[_Segment]:
    """Return the translated segments of a unit of 1.2."""
    source = unit.find("source")
    target = unit.find("target")
    state = ""
    if target is not None:
        state = target.get("state", "")
    # Tools copy the source into targets of these states.
    if source is None or target is None or state in _NOT_YET:
        skipped[_UNTRANSLATED] += 1
        return []
    shared = {
        "id": unit.get("id", ""),
        "state": state or unit.get("{MQXliff}status", ""),
        "note": _notes(unit.findall("note")),
    }
    segmented = unit.find("seg-source")
    if segmented is None:
        segmented = source
    sources = _marked(segmented)
    targets = _marked(target)
    # Without segments on both sides the unit is one pair.
    if not sources or not targets:
        return _translated([(None, source, target)], shared, _own_scores_1(unit), skipped)
    # Trados keeps the states of segments in elements of its own, <sdl:seg id="1" conf="Draft">.
    states = {own.get("id"): own.get("conf", "") for own in unit.iter("seg") if own.get("conf")}
    shared["state"] = shared["state"] or next(iter(states.values()), "")
    found: list[_Part] = []
    found += [(mark, own, targets.get(mark)) for mark, own in sources.items()]
    return _translated(found, shared, _own_scores_1(unit), skipped, states)


def _segments_2(unit: Element, skipped: Counter[str]) -> list[_Segment]:
    """Return the translated segments of a unit of 2.x."""
    shared = {"id": unit.get("id", ""), "note": _notes(unit.findall("notes/note"))}
    segments = unit.findall("segment")
    scores = _own_scores_2(unit, segments)
    found: list[_Segment] = []
    for number, segment in enumerate(segments, 1):
        source = segment.find("source")
        if source is None:
            skipped[_UNTRANSLATED] += 1
            continue
        state = segment.get("state", "initial")
        fields = {**shared, "state": segment.get("subState", state)}
        parts: list[_Part] = [(str(number), source, segment.find("target"))]
        found += _translated(parts, fields, scores, skipped, name=segment.get("id", ""))
    return found


def _translated(
    parts: list[_Part],
    shared: dict[str, str],
    scores: dict[str | None, float],
    skipped: Counter[str],
    states: dict[str | None, str] | None = None,
    name: str | None = None,
) -> list[_Segment]:
    """Return the segments that have a text on both sides; others are counted."""
    found: list[_Segment] = []
    for mark, source, target in parts:
        if target is None or not _text(source).strip() or not _text(target).strip():
            skipped[_UNTRANSLATED] += 1
            continue
        texts = (_text(source).strip(), _text(target).strip())
        fields = {**shared, "source_tags": _tags(source), "target_tags": _tags(target)}
        fields["segment"] = mark or ""
        if name is not None:
            fields["segment"] = name
        if states and states.get(mark):
            fields["state"] = states[mark]
        found.append(((*texts, scores.get(mark)), mark, fields))
    return found


def _marked(side: Element) -> dict[str, Element]:
    """Return the segments of a side of 1.2 by their ``mid``."""
    found: dict[str, Element] = {}
    for mark in side.iter("mrk"):
        if mark.get("mtype") == "seg" and mark.get("mid") is not None:
            found.setdefault(mark.get("mid", ""), mark)
    return found


def _own_scores_1(unit: Element) -> dict[str | None, float]:
    """Return the scores that were written into a unit of 1.2, by ``mid``."""
    found: dict[str | None, float] = {}
    for match in unit.findall("alt-trans"):
        if match.get("origin") == ALT_ORIGIN:
            found |= _score_in_note(match.get("mid"), match.findtext("note", ""))
    return found


def _own_scores_2(unit: Element, segments: list[Element]) -> dict[str | None, float]:
    """Return the scores that were written into a unit of 2.x, by the number of the segment."""
    numbers = {f"#{own.get('id')}": str(number) for number, own in enumerate(segments, 1)}
    found: dict[str | None, float] = {}
    for match in unit.findall("matches/match"):
        if match.get("origin") == ALT_ORIGIN and match.get("ref") in numbers:
            number = numbers[match.get("ref", "")]
            for meta in match.iter("meta"):
                if meta.get("type") == "score":
                    found |= _score_in_note(number, f"score {meta.text}")
    return found


def _score_in_note(mark: str | None, note: str) -> dict[str | None, float]:
    if score := SCORE_IN_NOTE.search(note):
        with suppress(ValueError):
            return {mark: float(score[1])}
    return {}


def _notes(notes: list[Element]) -> str:
    texts = (" ".join(_text(note).split()) for note in notes)
    return " ".join(filter(None, texts))


def _text(element: Element) -> str:
    """Return the text of an element without its inline tags; a line break becomes a space."""
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _NATIVE_CODE and child.tag != "sub":
            parts.append(_text(child))
        if child.get("ctype") == "lb" or child.get("subType") == "xlf:lb":
            parts.append(" ")
        parts.append(child.tail or "")  # the text behind an inline tag is its tail
    return "".join(parts)


def _tags(element: Element) -> str:
    """Return the inline tags of an element in their order, ``g:1 x:2``."""
    names = [own for own in element.iter() if own.tag in _INLINE]
    return " ".join(f"{own.tag}:{own.get('id') or own.get('startRef', '')}" for own in names)


def _write_new(pairs: Iterable[TextPair], path: str, head: TextPair) -> int:
    """Write a new file of XLIFF 1.2."""
    codes = [written_tag(code) for code in (head.source_language, head.target_language)]
    count = 0
    with open_text_writer(path) as file:
        file.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
            f'<file original="pairs" datatype="plaintext" source-language={quoteattr(codes[0])}'
            f" target-language={quoteattr(codes[1])}>\n<body>\n"
        )
        kept = without_lost_values(pairs, path, keeps_scores=True)
        for count, pair in enumerate(one_language_pair(kept, path), 1):
            source, target = (escape(_NOT_XML.sub("", text)) for text in pair[:2])
            match = ""
            if pair.score is not None:
                values = match_values(pair.score, {})
                match = values.alternative("", f"<target>{target}</target>", None)
            file.write(
                f'<trans-unit id="{count}"><source>{source}</source><target>{target}</target>'
                f"{match}</trans-unit>\n"
            )
        file.write("</body>\n</file>\n</xliff>\n")
    return count
