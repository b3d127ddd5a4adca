"""Text that was decoded in a wrong character set.

If UTF-8 was read as windows-1252 ("GrÃ¼ÃŸe"), encoding it in that set again gives valid UTF-8. For
correct text this is true only by accident.
"""

from __future__ import annotations

import re

_SUSPICIOUS = re.compile(
    "[\u00c2-\u00c5\u00ce-\u00d3\u00d7-\u00d9\u00e0-\u00f4\u0402-\u045f]"
    "[\u0080-\u00bf\u0100-\u04ff\u2010-\u2122]"
)
"""A first byte of UTF-8 and a further one, as windows-1252 or windows-1251 reads them.

The first bytes of rare letters are left out: they look like ß, É or Ö before quotation marks.
"""
_CHARSETS = ("cp1252", "latin-1", "cp1251")
_REPLACEMENT = "\ufffd"
"""Character that a decoder writes for bytes that it can't read."""


def misread_charset(text: str) -> str | None:
    """Return the character set in which UTF-8 was misread as this text; None if it was not.

    A text with replacement characters gives ``"lost"``, as its bytes are gone.
    """
    if text.isascii():
        return None
    if _REPLACEMENT in text:
        return "lost"
    if not _SUSPICIOUS.search(text):
        return None
    for charset in _CHARSETS:
        # Word by word, as the rest of the text may hold characters that the set lacks.
        words = [word for word in text.split() if _SUSPICIOUS.search(word)]
        if words and all(_is_misread(word, charset) for word in words):
            return charset
    return None


def _is_misread(word: str, charset: str) -> bool:
    """Return whether a word is UTF-8 that was decoded in a character set."""
    try:
        original = word.encode(charset).decode("utf-8")
    except UnicodeError:
        return False
    return len(original) < len(word)
