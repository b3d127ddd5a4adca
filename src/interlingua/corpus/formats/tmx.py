"""TMX 1.4, the exchange format of translation memories.

A unit holds more than two texts: an id, properties, dates, the regions of its languages, inline
tags. A pair that is read here keeps its unit, so that all these values are kept if the pair is
written as TMX again; other formats write only the texts.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring
from xml.sax.saxutils import escape, quoteattr

from interlingua import __version__
from interlingua.config import languages
from interlingua.config.languages import LanguageCode, choose_code, region_of, written_tag
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    PairWithOrigin,
    TextPair,
    field_text,
    pair_fields,
    peek,
)
from interlingua.corpus.formats.table_columns import score_of_cell
from interlingua.corpus.formats.xml_stream import xml_events
from interlingua.errors import DataError
from interlingua.storage.files import open_text_writer

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
NATIVE_CODE = {"bpt", "ept", "it", "ph", "ut"}
"""Tags of which the content is formatting of the original, not text."""
_NOTE = "note"
FORM_OF_UNIT = ("srclang", "datatype", "segtype", "o-encoding", "o-tmf")
"""Attributes of a unit about its form, not its meaning."""
_SCORE = "score"
"""Type of the property that holds the score."""
OTHER_VARIANT = "other variants of a language"
UNKNOWN_LANGUAGE = "text in an unknown language"
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Variant(NamedTuple):
    """A text of a unit."""

    code: LanguageCode
    text: str
    element: Element
    """The ``<tuv>``."""


class TmxUnit(NamedTuple):
    """The source unit of a pair."""

    element: Element
    """The ``<tu>``."""
    variants: tuple[Variant, ...]
    """The texts that are written again: source, target, then others of these languages."""
    header: Element | None
    """Header of the file."""


class TmxPair(PairWithOrigin):
    """A pair with the unit that it was read from."""

    origin: TmxUnit

    @property
    def fields(self) -> dict[str, str | list[str]]:
        """Attributes, notes and properties of the unit, except a score.

        A key that occurs several times has a list.
        """
        unit = self.origin.element
        found: dict[str, list[str]] = {
            name: [value] for name, value in unit.attrib.items() if name not in FORM_OF_UNIT
        }
        for child in unit:
            name = _NOTE if child.tag == _NOTE else child.get("type", "")
            is_score = name.lower().startswith(_SCORE)
            if child.tag in (_NOTE, "prop") and name and not is_score:
                found.setdefault(name, []).append(child.text or "")
        return {name: own[0] if len(own) == 1 else own for name, own in found.items()}

    def swapped(self) -> TmxPair:
        """Return the same pair with source and target swapped, also in its unit."""
        source, target, *others = self.origin.variants
        turned = self.origin._replace(variants=(target, source, *others))
        return TmxPair.of(super().swapped(), turned)


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
        """Stream the units, one at a time in memory.

        If both languages are specified, a unit gives their pair. Otherwise it gives one pair for
        each language other than that of the source: the source variant with the first variant of
        this other language. The source variant is the one in ``srclang``, or the first variant if
        ``srclang`` is ``*all*``. A specified region must match: ``de-CH`` takes the Swiss variant,
        or one that names no region. Units without a pair, further variants of a language and texts
        in unknown languages are counted. A unit that can't be read is left out.

        Raises:
            DataError: it is not TMX, or no unit can be read.
        """
        has_body = False
        header: Element | None = None
        units = 0
        failures: list[DataError] = []

        def rejected(error: DataError, content: str) -> None:
            failures.extend([error] if not failures else [])
            bad.leave_out(error, content)

        events = xml_events(path, "tu", rejected=rejected, skipped=skipped)
        for event, element in events:
            if event == "start" and element.tag == "header":
                header = element
            elif event == "start" and element.tag == "body":
                has_body = True
            elif event == "end" and element.tag == "tu":
                units += 1
                pairs = _pairs(element, source_language, target_language, header, skipped)
                skipped["no such languages"] += not pairs
                yield from pairs
        if not has_body:
            raise DataError("the file contains no <body>; check that it is TMX", path=path)
        if failures and not units:
            raise failures[0]

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write one unit per pair, with its score as a property; the languages may be any mixture.

        A pair that was read from TMX keeps its unit, except other languages and an earlier score;
        the header is that of the first pair.
        """
        first, pairs = peek(pairs)
        return self._write(pairs, path, _header(first))

    def write_empty(self, path: str, head: TextPair) -> None:
        """Write a file without units, for the languages of a pair."""
        self._write((), path, _new_header(head))

    def _write(self, pairs: Iterable[TextPair], path: str, header: str) -> int:
        """Write units behind a header."""
        count = 0
        with open_text_writer(path) as file:
            file.write(
                f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n{header}\n<body>\n'
            )
            for pair in pairs:
                file.write(f"{_unit(pair)}\n")
                count += 1
            file.write("</body>\n</tmx>\n")
        return count


