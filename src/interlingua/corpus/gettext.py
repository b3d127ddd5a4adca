"""Translations in gettext catalogues, ``.po`` and compiled ``.mo``.

The message is the source, mostly English. A ``.po`` file is parsed by polib after its lines have
been checked and joined, a ``.mo`` file here: two tables of (length, offset), one of the messages
and one of their translations in the same order, written in either byte order.
"""

from __future__ import annotations

import codecs
import gettext
import re
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from interlingua import languages
from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.formats import TextPair, one_language_pair, uncompressed_name
from interlingua.errors import DataError
from interlingua.files import atomic_write, open_bytes, open_text_writer
from interlingua.limits import read_document

ENGLISH = "eng_Latn"
MAGIC = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}
OPENED = re.compile(r'\s*(#~\s*)?(#?\|\s*)?([a-z_]+(\[\d+\])?\s*)?"')
CLOSED = re.compile(r'(?<!\\)(\\\\)*"\s*$')
OBSOLETE = "#~"
ENGLISH_PLURAL = "n!=1"
MANY = 100  # a number that takes the form of most counts
MAX_CATALOGUE_BYTES = 1 << 26
SHARED_STRINGS = 4
"""Times the size of a compiled catalogue that its strings may have together: equal ones may share
bytes."""
CHARSETS = re.compile(
    r"utf-8|iso8859-\d+|cp\d+|koi8-[rut]|big5|big5hkscs|gb2312|gbk|gb18030|euc_jp|euc_jis_2004|euc_kr|shift_jis\w*|johab"
    r"|tis-620|ptcp154|kz1048|mac-\w+"
)
"""What Python calls the character sets of catalogues."""


class Message(NamedTuple):
    """An entry of a catalogue."""

    text: str
    plural: str | None
    translations: list[str]


