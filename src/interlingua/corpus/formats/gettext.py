"""Translations in gettext catalogues, ``.po`` and compiled ``.mo``.

The message is the source, mostly English. A ``.mo`` file has two tables of (length, offset), one
for the messages and one for their translations in the same order. Its numbers are little-endian or
big-endian.

A pair keeps its entry, so that a written catalogue has the same context, plurals, comments,
references and flags. If an entry of a ``.po`` file can't be read, only this entry is lost.

Catalogues are written by polib. They are read here, because polib expects correct files. From a
truncated ``.mo`` file of 30,000 entries, it returns all entries, 9,290 of them without a
translation, and raises no error. Overlapping strings turn a file of 1 MB into 4 GB, and one bad
line in a ``.po`` file loses all entries. Reading the 30,000 entries takes 0.09 s here, and 0.16 s
in polib.
"""

from __future__ import annotations

import gettext
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.config import languages
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    PairWithOrigin,
    TextPair,
    one_language_pair,
    peek,
    uncompressed_name,
    without_lost_values,
)
from interlingua.corpus.formats.charsets import decoded, is_decoded, known_charset
from interlingua.errors import DataError, import_extra
from interlingua.storage.files import atomic_write, open_bytes, open_text_writer
from interlingua.storage.limits import read_limited

MAGIC = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{1,3})\])?\s*(?=\")")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "b": "\b", "f": "\f", "a": "\a"}
OBSOLETE = "#~"
COMMENTS = {"comment": "# ", "extracted": "#.", "reference": "#:", "previous": "#|"}
"""Fields of a pair, with the start of the comments that they contain."""
ENGLISH_PLURAL = "n!=1"
_MANY = 100  # a number with the plural form that most numbers have
MAX_CATALOGUE_BYTES = 1 << 26
SHARED_STRINGS = 4
"""Maximum total size of the strings of a compiled catalogue, as a multiple of its own size: equal
strings may share bytes."""


class Message(NamedTuple):
    """An entry of a catalogue."""

    text: str
    plural: str | None
    translations: Mapping[int, str]
    """Translations by the number of the form; only 0 if the entry has no plural."""
    context: str | None = None
    flags: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()
    """Lines of a ``.po`` file with their comments; empty for a compiled catalogue."""

    @property
    def forms(self) -> list[str]:
        """The translations in the order of their numbers."""
        return [self.translations[number] for number in sorted(self.translations)]


class Origin(NamedTuple):
    """The source entry of a pair."""

    message: Message
    sides: tuple[tuple[str, str], ...]
    """The texts of all pairs of the entry."""
    header: Message | None
    """Header of the catalogue."""