def _header(first: TextPair | None) -> str:
    if isinstance(first, TmxPair) and first.origin.header is not None:
        return tostring(first.origin.header, encoding="unicode").strip()
    return _new_header(None)


def _new_header(head: TextPair | None) -> str:
    """Return the header of a new file.

    It names the languages of ``head``; without ``head``, the units name them.
    """
    source = "*all*"
    if head is not None:
        source = written_tag(head.source_language)
    attributes = (
        f'creationtool="interlingua" creationtoolversion="{__version__}" segtype="sentence"'
        f' o-tmf="none" adminlang="en" srclang={quoteattr(source)} datatype="plaintext"'
    )
    if head is None:
        return f"<header {attributes}/>"
    target = escape(written_tag(head.target_language))
    return f'<header {attributes}><prop type="targetlang">{target}</prop></header>'


def _unit(pair: TextPair) -> str:
    if isinstance(pair, TmxPair):
        return _kept_unit(pair)
    props = ""
    if pair.score is not None:
        props = f'<prop type="score">{pair.score:.6g}</prop>'
    for name, value in pair_fields(pair).items():
        props += (
            f"<prop type={quoteattr(name)}>{escape(_NOT_XML.sub('', field_text(value)))}</prop>"
        )
    source = _new_variant(pair.source_language, pair.source)
    target = _new_variant(pair.target_language, pair.target)
    return f"<tu>{props}{source}{target}</tu>"


def _new_variant(code: str, text: str) -> str:
    segment = escape(_NOT_XML.sub("", text))  # XML can't write most control characters
    return f"<tuv xml:lang={quoteattr(written_tag(code))}><seg>{segment}</seg></tuv>"


def _kept_unit(pair: TmxPair) -> str:
    unit = Element("tu", dict(pair.origin.element.attrib))
    if pair.score is not None:
        score = SubElement(unit, "prop", {"type": _SCORE})
        score.text = f"{pair.score:.6g}"
    # The score first, then the unit's further values: TMX wants <prop> before <tuv>.
    for child in pair.origin.element:
        is_old_score = (
            child.tag == "prop" and child.get("type") == _SCORE and pair.score is not None
        )
        if child.tag != "tuv" and not is_old_score:
            unit.append(child)
    source, target, *others = pair.origin.variants
    unit.append(_with_text(source, pair.source))
    unit.append(_with_text(target, pair.target))
    for variant in others:
        unit.append(variant.element)
    return tostring(unit, encoding="unicode")


def _with_text(variant: Variant, text: str) -> Element:
    """Return the variant's element, with its inline tags, if its text is ``text``.

    Otherwise return a copy with only the text.
    """
    element = variant.element
    segment = element.find("seg")
    if segment is not None and variant.text == text.strip():
        return element
    found = Element("tuv", dict(element.attrib))
    for child in element:
        if child.tag in ("note", "prop"):
            found.append(child)
    SubElement(found, "seg").text = _NOT_XML.sub("", text)
    return found


