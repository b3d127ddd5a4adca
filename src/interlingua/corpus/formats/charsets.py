"""Character sets that files may declare: only those in which texts are written.

Python has more, of which some take minutes to decode and some are no character sets.
"""

from __future__ import annotations

import codecs
import re

_TEXT = re.compile(
    r"utf-8|iso8859-\d+|cp\d+|koi8-[rut]|big5|big5hkscs|gb2312|gbk|gb18030|euc_jp|euc_jis_2004|euc_kr|shift_jis\w*|johab"
    r"|tis-620|ptcp154|kz1048|mac-\w+"
)
"""Python's names of these character sets."""
_MULTIBYTE = re.compile(r"gb\w+|big5\w*|euc_\w+|shift_jis\w*|johab|cp9\d\d")


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

    Text in a single-byte character set is valid UTF-8 only in rare cases, and many files declare a
    set in which they are not written. Bytes that are valid in neither become surrogates.
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