class GettextPair(PairWithOrigin):
    """A pair with its entry of a catalogue."""

    origin: Origin

    @property
    def fields(self) -> dict[str, str]:
        """The context, plural, comments, references and flags of the entry."""
        message = self.origin.message
        found: dict[str, str] = {}
        if message.context is not None:
            found["context"] = message.context
        if message.plural is not None:
            found["plural"] = message.plural
            found["form"] = self._form(message)
        found["flags"] = ", ".join(sorted(message.flags))
        for name, mark in COMMENTS.items():
            own = [line[2:].strip() for line in message.lines if line.startswith(mark)]
            found[name] = " ".join(own)
        return {name: value for name, value in found.items() if value or name == "context"}

    def _form(self, message: Message) -> str:
        """Return the number of the form that is the pair's target.

        If several forms have this text, return the first one for a singular, otherwise the last.
        """
        forms = sorted(form for form, own in message.translations.items() if own == self.target)
        if not forms:
            return ""
        return str(forms[0] if self.source == message.text else forms[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all fields that an entry may have."""
        return ("context", "plural", "form", "flags", *COMMENTS)


class Gettext:
    """``.po`` and ``.mo`` files.

    The translation's language is an argument, or comes from the header or from the path
    (``de/LC_MESSAGES``). The source language is English by default. A plural entry gives two pairs:
    the singular with the form of one, the plural with the form of many; if a language has only one
    form, the entry gives only the plural. Fuzzy, untranslated and obsolete entries are skipped and
    counted.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Read one catalogue."""
        with open_bytes(path) as file:
            content = read_limited(file, path, MAX_CATALOGUE_BYTES)
        if uncompressed_name(path).lower().endswith(".mo"):
            header, messages = _read_mo(content, path)
        else:
            header, messages = _read_po(content, path, skipped, bad)
        fields = _header("" if header is None else header.translations.get(0, ""))
        source = source_language or languages.ENGLISH
        target = target_language or _language(fields, path)
        one_and_many = (0, 0)
        if any(message.plural for message in messages):  # else a broken rule has no effect
            one_and_many = _plural_forms(fields, path)
        for message in messages:
            sides = _sides(message, one_and_many)
            origin = Origin(message, tuple(side for side in sides if side[1]), header)
            for text, translation in sides:
                if not translation:
                    skipped["untranslated"] += 1
                else:
                    pair = TextPair(text, translation, source, target)
                    yield GettextPair.of(pair, origin)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write a catalogue after all its entries were collected in memory.

        Pairs of a catalogue keep their entries; an entry is marked as fuzzy if one of its plural
        forms is missing. For other pairs, a source that occurs again gets a numbered context.
        """
        if uncompressed_name(path) != path and uncompressed_name(path).lower().endswith(".mo"):
            raise DataError(
                "a compiled catalog cannot be compressed; use a file name that ends in .mo",
                path=path,
            )
        first, pairs = peek(one_language_pair(without_lost_values(pairs, path), path))
        entries, count = _entries(pairs)
        self._write(path, _header_of(first), entries)
        return count

    def write_empty(self, path: str, head: TextPair) -> None:
        """Write a catalogue with only a header, for the languages of a pair."""
        self._write(path, _header_of(head), [])

    def _write(self, path: str, header: Message | None, entries: list[Message]) -> None:
        """Write entries behind a header."""
        is_compiled = uncompressed_name(path).lower().endswith(".mo")
        if is_compiled:
            with atomic_write(path, "wb") as binary:
                binary.write(_catalogue(header, entries).to_binary())
        else:
            with open_text_writer(path) as file:
                # Without a pair there is no language to write a header for.
                chunks = [_in_po(entry) for entry in (header, *entries) if entry is not None]
                file.write("\n\n".join(chunks) + "\n")


def _header_of(first: TextPair | None) -> Message | None:
    """Return the header of the first pair's catalogue, changed to UTF-8, or a new header."""
    if first is None:
        return None
    if isinstance(first, GettextPair) and first.origin.header is not None:
        kept = first.origin.header
        lines = tuple(_in_utf8(line) for line in kept.lines)
        return kept._replace(lines=lines, translations={0: _in_utf8(kept.translations[0])})
    target = languages.parse(first.target_language)
    name = target.language.iso1 or target.language.code
    if target.region:
        name = f"{name}_{target.region}"
    fields = {
        "Language": name,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
    }
    text = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return Message("", None, {0: text})


def _in_utf8(header: str) -> str:
    return re.sub(r"charset=[A-Za-z0-9_.:-]+", "charset=UTF-8", header)


def _entries(pairs: Iterable[TextPair]) -> tuple[list[Message], int]:
    """Return the entries of pairs, and the number of pairs."""
    entries = []
    uses: Counter[str] = Counter()
    count = 0
    for _, group in groupby(pairs, key=_entry_of):
        of_entry = list(group)
        count += len(of_entry)
        first = of_entry[0]
        if isinstance(first, GettextPair):
            sides = tuple((pair.source, pair.target) for pair in of_entry)
            if set(sides) <= set(first.origin.sides):
                message = first.origin.message
                if len(sides) < len(first.origin.sides):
                    message = _as_fuzzy(message)
                entries.append(message)
                continue
        for pair in of_entry:
            # Message and context together are the key of an entry, which must be unique.
            context = None
            if isinstance(pair, GettextPair):
                context = pair.origin.message.context
            elif uses[pair.source]:
                context = str(uses[pair.source])
            uses[pair.source] += 1
            entries.append(Message(pair.source, None, {0: pair.target}, context))
    return entries, count


def _entry_of(pair: TextPair) -> int:
    """Return a key that distinguishes the pairs of one entry from others."""
    if isinstance(pair, GettextPair):
        return id(pair.origin)
    return id(pair)


def _as_fuzzy(message: Message) -> Message:
    """Return an entry that is marked for review."""
    flags = message.flags | {"fuzzy"}
    lines = list(message.lines)
    for number, line in enumerate(lines):
        if line.startswith("#,"):
            lines[number] = f"{line}, fuzzy"
            break
    else:
        # Flags follow the other comments.
        place = next((n for n, line in enumerate(lines) if not line.startswith("#")), 0)
        lines.insert(place, "#, fuzzy")
    return message._replace(flags=flags, lines=tuple(lines) if message.lines else ())


def _polib_entry(message: Message) -> Any:
    polib = import_extra("polib", extra="gettext")
    entry = polib.POEntry(msgid=message.text, msgctxt=message.context, flags=sorted(message.flags))
    if message.plural is None:
        entry.msgstr = message.translations.get(0, "")
    else:
        entry.msgid_plural = message.plural
        entry.msgstr_plural = dict(message.translations)
    return entry


def _in_po(message: Message) -> str:
    """Return an entry in the form of a ``.po`` file: unchanged, or rebuilt."""
    if message.lines:
        return "\n".join(message.lines)
    return str(_polib_entry(message)).strip("\n")


def _catalogue(header: Message | None, entries: list[Message]) -> Any:
    polib = import_extra("polib", extra="gettext")
    catalogue = polib.POFile()
    if header is not None:
        catalogue.metadata = _header(header.translations.get(0, ""))
    catalogue.extend(_polib_entry(entry) for entry in entries)
    return catalogue


def _read_mo(content: bytes, path: str) -> tuple[Message | None, list[Message]]:
    order = MAGIC.get(content[:4])
    if order is None:
        raise DataError(
            "is not a compiled gettext catalog (wrong magic number); compile it with: msgfmt",
            path=path,
        )
    try:
        # Behind the magic number: version, number of strings, offsets of the two tables.
        _, count, originals, translations = struct.unpack_from(f"{order}4I", content, 4)
        from_ = struct.unpack_from(f"{order}{2 * count}I", content, originals)
        to = struct.unpack_from(f"{order}{2 * count}I", content, translations)
    except struct.error as error:
        raise DataError(
            "is damaged or incomplete (a table of strings ends early); fetch it again", path=path
        ) from error
    _check_strings(from_, to, len(content), path)
    entries = list(zip(_strings(content, from_), _strings(content, to), strict=True))
    # The translation of the empty message is the header.
    head = next((translation for text, translation in entries if not text), None)
    charset = _charset(head or b"", path)
    header = None
    messages = []
    for text, translation in entries:
        key, forms = decoded(text, charset), decoded(translation, charset)
        if not is_decoded(key + forms):
            raise DataError(
                f"is not in its declared character set {charset}; save it as UTF-8", path=path
            )
        if not text:
            header = Message("", None, {0: forms})
            continue
        # EOT separates the context from the message; NUL separates the singular from the plural,
        # and each plural form from the next.
        context, mark, message = key.rpartition("\4")
        singular, _, plural = message.partition("\0")
        numbered = dict(enumerate(forms.split("\0")))
        messages.append(Message(singular, plural or None, numbered, context if mark else None))
    return header, messages


def _strings(content: bytes, table: tuple[int, ...]) -> list[bytes]:
    """Return the strings of a table of lengths and offsets, in its order."""
    places = zip(table[::2], table[1::2], strict=True)
    return [content[start : start + length] for length, start in places]


def _read_po(
    content: bytes, path: str, skipped: Counter[str], bad: BadLines
) -> tuple[Message | None, list[Message]]:
    """Return the header and the entries that are translated and current.

    Raises:
        DataError: there are entries, and none can be read.
    """
    text = _text_of_po(content, path)
    header = None
    messages = []
    failure: DataError | None = None
    entries = 0
    for block in _blocks(re.split(r"\r\n|\r|\n", text)):
        try:
            message = _message(block, path)
        except DataError as error:
            bad.leave_out(error, "\n".join(line for _, line in block))
            failure = failure or error
            continue
        if message is None:
            continue
        entries += 1
        if any(line.startswith(OBSOLETE) and _kind_of(line) != "comment" for line in message.lines):
            skipped["obsolete"] += 1
        elif not message.text and message.context is None:
            header = header or message
        elif "fuzzy" in message.flags:
            skipped["fuzzy"] += 1
        else:
            messages.append(message)
    if failure is not None and not entries:
        raise failure
    return header, messages


def _text_of_po(content: bytes, path: str) -> str:
    """Return a catalogue as text; bytes that are not in its character set come as surrogates."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    return decoded(content, _charset(content, path)).removeprefix("\ufeff")


def _blocks(lines: list[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines of each entry with their numbers, without blank ones.

    An entry starts with its comments, and ends where another one's comments, context or message
    start. A broken entry also ends at a blank line.
    """
    block: list[tuple[int, str]] = []
    met: set[str] = set()
    for number, line in enumerate(lines, 1):
        kind = _kind_of(line.strip())
        is_complete = bool(met & {"msgstr", "broken"})
        begins = kind in ("", "comment", "msgctxt", "msgid")
        # Without a translation in between, the previous entry is broken.
        is_second = (kind == "msgid" and "msgid" in met) or (
            kind == "msgctxt" and bool(met & {"msgctxt", "msgid"})
        )
        if block and ((is_complete and begins) or is_second):
            yield block
            block = []
            met = set()
        if kind:
            block.append((number, line.strip()))
            met.add(kind)
    if block:
        yield block


def _kind_of(line: str) -> str:
    """Return the kind of a line: a keyword, ``string``, ``comment``, ``broken`` or empty."""
    if not line:
        return ""
    content = line
    if line.startswith(OBSOLETE):
        content = line.removeprefix(OBSOLETE).lstrip()
        if not content or content.startswith("|"):  # the earlier text of an obsolete entry
            return "comment"
    if content.startswith("#"):
        return "comment"
    if content.startswith('"'):
        return "string"
    keyword = KEYWORD.match(content)
    if keyword is None:
        return "broken"
    return keyword[1]


def _message(block: list[tuple[int, str]], path: str) -> Message | None:
    """Return the entry in some lines; None if they are only comments.

    Raises:
        DataError: the lines are not an entry; the error names the line.
    """
    parts: dict[tuple[str, int], list[str]] = {}
    flags: set[str] = set()
    current: list[str] | None = None
    for number, line in block:
        if not is_decoded(line):
            raise DataError(
                "is not in its declared character set; save the file as UTF-8",
                path=path,
                line=number,
            )
        kind = _kind_of(line)
        content = line.removeprefix(OBSOLETE).lstrip()
        if kind == "comment":
            if content.startswith("#,"):
                flags |= {flag.strip() for flag in content[2:].split(",")}
            continue
        keyword = KEYWORD.match(content)
        if keyword is not None:
            content = content[keyword.end() :]
            current = parts.setdefault((keyword[1], int(keyword[2] or 0)), [])
        if current is None or kind == "broken":
            raise DataError("syntax error; check the file with: msgfmt -c", path=path, line=number)
        current.append(_string(content, path, number))
    if not parts:
        return None
    texts = {key: _unescaped("".join(strings)) for key, strings in parts.items()}
    forms = {form: text for (keyword, form), text in texts.items() if keyword == "msgstr"}
    if ("msgid", 0) not in texts or not forms:
        problem = "a message has no translation; check the file with: msgfmt -c"
        raise DataError(problem, path=path, line=block[0][0])
    return Message(
        texts["msgid", 0],
        texts.get(("msgid_plural", 0)) or None,
        forms,
        texts.get(("msgctxt", 0)),
        frozenset(flags - {""}),
        tuple(line for _, line in block),
    )


def _string(content: str, path: str, number: int) -> str:
    """Return the text between the quotation marks of a line.

    Raises:
        DataError: a quotation mark is missing, or there are too many.
    """
    string = STRING.match(content)
    if string is None:
        raise DataError(
            "the string has no closing quotation mark; check that the file is complete",
            path=path,
            line=number,
        )
    if content[string.end() :].strip():
        problem = "a quotation mark is inside the string; check the file with: msgfmt -c"
        raise DataError(problem, path=path, line=number)
    return string[1]


def _unescaped(text: str) -> str:
    r"""Return a string with its escapes, such as ``\n``, replaced by their characters."""
    if "\\" not in text:
        return text
    return re.sub(r"\\(.)", _escaped_character, text)


def _escaped_character(found: re.Match[str]) -> str:
    if found[1] in ('"', "\\"):
        return found[1]
    return ESCAPES.get(found[1], found[0])


def _sides(message: Message, one_and_many: tuple[int, int]) -> list[tuple[str, str]]:
    forms = message.forms
    if message.plural is None:
        return [(message.text, forms[0])]
    # An entry may lack forms that the header's rule gives.
    one, many = (min(form, len(forms) - 1) for form in one_and_many)
    sides = [(message.plural, forms[many])]
    if one != many:
        sides.insert(0, (message.text, forms[one]))
    return sides


def _plural_forms(header: dict[str, str], path: str) -> tuple[int, int]:
    """Return the numbers of two plural forms, for 1 and for many, by the header's rule.

    If it has no readable rule, the rule of English is used.

    Raises:
        DataError: the rule divides by zero, or gives a number below 0.
    """
    expression = ENGLISH_PLURAL
    if found := re.search(r"plural=([^;]+)", header.get("Plural-Forms", "")):
        expression = found[1]
    try:
        rule: Any = gettext.c2py(expression)
    except (ValueError, RecursionError, MemoryError):
        # The placeholder EXPRESSION of a new catalogue, or more brackets than a parser can hold.
        rule = gettext.c2py(ENGLISH_PLURAL)
    try:
        one = int(rule(1))
        many = int(rule(_MANY))
    except (ArithmeticError, RecursionError) as error:
        raise DataError(
            f"Plural-Forms cannot be computed ({error}); correct the header", path=path
        ) from error
    if min(one, many) < 0:
        raise DataError(
            f"Plural-Forms gives the negative form {min(one, many)}; correct the header", path=path
        )
    return one, many


def _check_strings(from_: tuple[int, ...], to: tuple[int, ...], size: int, path: str) -> None:
    """Check the tables of a compiled catalogue: length and place of each string.

    Raises:
        DataError: a string extends beyond the end, or strings overlap so much that a small file
            becomes a large one.
    """
    total = 0
    for table in (from_, to):
        for length, start in zip(table[::2], table[1::2], strict=True):
            total += length
            if start + length > size:
                raise DataError(
                    "is damaged or incomplete (a string ends beyond the file); fetch it again",
                    path=path,
                )
    if total > SHARED_STRINGS * size:
        raise DataError(
            f"is damaged (its strings overlap: {total:,} bytes in a file of {size:,}); fetch it"
            " again",
            path=path,
        )


def _language(header: dict[str, str], path: str) -> str:
    parts = Path(path).parts
    # The folder before LC_MESSAGES is certain, because gettext uses it to find catalogues. The
    # header comes next. The names of the file and of its folder may mean anything.
    names = [parts[i - 1] for i, part in enumerate(parts) if part == "LC_MESSAGES" and i]
    names.append(header.get("Language", ""))
    certain = len(names)
    names.append(Path(uncompressed_name(path)).stem)
    names.append(Path(path).parent.name)
    for number, name in enumerate(names):
        if "@" not in name:  # "sr@latin" names a script, "de.UTF-8" a character set
            name = name.partition(".")[0]
        if name and (code := languages.find_code(name)):
            return code if number < certain else languages.as_named(code) or code
    raise DataError(
        "the language is unknown, because neither header nor path names it; pass it as an option",
        path=path,
    )


def _header(text: str) -> dict[str, str]:
    fields = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    return fields


def _charset(content: bytes, path: str) -> str:
    """Return the declared character set, or UTF-8 if there is none.

    Raises:
        DataError: this character set is not used for catalogues; Python knows more character sets,
            and decoding with some of them takes minutes.
    """
    found = re.search(rb"charset=([A-Za-z0-9_.:-]+)", content[:4096])
    if found is None:
        return "utf-8"
    name = found[1].decode("ascii")
    # CHARSET is the placeholder of a new catalogue.
    known = "utf-8" if name.upper() == "CHARSET" else known_charset(name)
    if known is None and is_decoded(decoded(content, "utf-8")):
        known = "utf-8"
    if known is None:
        raise DataError(
            f"the declared character set {name[:40]} is unknown to gettext; convert the file to"
            " UTF-8",
            path=path,
        )
    return known
