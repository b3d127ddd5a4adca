"""Character sets that files declare: those in which texts are written, and no others.

Python has more, of which some take minutes to decode and some are no character sets.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from interlingua.errors import DataError, import_extra
from interlingua.storage.files import PathLike

_TEXT = re.compile(
    r"utf-8|iso8859-\d+|cp\d+|koi8-[rut]|big5|big5hkscs|gb2312|gbk|gb18030|euc_jp|euc_jis_2004|euc_kr|shift_jis\w*|johab"
    r"|tis-620|ptcp154|kz1048|mac-\w+"
)
"""What Python calls them."""
_MULTIBYTE = re.compile(r"gb\w+|big5\w*|euc_\w+|shift_jis\w*|johab|cp9\d\d")

_DECLARED = re.compile(
    rb"<\?xml[^>]{0,200}encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9._:-]{1,40})"
    rb"|<meta\s[^>]{0,500}charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9._:-]{1,40})",
    re.IGNORECASE,
)
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SUPERSETS = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
"""Character sets that texts are written in when they declare a part of these."""
_LOOKED_AT = 1 << 16


def known_charset(name: str) -> str | None:
    """Return Python's name of a declared character set; None if texts are not written in it."""
    # ASCII is a part of UTF-8.
    if name.upper() in ("ASCII", "US-ASCII"):
        return "utf-8"
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return None
    if not _TEXT.fullmatch(known):
        return None
    return known


def decoded(content: bytes, charset: str) -> str:
    """Return text in its declared character set, or in UTF-8 if it is valid UTF-8.

    Text in another set of single bytes is valid UTF-8 only by a rare accident, and many files
    declare a set that they are not in. Bytes of neither come as surrogates.
    """
    if not _MULTIBYTE.fullmatch(charset):
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return content.decode(charset, "surrogateescape")


def is_decoded(text: str) -> bool:
    """Return whether all bytes of a text were in its character set."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class DecodedText(NamedTuple):
    """The text of a file, and its encoding.

    Attributes:
        text: without a byte-order mark.
        charset: that it was read in.
        notes: doubts about it.
    """

    text: str
    charset: str
    notes: tuple[str, ...] = ()


def declared_charset(head: bytes) -> str | None:
    """Return the character set that the first bytes of HTML or XML declare; None if there is none.

    Raises:
        DataError: texts are not written in it.
    """
    found = _DECLARED.search(head)
    return (found[1] or found[2]).decode("ascii") if found else None


def decode_file(content: bytes, declared: str | None, path: PathLike) -> DecodedText:
    """Return the text of a file: by its byte-order mark, its declaration, as UTF-8, or detected.

    Args:
        content: the whole file.
        declared: the name of a character set, if the file declares one.
        path: which errors name.

    Raises:
        DataError: the encoding is not certain.
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return DecodedText(_strict(content[len(mark) :], name, path), name)
    wide = _without_mark(content)
    if wide:
        return DecodedText(_strict(content, wide, path), wide)
    charset = known_charset(declared) if declared else None
    notes: tuple[str, ...] = ()
    if charset:
        # Browsers read what is declared as Latin-1 as its superset, and so do writers.
        text = decoded(content, _SUPERSETS.get(charset, charset))
        if is_decoded(text):
            return DecodedText(text, charset)
        notes = (f"declares the encoding {declared}, which it is not in",)
    try:
        return DecodedText(content.decode("utf-8"), "utf-8", notes)
    except UnicodeDecodeError:
        pass
    charset = detect_charset(content, path)
    notes = (*notes, f"is read as {charset}, which was detected and is not declared")
    return DecodedText(_strict(content, charset, path), charset, notes)


def _strict(content: bytes, charset: str, path: PathLike) -> str:
    try:
        return content.decode(charset)
    except UnicodeDecodeError as error:
        raise DataError(
            f"not in its encoding {charset} (byte {error.start:,}); save it as UTF-8", path=path
        ) from error


def _without_mark(content: bytes) -> str:
    """Return the byte order of UTF-16 without a mark, by the zeros of its spaces and line ends."""
    head = content[:_LOOKED_AT]
    if head.count(0) < 2 or len(content) % 2:
        return ""
    low = head[::2].count(0)
    high = head[1::2].count(0)
    if low + high < 0.02 * len(head):
        return ""
    if high > 20 * low:
        return "utf-16-le"
    return "utf-16-be" if low > 20 * high else ""


def detect_charset(content: bytes, path: PathLike) -> str:
    """Return the character set of a text by its bytes.

    Raises:
        DataError: it is not certain.
        MissingExtraError: charset-normalizer is not installed.
    """
    import_extra("charset_normalizer", package="charset-normalizer", extra="documents")
    raise DataError(
        "not UTF-8, and its encoding is not certain; save it as UTF-8, e.g. iconv -f ISO-8859-1 -t"
        " UTF-8",
        path=path,
    )
