"""Glossaries: tables of two columns, and TBX (v2 ``termEntry``, v3 and TBX-Basic ``conceptEntry``).

A table is any format of bitext with columns (CSV, TSV, XLSX, JSONL). Several translations of a
term are in several rows, or in one cell, separated by `` | ``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from interlingua.config.languages import find_code
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.tmx import XML_LANG
from interlingua.corpus.formats.xml_stream import xml_events
from interlingua.errors import DataError, count_of
from interlingua.storage.files import open_bytes, stem_and_suffix

_ENTRIES = ("conceptEntry", "termEntry")
_LANGUAGE_TAGS = ("langSec", "langSet")
_REFUSED = ("deprecated", "superseded", "obsolete", "forbidden", "notrecommended")
"""Prefixes of the status of terms that must not be used, in lowercase without hyphens."""
_HEAD_BYTES = 1 << 16


class TermPair(NamedTuple):
    """A term and the translations of it that are accepted."""

    source: str
    targets: tuple[str, ...]


def read_glossary(path: Path, languages: tuple[str, str]) -> list[TermPair]:
    """Read the terms of two languages.

    Args:
        path: of the file.
        languages: codes of source and target; a table that names no languages is assumed to have
            these.

    Raises:
        DataError: the file can't be read, or it has no term of both languages.
    """
    if stem_and_suffix(path)[1] == ".tbx":
        found = list(_tbx_terms(path, languages))
    else:
        found = list(_table_terms(path, languages))
    merged: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for source, targets in found:
        if source.strip() and any(map(str.strip, targets)):
            merged[source.strip()].update(dict.fromkeys(filter(None, map(str.strip, targets))))
    if not merged:
        raise DataError(
            f"no term in {languages[0] or 'the source'} with a translation in"
            f" {languages[1] or 'the target'}; expected two columns, source and target, or TBX"
            " with both languages",
            path=path,
        )
    return [TermPair(source, tuple(targets)) for source, targets in merged.items()]


def _table_terms(path: Path, languages: tuple[str, str]) -> Iterator[tuple[str, list[str]]]:
    # Texts in memory may have no languages, but the reader requires two; any two are suitable.
    source, target = languages if all(languages) else ("eng_Latn", "deu_Latn")
    for pair in read_pairs(path, source_language=source, target_language=target):
        for term in pair.source.split(" | "):
            yield term, pair.target.split(" | ")


def _tbx_terms(path: Path, languages: tuple[str, str]) -> Iterator[tuple[str, list[str]]]:
    entry = _entry_tag(path)
    seen: dict[str, None] = {}
    entries = 0
    for event, element in xml_events(path, entry):
        if event != "end" or element.tag != entry:
            continue
        entries += 1
        terms: defaultdict[str, list[str]] = defaultdict(list)
        for section in element:
            if section.tag in _LANGUAGE_TAGS:
                code = find_code(section.get(XML_LANG) or section.get("lang") or "") or ""
                seen[code] = None
                terms[code] += _terms_of(section)
        for term in terms[languages[0]]:
            yield term, terms[languages[1]]
    if not set(languages) <= set(seen):
        present = ", ".join(filter(None, seen)) or "none"
        raise DataError(
            f"the file contains {count_of(entries, 'entries')} with terms in {present}; expected"
            f" terms in {' and '.join(languages)}",
            path=path,
        )


def _entry_tag(path: Path) -> str:
    """Return the tag of an entry, by the first one in the file."""
    with open_bytes(path) as file:
        head = file.read(_HEAD_BYTES).replace(b"\0", b"")
    places = {tag: head.find(f"<{tag}".encode()) for tag in _ENTRIES}
    found = [tag for tag in _ENTRIES if places[tag] >= 0]
    if not found:
        raise DataError(
            "the file contains no <termEntry> or <conceptEntry>; check that it is TBX", path=path
        )
    return min(found, key=places.__getitem__)


def _terms_of(section: Element) -> Iterator[str]:
    """Yield the terms of a language that may be used."""
    for group in section:
        notes = [
            "".join((note.text or "").lower().split("-"))
            for note in group.iter()
            if (note.get("type") or note.tag) in ("administrativeStatus", "normativeAuthorization")
        ]
        if any(note.startswith(_REFUSED) for note in notes):
            continue
        for term in group.iter("term"):
            yield " ".join("".join(term.itertext()).split())
