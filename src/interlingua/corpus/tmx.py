"""TMX 1.4, the exchange format of translation memories."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from interlingua import __version__, languages
from interlingua.corpus.formats import TextPair
from interlingua.corpus.xml_stream import xml_events
from interlingua.errors import DataError
from interlingua.files import open_text_writer

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
NATIVE_CODE = {"bpt", "ept", "it", "ph", "ut"}  # their content is formatting of the original, not text
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Tmx:
    """Translation units of two or more variants; ``xml:lang``, ``lang`` and any spelling of a code are understood."""

    def read(
        self, path: str, source_language: str | None, target_language: str | None, skipped: Counter[str]
    ) -> Iterator[TextPair]:
        """Streams the units, one at a time in memory.

        With both languages given, a unit gives the pair of these two; else it gives the pairs of its source variant
        (``srclang``; the first where that is ``*all*``) with every other one. Units without a pair are counted.
        """
        has_body = False
        header = "*all*"
        for event, element in xml_events(path, "tu"):
            if event == "start" and element.tag == "header":
                header = element.get("srclang", "*all*")
            elif event == "start" and element.tag == "body":
                has_body = True
            elif event == "end" and element.tag == "tu":
                pairs = _pairs(element, source_language, target_language, header, path)
                skipped["no such languages"] += not pairs
                yield from pairs
        if not has_body:
            raise DataError("no <body>; is it TMX?", path=path)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes one unit a pair, its score as a property; any mixture of languages."""
        count = 0
        with open_text_writer(path) as file:
            file.write(
                '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
                f'<header creationtool="interlingua" creationtoolversion="{__version__}" segtype="sentence" '
                'o-tmf="none" adminlang="en" srclang="*all*" datatype="plaintext"/>\n<body>\n'
            )
            for pair in pairs:
                score = "" if pair.score is None else f'<prop type="score">{pair.score:.6g}</prop>'
                sides = ((pair.source_language, pair.source), (pair.target_language, pair.target))
                variants = "".join(
                    f"<tuv xml:lang={quoteattr(_bcp47(code))}><seg>{escape(_NOT_XML.sub('', text))}</seg></tuv>"
                    for code, text in sides
                )
                file.write(f"<tu>{score}{variants}</tu>\n")
                count += 1
            file.write("</body>\n</tmx>\n")
        return count


def _pairs(unit: Element, source: str | None, target: str | None, header: str, path: str) -> list[TextPair]:
    texts: dict[str, str] = {}
    for variant in unit.findall("tuv"):
        code = variant.get(XML_LANG) or variant.get("lang")
        segment = variant.find("seg")
        if code and segment is not None:
            try:
                texts.setdefault(languages.resolve(code).code, _text(segment).strip())
            except DataError as error:
                raise DataError(str(error), path=path) from error
    if source and target:
        wanted = [(source, target)] if source in texts and target in texts else []
    else:
        first = _source_of(unit.get("srclang") or header, source, list(texts))
        wanted = [(first, other) for other in texts if other != first and target in (None, other)] if first else []
    score = _score(unit)
    return [TextPair(texts[a], texts[b], a, b, score) for a, b in wanted]


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
        if prop.get("type", "").lower().startswith("score"):
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
