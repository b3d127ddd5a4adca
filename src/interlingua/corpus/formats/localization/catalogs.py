"""Pairs of two catalogs of keys and texts, one for each language, by their keys.

Android's ``strings.xml``, iOS's ``.strings``, and JSON: flat or nested objects, i18next, ARB and
``messages.json`` of browsers' extensions. Plurals, arrays and nested objects have paths as keys:
``days[other]``, ``days[0]``, ``menu.file.open``.

A key that only one file has is counted, and the first ones are named once. A plural form that only
one language has is paired with the other language's form of many.
"""

from __future__ import annotations

import codecs
import functools
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import PairOfTable, TextPair
from interlingua.corpus.formats.localization.two_files import files_of_languages, find_two_files
from interlingua.corpus.formats.xml_stream import xml_events
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.storage.files import PathLike, open_bytes, stem_and_suffix
from interlingua.storage.json_text import load_json, parse_json
from interlingua.storage.limits import read_limited, refuse_long

log = logging.getLogger("interlingua")
CATALOG_SUFFIXES = (".strings", ".arb", ".xml", ".json")
MAX_CATALOG_BYTES = 1 << 26
_NAMED_KEYS = 5
_FORMS = ("zero", "one", "two", "few", "many", "other")
_FORM = re.compile(rf"(?P<base>.*?)(?:\[(?P<a>{'|'.join(_FORMS)})\]|[._](?P<b>{'|'.join(_FORMS)}))")
_MESSAGE_KEYS = ("message", "defaultMessage")
_HEAD_BYTES = 1 << 16
_UNTRANSLATED = "untranslated"
_NOT_TRANSLATABLE = "not to be translated"
_NO_TEXT = "values that are no text"


class Entry(NamedTuple):
    """A text of a catalog."""

    text: str
    note: str = ""