class Gettext:
    """``.po`` and ``.mo`` files.

    The translation's language is given, or in the header, or in the path (``de/LC_MESSAGES``). The
    source language is English unless given. A plural entry gives two pairs: the singular with
    the form of one, the plural with the form of many; where a language has one form, only the
    latter. Contexts (``msgctxt``) are left away. Fuzzy, untranslated and obsolete entries are
    skipped and counted.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Reads one catalogue."""
        with open_bytes(path) as file:
            content = read_document(file, path, MAX_CATALOGUE_BYTES)
        if uncompressed_name(path).lower().endswith(".mo"):
            header, messages = _read_mo(content, path)
        else:
            header, messages = _read_po(content, path, skipped)
        source = source_language or ENGLISH
        target = target_language or _language(header, path)
        one_and_many = (0, 0)
        if any(message.plural for message in messages):  # else a broken rule does no harm
            one_and_many = _plural_forms(header, path)
        for message in messages:
            for text, translation in _sides(message, one_and_many):
                if not translation:
                    skipped["untranslated"] += 1
                else:
                    yield TextPair(text, translation, source, target)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes a catalogue in memory first.

        An equal source that comes again gets a numbered context.
        """
        import polib

        is_compiled = uncompressed_name(path).lower().endswith(".mo")
        if is_compiled and uncompressed_name(path) != path:
            raise DataError(
                "a compiled catalogue is not compressed; call the file name.mo", path=path
            )
        catalogue = polib.POFile()
        uses: Counter[str] = Counter()
        count = 0
        for pair in one_language_pair(pairs, path):
            target = languages.resolve(pair.target_language)
            catalogue.metadata = {
                "Language": target.iso1 or target.code,
                "MIME-Version": "1.0",
                "Content-Type": "text/plain; charset=UTF-8",
                "Content-Transfer-Encoding": "8bit",
            }
            # Message and context together are the key of an entry, which must be unique.
            context = None
            if uses[pair.source]:
                context = str(uses[pair.source])
            uses[pair.source] += 1
            catalogue.append(polib.POEntry(msgid=pair.source, msgstr=pair.target, msgctxt=context))
            count += 1
        if is_compiled:
            with atomic_write(path, "wb") as binary:
                binary.write(catalogue.to_binary())
        else:
            with open_text_writer(path) as file:
                file.write(str(catalogue) + "\n")
        return count


def _read_mo(content: bytes, path: str) -> tuple[dict[str, str], list[Message]]:
    order = MAGIC.get(content[:4])
    if order is None:
        raise DataError("not a compiled gettext catalogue (wrong magic number)", path=path)
    try:
        # Behind the magic number: version, number of strings, offsets of the two tables.
        _, count, originals, translations = struct.unpack_from(f"{order}4I", content, 4)
        from_ = struct.unpack_from(f"{order}{2 * count}I", content, originals)
        to = struct.unpack_from(f"{order}{2 * count}I", content, translations)
    except struct.error as error:
        raise DataError("the catalogue is cut short; fetch it again", path=path) from error
    _check_strings(from_, to, len(content), path)
    entries = list(zip(_strings(content, from_), _strings(content, to), strict=True))
    # The translation of the empty message is the header.
    head = next((translation for text, translation in entries if not text), b"")
    charset = _charset(head, path)
    messages = []
    try:
        header = _header(head.decode(charset))
        for text, translation in entries:
            if not text:
                continue
            # EOT parts the context from the message, NUL the singular from the plural and one
            # plural form from the next.
            message = text.decode(charset).rpartition("\4")[2]
            singular, _, plural = message.partition("\0")
            forms = translation.decode(charset).split("\0")
            messages.append(Message(singular, plural or None, forms))
    except UnicodeDecodeError as error:
        raise DataError(
            f"not in its declared character set {charset} ({error})", path=path
        ) from error
    return header, messages


def _strings(content: bytes, table: tuple[int, ...]) -> list[bytes]:
    """The strings of a table of lengths and offsets in turn."""
    places = zip(table[::2], table[1::2], strict=True)
    return [content[start : start + length] for length, start in places]


def _read_po(
    content: bytes, path: str, skipped: Counter[str]
) -> tuple[dict[str, str], list[Message]]:
    import polib

    charset = _charset(content, path)
    try:
        text = content.decode(charset).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(
            f"not in its declared character set {charset}; convert it to UTF-8",
            path=path,
            line=line,
        ) from error
    lines = re.split(r"\r\n|\r|\n", text)
    _check_quotes(lines, path)
    strings, numbers = _join_lines(lines)
    # Through a file, since polib breaks the lines of a string at U+2028 and its like.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="\n", suffix=".po") as file:
        file.writelines(f"{line}\n" for line in strings)
        file.flush()
        try:
            catalogue: Any = polib.pofile(file.name, encoding="utf-8")
        except (OSError, ValueError) as error:
            line_number: int | None = None
            if found := re.search(r"line (\d+)", str(error)):
                line_number = numbers[int(found[1]) - 1]  # polib counts the joined lines
            raise DataError(
                "syntax error; check it with: msgfmt -c", path=path, line=line_number
            ) from error
    messages = []
    for entry in catalogue:
        if entry.obsolete:
            skipped["obsolete"] += 1
        elif entry.fuzzy:
            skipped["fuzzy"] += 1
        else:
            plurals = entry.msgstr_plural
            forms = [plurals[number] for number in sorted(plurals)] or [entry.msgstr]
            messages.append(Message(entry.msgid, entry.msgid_plural or None, forms))
    return dict(catalogue.metadata), messages


def _join_lines(lines: list[str]) -> tuple[list[str], list[int]]:
    """The lines of a catalogue without comments, with the parts of a string joined to one line.

    Returns the joined lines, and for each the number of the line that it began in. polib adds each
    line of a comment or of a string to what it has of it, which takes time that grows with the
    square of their number. Comments other than flags have no use here.
    """
    joined: list[list[str]] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, 1):
        content = line.strip()
        mark = ""
        comment = "#"
        if content.startswith(OBSOLETE):
            mark = OBSOLETE
            comment = "|"  # "#~| msgid" is the earlier text of an obsolete entry
            content = content.removeprefix(OBSOLETE).lstrip()
        is_part = len(content) > 1 and content[0] == '"' and content[-1] == '"'
        if is_part and joined and joined[-1][0].startswith(f"{mark} msg".lstrip()):
            joined[-1][-1] = joined[-1][-1][:-1]  # its closing quote
            joined[-1].append(content[1:])
        elif content and (content.startswith("#,") or content[0] != comment):
            joined.append([f"{mark} {content}".lstrip()])
            numbers.append(number)
    return ["".join(parts) for parts in joined], numbers


def _check_quotes(lines: list[str], path: str) -> None:
    """Refuses a string that does not end where its line does.

    polib would take its last character for the quote.
    """
    for number, line in enumerate(lines, 1):
        found = OPENED.match(line)
        if found and not CLOSED.search(line, found.end()):
            raise DataError(
                "the string has no closing quote; is the file cut short?", path=path, line=number
            )


def _sides(message: Message, one_and_many: tuple[int, int]) -> list[tuple[str, str]]:
    forms = message.translations
    if message.plural is None:
        return [(message.text, forms[0])]
    # An entry may lack forms that the header's rule gives.
    one, many = (min(form, len(forms) - 1) for form in one_and_many)
    sides = [(message.plural, forms[many])]
    if one != many:
        sides.insert(0, (message.text, forms[one]))
    return sides


def _plural_forms(header: dict[str, str], path: str) -> tuple[int, int]:
    """Numbers of the forms of one and of many, by the header's rule.

    Where it has none that can be read, the rule of English holds.

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
        many = int(rule(MANY))
    except (ArithmeticError, RecursionError) as error:
        raise DataError(
            f"its Plural-Forms can't be computed ({error}); correct the header", path=path
        ) from error
    if min(one, many) < 0:
        raise DataError(
            f"its Plural-Forms give form {min(one, many)}; correct the header", path=path
        )
    return one, many


