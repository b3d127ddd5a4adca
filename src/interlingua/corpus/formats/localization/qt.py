"""Qt Linguist's translations (.ts): an XML file of messages in contexts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from interlingua.config import languages
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import PairOfTable, TextPair, named_languages, requested_pair
from interlingua.corpus.formats.localization.language_places import language_of_path
from interlingua.corpus.formats.xml_stream import xml_events
from interlingua.errors import ConfigError, DataError
from interlingua.storage.files import PathLike, open_bytes

_TYPES = ("unfinished", "obsolete", "vanished")
"""Types of translations that are not in use; they are counted by these names."""
_COMMENTS = ("comment", "extracomment", "translatorcomment")
_FIELDS = ("id", "context", "form", "location", "comment")
_HEAD_BYTES = 1 << 12
_BYTE = re.compile(r"x([0-9A-Fa-f]{1,4})|(\d{1,5})")


class QtLinguist:
    """Messages of ``<TS>``, read one by one; each numerus form is a pair."""

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream the translated messages; a message that can't be read is left out.

        The source is English unless the file or the caller names another language. The target is
        named by the file, by the caller or by the file's name (``app_de.ts``).

        Raises:
            DataError: it is not a file of Qt, no message can be read, or a language is unknown.
        """
        root: Element | None = None
        context = ""
        codes: tuple[str, str] | None = None
        messages = 0
        failures: list[DataError] = []

        def rejected(error: DataError, content: str) -> None:
            failures.append(error)
            bad.leave_out(error, content)

        for event, element in xml_events(path, "message", rejected=rejected, skipped=skipped):
            if event == "start" and element.tag == "TS" and root is None:
                root = element
                codes = _codes(root, path, source_language, target_language)
            # The name of a context precedes its messages.
            elif event == "end" and element.tag == "name":
                context = (element.text or "").strip()
            elif event == "end" and element.tag == "message":
                messages += 1
                for texts, fields in _texts(element, context, skipped):
                    pair = TextPair(*texts, *(codes or ("", "")))
                    found = PairOfTable.of(pair, fields)
                    chosen = requested_pair(found, source_language, target_language)
                    if chosen is None:
                        skipped["no such languages"] += 1
                    else:
                        yield chosen
        if root is None:
            raise DataError(
                "the file contains no <TS>; check that it is a file of Qt Linguist", path=path
            )
        if failures and not messages:
            raise failures[0]

    @staticmethod
    def is_format_of(path: PathLike) -> bool:
        """Return whether a .ts file is of Qt, and not the Tsonga file of a Moses pair."""
        with open_bytes(path) as file:
            return re.search(rb"<(!DOCTYPE )?TS[\s>]", file.read(_HEAD_BYTES)) is not None

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Refuse to write, because files of Qt are generated from their program."""
        raise ConfigError(
            f"{path}: files of Qt Linguist cannot be written; use .tsv, .xlsx or .tmx"
        )


def _codes(root: Element, path: str, source: str | None, target: str | None) -> tuple[str, str]:
    own = languages.find_code(root.get("sourcelanguage") or languages.ENGLISH)
    other = languages.find_code(root.get("language", "")) or target or language_of_path(path)
    return named_languages(path, own or source, other)


def _texts(
    message: Element, context: str, skipped: Counter[str]
) -> Iterator[tuple[tuple[str, str], dict[str, str]]]:
    """Yield the texts of a message and its fields, once for each form."""
    translation = message.find("translation")
    if translation is None:
        skipped["untranslated"] += 1
        return
    if translation.get("type") in _TYPES:
        skipped[translation.get("type", "")] += 1
        return
    source = _text(message.find("source")).strip()
    # The source is one text for all numbers, "%n file(s)".
    forms = translation.findall("numerusform") or [translation]
    # Each form may have variants of several lengths, of which the first is the longest.
    texts = [_text(_first_of(form)).strip() for form in forms]
    fields = {"id": message.get("id", ""), "context": context, "location": _location(message)}
    notes = (_text(message.find(name)).strip() for name in _COMMENTS)
    fields["comment"] = " ".join(filter(None, notes))
    for number, text in enumerate(texts):
        if not source or not text:
            skipped["untranslated"] += 1
            continue
        fields["form"] = ""
        if len(texts) > 1:
            fields["form"] = str(number)
        yield (source, text), {name: fields[name] for name in _FIELDS}


def _first_of(form: Element) -> Element:
    variant = form.find("lengthvariant")
    if variant is None:
        return form
    return variant


def _location(message: Element) -> str:
    places = (
        f"{own.get('filename', '')}:{own.get('line', '')}" for own in message.findall("location")
    )
    return " ".join(places)


def _text(element: Element | None) -> str:
    """Return the text of an element; ``<byte value="x9"/>`` is a character."""
    if element is None:
        return ""
    parts = [element.text or ""]
    for child in element:
        found = _BYTE.fullmatch(child.get("value", ""))
        if child.tag == "byte" and found:
            # Hexadecimal behind an x, as the rest of Qt writes it.
            base = 10
            if found[1]:
                base = 16
            code = int(found[1] or found[2], base)
            # Neither NUL nor half of a surrogate pair of UTF-16.
            if 0 < code < 0xD800:
                parts.append(chr(code))
        parts.append(child.tail or "")
    return "".join(parts)