class Catalog:
    """Two catalogs: ``en.json`` and ``de.json``, ``values/strings.xml`` and ``values-de/...``.

    The user names them by one of the two files, or by both with a comma. English, or the folder
    without a language, is the source unless languages are specified.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Read both files and yield the pairs in the order of the source."""
        files = find_two_files(path, source_language, target_language)
        source = read_keys(files.paths[0], skipped, bad)
        target = read_keys(files.paths[1], skipped, bad)
        matched = _matched_keys(source, target)
        _tell_missing(files.paths, source, target, matched, skipped)
        for key, other in matched:
            texts = source[key].text.strip(), target[other].text.strip()
            if not all(texts):
                skipped[_UNTRANSLATED] += 1
                continue
            fields = {"key": key, "note": source[key].note or target[other].note}
            if key in target:  # the pair gets the key of the form that only one language has
                fields["key"] = other
            yield PairOfTable.of(TextPair(*texts, *files.languages), fields)

    @staticmethod
    def is_format_of(path: PathLike) -> bool:
        """Return whether a .xml or .json file is a catalog.

        A JSON file is a catalog if it has one object over several lines, and if the same file
        exists in another language, by its name or folder.
        """
        with open_bytes(path) as file:
            head = file.read(_HEAD_BYTES)
        if stem_and_suffix(path)[1] == ".xml":
            return re.search(rb"<resources[\s>]", head) is not None
        return _is_one_object(head) and len(files_of_languages(str(path))) > 1

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Refuse to write, because a catalog has only one language."""
        raise ConfigError(f"{path}: catalogs of keys cannot be written; use .tsv, .xlsx or .tmx")


def _is_one_object(head: bytes) -> bool:
    """Return whether a file starts with one object that is not the first line of JSON Lines."""
    text = head.decode("utf-8-sig", "replace").strip()
    if not text.startswith("{"):
        return False
    lines = text.splitlines()
    try:
        parse_json(lines[0])
    except ValueError:
        return True
    # A whole object in the first line is a record, unless it is the only one.
    return len(lines) == 1 and not re.search(r'"(source|target|translation|text)"\s*:', text)


def read_keys(path: PathLike, skipped: Counter[str], bad: BadLines) -> dict[str, Entry]:
    """Return the texts of a catalog by their keys.

    Raises:
        DataError: it is missing, damaged, in another character set or not a catalog.
    """
    suffix = stem_and_suffix(path)[1]
    readers: Mapping[str, Callable[[PathLike, Counter[str], BadLines], dict[str, Entry]]] = {
        ".xml": _read_android,
        ".strings": _read_strings,
        ".json": _read_json,
        ".arb": _read_json,
    }
    if suffix not in readers:
        known = ", ".join(CATALOG_SUFFIXES)
        raise DataError(f"is not a catalog of keys; use one of: {known}", path=path)
    found = readers[suffix](path, skipped, bad)
    for key, entry in found.items():
        refuse_long(len(entry.text), f"the text of {key[:40]!r}", path=path)
    return found


def _matched_keys(
    source: Mapping[str, Entry], target: Mapping[str, Entry]
) -> list[tuple[str, str]]:
    """Return the keys of both catalogs that belong together.

    Languages have different plural forms: a missing form is replaced by the form of many.
    """
    found = []
    for key in source:
        other = _same_key(key, target)
        if other is not None:
            found.append((key, other))
    # The other pairs are plural forms that only the target's language has.
    for key in target:
        other = _same_key(key, source)
        if other is not None and other != key:
            found.append((other, key))
    return found


def _same_key(key: str, entries: Mapping[str, Entry]) -> str | None:
    """Return the key itself if it is there, else that of the same plural in the form of many."""
    if key in entries:
        return key
    return _form_of_many(key, entries)


def _form_of_many(key: str, entries: Mapping[str, Entry]) -> str | None:
    """Return the key of the same plural in the form of many; None if there is none."""
    form = _FORM.fullmatch(key)
    if form is None:
        return None
    # "days[few]" of Android, "days_few" of i18next, "days.few" of nested objects.
    separator = key[len(form["base"])]
    other = f"{form['base']}{separator}other"
    if separator == "[":
        other += "]"
    if other in entries:
        return other
    return None


def _tell_missing(
    paths: tuple[Path, Path],
    source: Mapping[str, Entry],
    target: Mapping[str, Entry],
    matched: list[tuple[str, str]],
    skipped: Counter[str],
) -> None:
    """Count the keys that only one file has, and name the first ones."""
    # A form of a plural that was replaced by that of many is not missing.
    for side, (own, other) in enumerate(((source, target), (target, source))):
        met = {keys[side] for keys in matched}
        missing = [key for key in own if key not in other and key not in met]
        if missing:
            skipped[f"keys missing in {paths[1 - side]}"] += len(missing)
            shown = tuple(key[:60] for key in missing[:_NAMED_KEYS])
            _tell_once(str(paths[1 - side]), len(missing), shown, str(paths[side]))


@functools.lru_cache(maxsize=4096)
def _tell_once(path: str, count: int, keys: tuple[str, ...], other: str) -> None:
    shown = ", ".join(keys)
    if count > len(keys):
        shown += f" and {count - len(keys):,} more"
    log.warning("%s: lacks %s of %s: %s", path, count_of(count, "keys"), other, shown)


# Android


def _read_android(path: PathLike, skipped: Counter[str], bad: BadLines) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    is_android = False
    kinds = ("string", "plurals", "string-array")
    entries = 0
    failures: list[DataError] = []

    def rejected(error: DataError, content: str) -> None:
        failures.append(error)
        bad.leave_out(error, content)

    for event, element in xml_events(path, kinds, rejected=rejected, skipped=skipped):
        is_android = is_android or element.tag == "resources"
        if event != "end" or element.tag not in kinds:
            continue
        entries += 1
        # Names of products and addresses, which the developers keep as they are.
        if element.get("translatable") == "false":
            skipped[_NOT_TRANSLATABLE] += 1
            continue
        found |= _android_texts(element)
    if not is_android:
        raise DataError(
            "the file contains no <resources>; check that it is a catalog of Android", path=path
        )
    if failures and not entries:
        raise failures[0]
    return found


def _android_texts(element: Element) -> dict[str, Entry]:
    """Return the texts of an element of Android by their keys."""
    name = element.get("name", "")
    if element.tag == "string":
        return {name: Entry(_android_text(element))}
    found = {}
    for number, item in enumerate(element.findall("item")):
        found[f"{name}[{item.get('quantity', number)}]"] = Entry(_android_text(item))
    return found


def _android_text(element: Element) -> str:
    r"""Return a text of Android without tags and escapes.

    White space outside of double quotes becomes one space; ``\n``, ``\u0020`` etc. are escapes.
    """
    # Tags such as <b> or <xliff:g> hold text of their own.
    raw = "".join(element.itertext())
    parts = []
    is_quoted = False
    for piece in re.findall(r"\\u[0-9A-Fa-f]{4}|\\.|\"|\s+|[^\\\"\s]+|\\", raw, re.DOTALL):
        if piece == '"':
            is_quoted = not is_quoted
        elif piece.startswith("\\"):
            parts.append(_unescaped(piece))
        elif piece.isspace() and not is_quoted:
            parts.append(" ")
        else:
            parts.append(piece)
    return _joined_surrogates("".join(parts)).strip()


def _unescaped(escape: str) -> str:
    """Return the character of an escape, which has a letter, a number or the character itself."""
    if len(escape) > 2:
        return chr(int(escape[2:], 16))
    letters = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
    return letters.get(escape[1:], escape[1:])


def _joined_surrogates(text: str) -> str:
    """Return a text with pairs of surrogates joined; half a pair is left out."""
    if text.isascii():
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return whole.encode("utf-8", "ignore").decode("utf-8")


# iOS

_STRINGS_ENTRY = re.compile(
    r"(?:\"(?P<key>(?:[^\"\\]|\\.)*)\"|(?P<word>[\w.$/:-]+))\s*=\s*"
    r"(?:\"(?P<text>(?:[^\"\\]|\\.)*)\"|(?P<value>[\w.$/:-]+))\s*;",
    re.DOTALL,
)
_STRINGS_SPACE = re.compile(r"\s+|//[^\n]*|/\*(?P<note>.*?)\*/", re.DOTALL)
_STRINGS_ESCAPE = re.compile(r"\\(?:[uU]([0-9A-Fa-f]{4})|([0-3][0-7]{2})|(.))", re.DOTALL)
_NO_NOTE = "No comment provided by engineer."


def _read_strings(path: PathLike, skipped: Counter[str], bad: BadLines) -> dict[str, Entry]:
    """Return the texts of ``"key" = "text";``; an entry that can't be read ends with its line."""
    with open_bytes(path) as file:
        content = read_limited(file, path, MAX_CATALOG_BYTES)
    text = _strings_text(content, path)
    found: dict[str, Entry] = {}
    failure: DataError | None = None
    position = 0
    note = ""
    while position < len(text):
        space = _STRINGS_SPACE.match(text, position)
        if space is not None:
            # The last comment before an entry is its note.
            note = (space["note"] or "").strip() or note
            position = space.end()
            continue
        entry = _STRINGS_ENTRY.match(text, position)
        if entry is None:
            # The next line may start an entry again.
            end = text.find("\n", position) + 1 or len(text)
            problem = 'expected "key" = "text"; correct the entry'
            error = DataError(problem, path=path, line=text.count("\n", 0, position) + 1)
            bad.leave_out(error, text[position:end])
            failure = failure or error
            position = end
        else:
            key = _strings_unescaped(entry["key"] or entry["word"] or "")
            value = _strings_unescaped(entry["text"] or entry["value"] or "")
            found[key] = Entry(value, note.replace(_NO_NOTE, ""))
            position = entry.end()
        note = ""
    if failure is not None and not found:
        raise failure
    return found