def _check_strings(from_: tuple[int, ...], to: tuple[int, ...], size: int, path: str) -> None:
    """Looks at the tables of a compiled catalogue: length and place of each string.

    Raises:
        DataError: a string lies beyond the end, or strings overlap so much that a small file
            becomes a large one.
    """
    total = 0
    for table in (from_, to):
        for length, start in zip(table[::2], table[1::2], strict=True):
            total += length
            if start + length > size:
                raise DataError("the catalogue is cut short; fetch it again", path=path)
    if total > SHARED_STRINGS * size:
        raise DataError(
            f"its strings lie over each other, {total:,} bytes in {size:,}; fetch it again",
            path=path,
        )


def _language(header: dict[str, str], path: str) -> str:
    parts = Path(path).parts
    # The folder before LC_MESSAGES is certain, as gettext looks catalogues up by it; the header
    # comes next, and the names of file and folder may mean anything.
    names = [parts[i - 1] for i, part in enumerate(parts) if part == "LC_MESSAGES" and i]
    names.append(header.get("Language", ""))
    names.append(Path(uncompressed_name(path)).stem)
    names.append(Path(path).parent.name)
    for name in filter(None, names):
        if "@" not in name:  # "sr@latin" names a script, "de.UTF-8" a character set
            name = name.partition(".")[0]
        if code := languages.find_code(name):
            return code
    raise DataError(
        "its language is neither given, nor in its header, nor in its path; name it", path=path
    )


def _header(text: str) -> dict[str, str]:
    fields = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    return fields


def _charset(content: bytes, path: str) -> str:
    """The declared character set, UTF-8 where there is none.

    Raises:
        DataError: it is none in which catalogues are written; Python has others, of which some take
            minutes to decode.
    """
    found = re.search(rb"charset=([A-Za-z0-9_.:-]+)", content[:4096])
    if found is None:
        return "utf-8"
    name = found[1].decode("ascii")
    # CHARSET is the placeholder of a new catalogue; ASCII is a part of UTF-8.
    if name.upper() in ("CHARSET", "ASCII", "US-ASCII"):
        return "utf-8"
    try:
        known = codecs.lookup(name).name
    except LookupError:
        known = ""
    if not CHARSETS.fullmatch(known):
        raise DataError(
            f"its declared character set {name[:40]} is not known to gettext; convert it to UTF-8",
            path=path,
        )
    return known
