"""TMX 1.4, the exchange format of translation memories.

A unit holds more than two texts: an id, properties, dates, the regions of its languages, inline
tags. A pair that is read here carries its unit along, so that writing it as TMX again keeps all of
that; other formats write the texts.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring
from xml.sax.saxutils import escape, quoteattr

from interlingua import __version__, languages
from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.formats import TextPair
from interlingua.corpus.xml_stream import xml_events
from interlingua.errors import DataError
from interlingua.files import open_text_writer

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
NATIVE_CODE = {
    "bpt",
    "ept",
    "it",
    "ph",
    "ut",
}  # their content is formatting of the original, not text
SCORE = "score"
"""Type of the property."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class TmxUnit(NamedTuple):
    """What a pair was read from."""

    element: Element
    """The ``<tu>``."""
    variants: Mapping[str, Element]
    """Language code -> its first ``<tuv>``."""
    header: Element | None
    """Of the file."""


class TmxPair(TextPair):
    """A pair with the unit that it was read from.

    Equal to any other pair of the same texts, languages and score.
    """

    unit: TmxUnit

    @classmethod
    def of(cls, pair: TextPair, unit: TmxUnit) -> TmxPair:
        """The pair with its unit."""
        found = cls(*pair)
        found.unit = unit
        return found

    def swapped(self) -> TmxPair:
        """The same pair read the other way."""
        return TmxPair.of(super().swapped(), self.unit)

    def _replace(self, **changes: Any) -> TmxPair:
        return TmxPair.of(super()._replace(**changes), self.unit)


class Tmx:
    """Translation units of two or more variants.

    ``xml:lang``, ``lang`` and any spelling of a code are understood.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Streams the units, one at a time in memory.

        With both languages given, a unit gives the pair of these two; else it gives the pairs of
        its source variant (``srclang``; the first where that is ``*all*``) with every other one.
        Units without a pair are counted.
        """
        has_body = False
        header: Element | None = None
        for event, element in xml_events(path, "tu"):
            if event == "start" and element.tag == "header":
                header = element
            elif event == "start" and element.tag == "body":
                has_body = True
            elif event == "end" and element.tag == "tu":
                try:
                    pairs = _pairs(element, source_language, target_language, header, path)
                except DataError as error:
                    bad.reject(error, tostring(element, encoding="unicode"))
                    continue
                skipped["no such languages"] += not pairs
                yield from pairs
        if not has_body:
            raise DataError("no <body>; is it TMX?", path=path)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes one unit a pair, its score as a property; any mixture of languages.

        Of a pair that was read from TMX the unit is kept but for other languages and an earlier
        score; the header is that of the first pair.
        """
        count = 0
        iterator = iter(pairs)
        first = next(iterator, None)
        with open_text_writer(path) as file:
            header = _header(first)
            file.write(
                f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n{header}\n<body>\n'
            )
            for pair in chain([] if first is None else [first], iterator):
                file.write(
                    (_kept_unit(pair) if isinstance(pair, TmxPair) else _new_unit(pair)) + "\n"
                )
                count += 1
            file.write("</body>\n</tmx>\n")
        return count


def _header(first: TextPair | None) -> str:
    if isinstance(first, TmxPair) and first.unit.header is not None:
        return tostring(first.unit.header, encoding="unicode").strip()
    return (
        f'<header creationtool="interlingua" creationtoolversion="{__version__}"'
        f' segtype="sentence" '
        'o-tmf="none" adminlang="en" srclang="*all*" datatype="plaintext"/>'
    )


def _new_unit(pair: TextPair) -> str:
    score = "" if pair.score is None else f'<prop type="score">{pair.score:.6g}</prop>'
    sides = ((pair.source_language, pair.source), (pair.target_language, pair.target))
    variants = "".join(
        f"<tuv xml:lang={quoteattr(_bcp47(code))}><seg>{escape(_NOT_XML.sub('', text))}</seg></tuv>"
        for code, text in sides
    )
    return f"<tu>{score}{variants}</tu>"


def _kept_unit(pair: TmxPair) -> str:
    unit = Element("tu", dict(pair.unit.element.attrib))
    if pair.score is not None:
        score = SubElement(unit, "prop", {"type": SCORE})
        score.text = f"{pair.score:.6g}"
    for child in pair.unit.element:
        is_old_score = child.tag == "prop" and child.get("type") == SCORE and pair.score is not None
        if child.tag != "tuv" and not is_old_score:
            unit.append(child)
    for code, text in ((pair.source_language, pair.source), (pair.target_language, pair.target)):
        unit.append(_with_text(pair.unit.variants[code], text))
    return tostring(unit, encoding="unicode")


def _with_text(variant: Element, text: str) -> Element:
    """The variant itself where that is its text, with its inline tags.

    Else a copy with the text alone.
    """
    segment = variant.find("seg")
    if segment is not None and _text(segment).strip() == text.strip():
        return variant
    found = Element("tuv", dict(variant.attrib))
    for child in variant:
        if child.tag != "seg":
            found.append(child)
    SubElement(found, "seg").text = _NOT_XML.sub("", text)
    return found


def _pairs(
    unit: Element, source: str | None, target: str | None, header: Element | None, path: str
) -> list[TmxPair]:
    texts: dict[str, str] = {}
    variants: dict[str, Element] = {}
    for variant in unit.findall("tuv"):
        code = variant.get(XML_LANG) or variant.get("lang")
        segment = variant.find("seg")
        if code and segment is not None:
            try:
                own = languages.resolve(code).code
            except DataError as error:
                raise DataError(str(error), path=path) from error
            if own not in variants:
                variants[own] = variant
                texts[own] = _text(segment).strip()
    if source and target:
        wanted = [(source, target)] if source in texts and target in texts else []
    else:
        of_file = "*all*" if header is None else header.get("srclang", "*all*")
        first = _source_of(unit.get("srclang") or of_file, source, list(texts))
        wanted = (
            [(first, other) for other in texts if other != first and target in (None, other)]
            if first
            else []
        )
    score = _score(unit)
    whole = TmxUnit(unit, variants, header)
    return [TmxPair.of(TextPair(texts[a], texts[b], a, b, score), whole) for a, b in wanted]


def _source_of(declared: str, given: str | None, there: list[str]) -> str | None:
    if given:
        return given if given in there else None
    if declared.lower() != "*all*":
        try:
            code = languages.resolve(declared).code
        except DataError:
            code = ""
        if code in there:
            return code
    return there[0] if there else None


def _score(unit: Element) -> float | None:
    for prop in unit.findall("prop"):
        if prop.get("type", "").lower().startswith(SCORE):
            try:
                score = float(prop.text or "")
            except ValueError:
                return None
            return score if math.isfinite(score) else None
    return None


def _text(element: Element) -> str:
    parts = [element.text or ""]
    for child in element:
        if child.tag not in NATIVE_CODE:
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


@functools.cache
def _bcp47(code: str) -> str:
    """``de``; with the script where a language is written in several: ``sr-Cyrl``, ``zh-Hans``."""
    language = languages.resolve(code)
    written = {known.script for known in languages.known() if known.iso3 == language.iso3}
    short = language.iso1 or language.iso3
    return short if written == {language.script} else f"{short}-{language.script}"
