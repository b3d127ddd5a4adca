"""Text that was decoded in a wrong character set, and bytes that are not UTF-8.

UTF-8 that was read as windows-1252 ("GrÃ¼ÃŸe") is turned back into its bytes, which are UTF-8. Text
as people write it is not: its bytes in an old character set are UTF-8 by accident alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from interlingua.config.languages import resolve_language
from interlingua.corpus.formats.charsets import decoded, is_decoded

_SUSPICIOUS = re.compile(
    "[\u00c2-\u00c5\u00ce-\u00d3\u00d7-\u00db\u00e0-\u00f4\u0402-\u045f]"
    "[\u0080-\u00bf\u0100-\u04ff\u2010-\u2122]"
)
"""A first byte of UTF-8 and a further one, as windows-1252 or windows-1251 reads them.

Without the first bytes of rare letters, which are ß, É or Ö, and stand before quotation marks.
"""
_CHARSETS = ("cp1252", "latin-1", "cp1251")
REPLACEMENT = "\ufffd"
"""Character that a decoder writes for bytes that it can't read."""
_OF_LANGUAGES = {
    "cp1250": "ces pol hun slk hrv slv ron bos",
    "cp1254": "tur azj",
    "cp1257": "lit lvs est",
    "cp1258": "vie",
}
"""Character set of Windows -> languages in Latin script that need it."""
_OF_SCRIPTS = {
    "Cyrl": "cp1251",
    "Grek": "cp1253",
    "Hebr": "cp1255",
    "Arab": "cp1256",
    "Thai": "cp874",
    "Jpan": "cp932",
    "Hans": "gb18030",
    "Hant": "cp950",
    "Hang": "cp949",
    "Kore": "cp949",
}
"""Script -> character set that its files are usually in, if they are not in UTF-8."""


def misread_charset(text: str) -> str | None:
    """Return the character set in which UTF-8 was misread as this text; None if it is as written.

    A text with replacement characters gives ``"lost"``, as its bytes are gone.
    """
    if text.isascii():
        return None
    if REPLACEMENT in text:
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


def guess_charset(lines: Iterable[bytes], languages: Sequence[str]) -> str | None:
    """Return the character set that lines, which are not UTF-8, are probably in.

    Args:
        lines: some of the file.
        languages: codes of its texts.

    Returns:
        Python's name; None if no usual set of the languages fits.
    """
    content = b"\n".join(lines)
    for language in languages:
        charset = _usual_charset(language)
        if charset is not None and is_decoded(decoded(content, charset)):
            return charset
    return None


def _usual_charset(code: str) -> str | None:
    language = resolve_language(code)
    if not language.is_latin:
        return _OF_SCRIPTS.get(language.script)
    for charset, names in _OF_LANGUAGES.items():
        if language.iso3 in names.split():
            return charset
    return "cp1252"
