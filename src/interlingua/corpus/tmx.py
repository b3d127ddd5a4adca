"""TMX 1.4, the exchange format of translation memories.

A unit holds more than two texts: an id, properties, dates, the regions of its languages, inline
tags. A pair that is read here carries its unit along, so that writing it as TMX again keeps all of
that; other formats write the texts.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring
from xml.sax.saxutils import escape, quoteattr

from interlingua import __version__, languages
from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.formats import TextPair, peek
from interlingua.corpus.tabular import score_of_cell
from interlingua.corpus.xml_stream import xml_events
from interlingua.errors import DataError
from interlingua.files import open_text_writer

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
NATIVE_CODE = {"bpt", "ept", "it", "ph", "ut"}
"""Tags of which the content is formatting of the original, not text."""
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
        first, pairs = peek(pairs)
        with open_text_writer(path) as file:
            header = _header(first)
            file.write(
                f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n{header}\n<body>\n'
            )
            for pair in pairs:
                file.write(f"{_unit(pair)}\n")
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


def _unit(pair: TextPair) -> str:
    if isinstance(pair, TmxPair):
        return _kept_unit(pair)
    score = ""
    if pair.score is not None:
        score = f'<prop type="score">{pair.score:.6g}</prop>'
    source = _new_variant(pair.source_language, pair.source)
    target = _new_variant(pair.target_language, pair.target)
    return f"<tu>{score}{source}{target}</tu>"


def _new_variant(code: str, text: str) -> str:
    segment = escape(_NOT_XML.sub("", text))  # XML can't write most control characters
    return f"<tuv xml:lang={quoteattr(_bcp47(code))}><seg>{segment}</seg></tuv>"


def _kept_unit(pair: TmxPair) -> str:
    unit = Element("tu", dict(pair.unit.element.attrib))
    if pair.score is not None:
        score = SubElement(unit, "prop", {"type": SCORE})
        score.text = f"{pair.score:.6g}"
    # The score first, then what the unit has besides texts: TMX wants <prop> before <tuv>.
    for child in pair.unit.element:
        is_old_score = child.tag == "prop" and child.get("type") == SCORE and pair.score is not None
        if child.tag != "tuv" and not is_old_score:
            unit.append(child)
    for code, text in ((pair.source_language, pair.source), (pair.target_language, pair.target)):
        unit.append(_with_text(pair.unit.variants[code], text))
    return tostring(unit, encoding="unicode")


def _with_text(variant: Element, text: str) -> Element:
    """The variant itself, with its inline tags, where that is its text.

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
            if own not in variants:  # of two variants in one language the first
                variants[own] = variant
                texts[own] = _text(segment).strip()
    if source and target:
        targets = [target]
    else:
        source = _source_of(_declared_source(unit, header), source, list(texts))
        targets = [code for code in texts if code != source and target in (None, code)]
    score = _score(unit)
    whole = TmxUnit(unit, variants, header)
    pairs = []
    for code in targets:
        if source in texts and code in texts:
            pair = TextPair(texts[source], texts[code], source, code, score)
            pairs.append(TmxPair.of(pair, whole))
    return pairs


def _declared_source(unit: Element, header: Element | None) -> str:
    """What the unit, or else the file's header, names as the language of the sources."""
    if own := unit.get("srclang"):
        return own
    if header is None:
        return "*all*"
    return header.get("srclang", "*all*")


def _source_of(declared: str, requested: str | None, present: list[str]) -> str | None:
    """The code of the source language among those of a unit; None where it has no such variant."""
    if requested:
        if requested in present:
            return requested
        return None
    if declared.lower() != "*all*":
        code = languages.find_code(declared)
        if code in present:
            return code
    return next(iter(present), None)


def _score(unit: Element) -> float | None:
    for prop in unit.findall("prop"):
        if prop.get("type", "").lower().startswith(SCORE):  # score-bicleaner and the like, too
            with contextlib.suppress(ValueError):
                return score_of_cell(prop.text or "")
            return None
    return None


def _text(element: Element) -> str:
    parts = [element.text or ""]
    for child in element:
        if child.tag not in NATIVE_CODE:
            parts.append(_text(child))
        parts.append(child.tail or "")  # the text behind an inline tag is its tail
    return "".join(parts)


@functools.cache
def _bcp47(code: str) -> str:
    """``de``; with the script where a language is written in several: ``sr-Cyrl``, ``zh-Hans``."""
    language = languages.resolve(code)
    written = {known.script for known in languages.known() if known.iso3 == language.iso3}
    tag = language.iso1 or language.iso3
    if written == {language.script}:
        return tag
    return f"{tag}-{language.script}"