def _strings_text(content: bytes, path: PathLike) -> str:
    """Return the text of a file in UTF-16, with or without a mark, or in UTF-8.

    Raises:
        DataError: it is in neither.
    """
    charset = "utf-8-sig"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        charset = "utf-16"
    # Without a mark: the first character of a catalog is ASCII, so one of its two bytes is NUL.
    elif content[:1] == b"\0":
        charset = "utf-16-be"
    elif content[1:2] == b"\0":
        charset = "utf-16-le"
    try:
        text = content.decode(charset)
    except UnicodeDecodeError as error:
        raise DataError(
            f"is neither UTF-8 nor UTF-16 (byte {error.start:,}); convert it to UTF-8", path=path
        ) from error
    if "\0" in text:
        raise DataError(
            "contains NUL, so it is not text; check that it is not a compiled catalog", path=path
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _strings_unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    letters = {"n": "\n", "t": "\t", "r": "\r"}

    def character(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2]:
            return chr(int(found[2], 8))
        return letters.get(found[3], found[3])

    return _joined_surrogates(_STRINGS_ESCAPE.sub(character, text))


# JSON


def _read_json(path: PathLike, skipped: Counter[str], bad: BadLines) -> dict[str, Entry]:
    content = load_json(path)
    if not isinstance(content, dict):
        raise DataError(f"expected an object of keys, found {type(content).__name__}", path=path)
    found: dict[str, Entry] = {}
    for key, value in _leaves(content):
        if isinstance(value, Entry):
            found[key] = value
        else:
            skipped[_NO_TEXT] += 1
    return found


def _leaves(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the texts of nested objects and lists by their paths, and other values as they are."""
    # A stack and no recursion, because an untrusted file may be nested deeply.
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, Entry(value)
        elif isinstance(value, dict):
            message = next((name for name in _MESSAGE_KEYS if _is_message(value, name)), None)
            if message is not None and path:
                yield path, Entry(value[message], str(value.get("description", "")))
                continue
            # Keys of ARB that start with @ hold notes and settings.
            inner = [(key, own) for key, own in value.items() if not key.startswith("@")]
            notes = {key[1:]: own for key, own in value.items() if key.startswith("@")}
            for key, own in reversed(inner):
                name = f"{path}.{key}".removeprefix(".")
                if isinstance(own, str) and isinstance(notes.get(key), dict):
                    own = {"message": own, "description": notes[key].get("description", "")}
                waiting.append((name, own))
        elif isinstance(value, list):
            waiting += [(f"{path}[{n}]", own) for n, own in reversed(list(enumerate(value)))]
        else:
            yield path, value


def _is_message(value: Mapping[str, Any], name: str) -> bool:
    """Return whether an object is one text, under the key ``name``, with notes, and no catalog."""
    return isinstance(value.get(name), str) and not (
        set(value) - {name, "description", "placeholders", "id", "context"}
    )