def _pairs(
    unit: Element,
    source: str | None,
    target: str | None,
    header: Element | None,
    skipped: Counter[str],
) -> list[TmxPair]:
    variants = _variants(unit, skipped)
    own = _source_of(_declared_source(unit, header), source, _without(target, source, variants))
    if own is None:
        return []
    targets = _targets_of(own, target, variants)
    score = _score(unit)
    codes = {own.code, *(found.code for found in targets)}
    chosen = [own, *targets]
    skipped[OTHER_VARIANT] += sum(found.code in codes and found not in chosen for found in variants)
    pairs = []
    for found in targets:
        kept = (own, found, *_others(own, found, (source, target), variants))
        pair = TextPair(own.text, found.text, own.code, found.code, score)
        pairs.append(TmxPair.of(pair, TmxUnit(unit, kept, header)))
    return pairs


def _variants(unit: Element, skipped: Counter[str]) -> list[Variant]:
    """Return the texts of a unit, without those in a language that is not known."""
    found = []
    for element in unit.findall("tuv"):
        name = element.get(XML_LANG) or element.get("lang") or ""
        segment = element.find("seg")
        text = _direct_text(element) if segment is None else _text(segment)
        code = _code_of(name)
        if code is None:
            skipped[UNKNOWN_LANGUAGE] += 1
        else:
            found.append(Variant(code, text.strip(), element))
    return found


@functools.lru_cache(maxsize=1024)
def _code_of(name: str) -> LanguageCode | None:
    """Return the code of a language's tag; all units repeat the same few tags."""
    return languages.find_code(name)


def _direct_text(variant: Element) -> str:
    """Return the text of a variant that some tools write without a ``<seg>``."""
    parts = [variant.text or ""]
    for child in variant:
        if child.tag not in ("note", "prop", *NATIVE_CODE):
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _declared_source(unit: Element, header: Element | None) -> str:
    """Return the language of the sources that the unit, or else the file's header, declares."""
    if own := unit.get("srclang"):
        return own
    if header is None:
        return "*all*"
    return header.get("srclang", "*all*")


def _source_of(declared: str, requested: str | None, variants: list[Variant]) -> Variant | None:
    """Return the source among the texts of a unit; None if it has none in that language."""
    if requested:
        return _first_of(requested, variants)
    found = None
    if code := _code_of(declared):
        found = _first_of(code, variants) or _first_of(str(code), variants)
    return found or next(iter(variants), None)


def _without(target: str | None, source: str | None, variants: list[Variant]) -> list[Variant]:
    """Return the texts that may be the source: all but the one in the region of the target."""
    if target is None or region_of(target) is None or source not in (None, target):
        return variants
    taken = _first_of(target, variants)
    return [found for found in variants if found is not taken]


def _targets_of(source: Variant, requested: str | None, variants: list[Variant]) -> list[Variant]:
    """Return the texts to pair with the source: the requested one, or one of each language."""
    others = [found for found in variants if found is not source]
    if requested:
        found = _first_of(requested, others)
        # Another region of the source's language is paired with it on request only.
        is_same = requested == source.code and region_of(requested) is None
        return [] if found is None or is_same else [found]
    firsts: dict[str, Variant] = {}
    for found in others:
        if found.code != source.code:
            firsts.setdefault(found.code, found)
    if not firsts:  # the unit translates from one region of a language to another
        regional = (found for found in others if found.code.region != source.code.region)
        return list(itertools.islice(regional, 1))
    return list(firsts.values())


def _first_of(requested: str, variants: list[Variant]) -> Variant | None:
    """Return the first text in a requested language and region."""
    place = choose_code(requested, [found.code for found in variants])
    if place is None:
        return None
    return variants[place]


def _others(
    source: Variant,
    target: Variant,
    requested: tuple[str | None, str | None],
    variants: list[Variant],
) -> list[Variant]:
    """Return the further texts of both languages, which are kept unless a region is requested."""
    kept = []
    for one, request in ((source, requested[0]), (target, requested[1])):
        if request is None or region_of(request) is None:
            kept.append(one.code)
    return [
        found
        for found in variants
        if found is not source and found is not target and found.code in kept
    ]


def _score(unit: Element) -> float | None:
    for prop in unit.findall("prop"):
        if prop.get("type", "").lower().startswith(_SCORE):  # score-bicleaner and the like, too
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
