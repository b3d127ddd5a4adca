"""Decode the text of a file in any encoding.

The order is: a byte-order mark, the encoding that the file declares, UTF-8, detection. An
encoding that is only likely is never used. In a text in Latin script, the frequent ASCII words show
the language, and the other letters must belong to its alphabet. Other scripts are recognized by
``charset-normalizer``, or by their kana or Hangul, and nearly all letters must be of one script.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from interlingua.config.languages import resolve_language
from interlingua.corpus.cleaning.language_evidence import script_counts
from interlingua.corpus.cleaning.named_languages import word_shares_by_language
from interlingua.corpus.cleaning.scripts import BLOCKS
from interlingua.corpus.formats.charsets import decoded, is_decoded, known_charset
from interlingua.errors import DamagedFileError, DataError, import_extra
from interlingua.storage.files import PathLike

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
"""Declared character set -> the larger set that such texts are actually written in."""
_ESCAPED_JAPANESE = re.compile(rb"\x1b\$[@B]")
_LOOKED_AT = 1 << 16
_SPACES = "\n \u3000\u3001\u3002"
_DETECTED_IN = 1 << 18
"""Number of bytes from which an encoding is detected; the whole file must be valid in it."""
_ALPHABETS = {
    "afr": "áèéêëîïôöúû", "als": "çë", "cat": "àçèéíïòóúü·ŀ", "ces": "áčďéěíňóřšťúůýž",
    "dan": "æøåéö", "deu": "äöüßé", "eng": "éèêïàçñöü", "est": "äõöüšž", "eus": "ñüç",
    "fin": "äöåšžé", "fra": "àâæçèéêëîïôœùûüÿ", "gle": "áéíóú", "glg": "áéíñóúü",
    "hrv": "čćđšž", "hun": "áéíóöőúüű", "ind": "é", "isl": "áæéðíóöúþý", "ita": "àèéìíîòóùú",
    "lit": "ąčęėįšųūž", "lvs": "āčēģīķļņšūž", "mlt": "ċġħżàèìòù", "nld": "áèéëïóöüĳ",
    "nob": "æøåéòô", "nno": "æøåéòôü", "pol": "ąćęłńóśźż", "por": "áâãàçéêíóôõúü",
    "ron": "ăâîșțşţ", "slk": "áäčďéíĺľňóôŕšťúýž", "slv": "čšžćđ", "spa": "áéíñóúü",
    "swe": "åäöé", "tur": "çğıöşüâîûİ", "bos": "čćđšž", "cym": "âêîôûŵŷáéïö",
    "epo": "ĉĝĥĵŝŭ", "vie": "ăâđêôơư\u0300\u0301\u0303\u0309\u0323áàãéèêíìóòõúùý",
}  # fmt: skip
"""Non-ASCII letters of languages in Latin script, without letters only used in foreign words."""
_TYPOGRAPHY = frozenset("«»‹›“”„‘’‚–—…•·§°©®™€£¿¡ºª²³½¼¾×÷±µ´\u00a0\u00ad%‰†‡¶")
_INSIDE_A_WORD = re.compile(r"(?<=[^\W\d_])[„“”‚‘«»‹›†‡‰§¶©®°%½¼¾²³±×÷µ´¿¡£€™\u00a0](?=[^\W\d_])")
"""Marks that are letters in another character set."""
_LATIN = [
    "cp1252",
    "cp1250",
    "cp1254",
    "cp1257",
    "iso8859-15",
    "iso8859-2",
    "iso8859-3",
    "iso8859-4",
    "iso8859-13",
    "iso8859-14",
    "iso8859-16",
    "cp850",
    "cp852",
    "mac-roman",
    "mac-latin2",
]
"""Character sets of Latin script; the first of equally good ones is taken."""
_OTHERS = [
    "cp1251",
    "koi8_r",
    "koi8_u",
    "iso8859_5",
    "cp866",
    "mac_cyrillic",
    "cp1253",
    "iso8859_7",
    "cp1255",
    "iso8859_8",
    "cp1256",
    "iso8859_6",
    "cp874",
    "gb18030",
    "big5hkscs",
    "cp949",
    "cp932",
    "euc_jp",
]
_LEAST_FITTING = 0.9
"""Share of the characters outside of ASCII that must fit the language."""
_LEAST_LETTERS = 20
"""Minimum number of letters for a script to be recognized."""
_LEAST_WORDS = 0.03
"""Minimum share of words in a text that are frequent in a language for it to be likely."""
_OF_BEST = 0.5
"""Minimum ratio of the share of a language to the largest share of any language."""
_ONE_SCRIPT = 0.95
_LEAST_KANA = 0.1
_MOST_CHAOS = 0.2
"""Upper limit of charset-normalizer's chaos: 0 is a clean text."""
_LEAST_COHERENCE = 0.2
"""Lower limit of charset-normalizer's coherence: 1 is text with the usual letters of a language."""
_EAST_ASIAN = ("gb18030", "big5hkscs", "cp949", "cp932", "euc_jp")
"""Sets with several bytes per character; a text is seldom valid in one of them by accident."""


class DecodedText(NamedTuple):
    """The text of a file, and its encoding.

    Attributes:
        text: without a byte-order mark.
        charset: character set in which the file was read.
        notes: doubts about the encoding.
    """

    text: str
    charset: str
    notes: tuple[str, ...] = ()


def declared_charset(head: bytes) -> str | None:
    """Return the character set that the first bytes of HTML or XML declare; None without one."""
    found = _DECLARED.search(head)
    return (found[1] or found[2]).decode("ascii") if found else None


def decode_file(
    content: bytes, path: PathLike, declared: str | None = None, language: str | None = None
) -> DecodedText:
    """Decode a file by its byte-order mark, by its declaration, as UTF-8, or by detection.

    Args:
        content: the whole file.
        path: path of the file, for errors.
        declared: the name of a character set, if the file declares one.
        language: of the text, if it is known.

    Raises:
        DataError: the encoding is not certain.
        MissingExtraError: charset-normalizer is not installed.
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return DecodedText(_strictly(content[len(mark) :], name, path), name)
    wide = _byte_order(content)
    if wide:
        return DecodedText(_strictly(content, wide, path), wide)
    charset = known_charset(declared) if declared else None
    notes: tuple[str, ...] = ()
    if charset:
        text = decoded(content, _SUPERSETS.get(charset, charset))
        if is_decoded(text):
            return DecodedText(text, charset)
        notes = (f"declares the encoding {declared}, but is not in this encoding",)
    if _ESCAPED_JAPANESE.search(content):
        return DecodedText(_strictly(content, "iso2022_jp", path), "iso2022_jp", notes)
    try:
        return DecodedText(content.decode("utf-8"), "utf-8", notes)
    except UnicodeDecodeError as error:
        _refuse_damaged(content, error, path)
    charset = detect_charset(content, path, language)
    notes = (*notes, f"is read as {charset}, which the file does not declare")
    return DecodedText(_strictly(content, charset, path), charset, notes)


def detect_charset(content: bytes, path: PathLike, language: str | None = None) -> str:
    """Return the character set of a text that is not UTF-8, by its bytes.

    Raises:
        DataError: it is not certain.
        MissingExtraError: charset-normalizer is not installed.
    """
    sample = content
    if len(content) > _DETECTED_IN:
        # The sample ends at the end of a line, so that no character of several bytes is cut.
        sample = content[: content.rfind(b"\n", 0, _DETECTED_IN) + 1] or content
    found = _latin_charset(sample, language) or _japanese_charset(sample) or _other_charset(sample)
    if found is None:
        raise DataError(
            "is not UTF-8, and its encoding cannot be identified; convert it to UTF-8, for"
            " example: iconv -f WINDOWS-1252 -t UTF-8",
            path=path,
        )
    return found


def _strictly(content: bytes, charset: str, path: PathLike) -> str:
    try:
        return content.decode(charset)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"is not in its encoding {charset}; save it as UTF-8", path=path, line=line
        ) from error


def _byte_order(content: bytes) -> str:
    """Return the UTF-16 byte order of a text without a mark, found by its spaces and stops."""
    if len(content) % 2 or b"\0" not in content[:_LOOKED_AT]:
        return ""
    counts = {}
    for name in ("utf-16-le", "utf-16-be"):
        text = content[:_LOOKED_AT].decode(name, "replace")
        counts[name] = sum(map(text.count, _SPACES)) - text.count("\ufffd")
    best = max(counts, key=lambda name: counts[name])
    # With their two bytes swapped, these characters become rare ones.
    return best if counts[best] > max(1, 5 * min(counts.values())) else ""


def _refuse_damaged(content: bytes, error: UnicodeDecodeError, path: PathLike) -> None:
    """Refuse UTF-8 with a few damaged bytes, which must not be read in another encoding.

    Raises:
        DamagedFileError: most characters outside of ASCII are valid.
    """
    text = content[:_DETECTED_IN].decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    valid = sum(not character.isascii() for character in text) - damaged
    if valid > 10 * damaged or error.end >= len(content) > 4 * error.start > 0:
        line = content.count(b"\n", 0, error.start) + 1
        raise DamagedFileError(
            "is UTF-8 with damaged bytes; fetch it again, or remove them: iconv -c -f UTF-8 -t"
            " UTF-8",
            path=path,
            line=line,
        )


def _latin_charset(content: bytes, language: str | None) -> str | None:
    """Return the character set of a text in Latin script; None if it is not clear."""
    codes = _likely_languages(content) if language is None else [language]
    best = ("", 0.0)
    for code in codes:
        alphabet = _ALPHABETS.get(resolve_language(code).iso3)
        if alphabet is None or not resolve_language(code).is_latin:
            continue
        fitting = frozenset(alphabet + alphabet.upper()) | _TYPOGRAPHY
        for charset in ("cp1258",) if code.startswith("vie") else _LATIN:
            share = _share_of(content, charset, fitting)
            if share > best[1]:
                best = (charset, share)
    return best[0] if best[1] >= _LEAST_FITTING else None


def _likely_languages(content: bytes) -> list[str]:
    """Return the Latin-script languages whose frequent words a text has, the likeliest first."""
    # ASCII letters are the same in all these sets; one letter represents all other bytes.
    text = re.sub(rb"[\x80-\xff]", b"\xff", content).decode("iso8859-1")
    shares = word_shares_by_language(text)
    least = max(_LEAST_WORDS, _OF_BEST * max(shares.values(), default=0.0))
    likely = [code for code, share in shares.items() if share >= least]
    return sorted(likely, key=lambda code: shares[code], reverse=True)


def _share_of(content: bytes, charset: str, fitting: frozenset[str]) -> float:
    """Return the share of the characters outside of ASCII that fit; 0 if the text is not valid."""
    try:
        text = content.decode(charset)
    except UnicodeDecodeError:
        return 0.0
    counts = Counter(text)
    others = {own: count for own, count in counts.items() if not own.isascii()}
    met = sum(count for own, count in others.items() if own in fitting)
    met -= len(_INSIDE_A_WORD.findall(text))
    return met / max(1, sum(others.values()))


def _japanese_charset(content: bytes) -> str | None:
    """Return the character set in which a text has kana, but few half-width kana."""
    for charset in ("cp932", "euc_jp"):
        try:
            text = content.decode(charset)
        except UnicodeDecodeError:
            continue
        others = [character for character in text if not character.isascii()]
        kana = sum("\u3041" <= character <= "\u30ff" for character in others)
        narrow = sum("\uff61" <= character <= "\uff9f" for character in others)
        if kana >= max(_LEAST_LETTERS // 2, _LEAST_KANA * len(others)) and narrow < kana / 10:
            return charset
    return None


def _other_charset(content: bytes) -> str | None:
    """Return the character set of a text in another script; None if it is not clear."""
    library = import_extra("charset_normalizer", package="charset-normalizer", extra="documents")
    # Lines of only ASCII, such as the times of subtitles, are no evidence of other letters.
    lines = [line for line in content.split(b"\n") if not line.isascii()]
    content = b"\n".join(lines)
    best = library.from_bytes(content, cp_isolation=_OTHERS).best()
    if best is None or best.chaos > _MOST_CHAOS:
        return None
    charset = str(best.encoding)
    if best.coherence < _LEAST_COHERENCE and charset not in _EAST_ASIAN:
        return None
    text = content.decode(charset)
    if charset in ("cp1253", "iso8859_7"):
        charset = _greek_charset(content, charset)
        text = content.decode(charset)
    return charset if _is_one_script(text.split("\n")) else None


def _greek_charset(content: bytes, charset: str) -> str:
    """Return which of two sets a Greek text is in, by the byte of Alpha with an accent."""
    if re.search(rb"\xb6[\xc1-\xfe]", content):
        return "iso8859_7"
    if re.search(rb"(?<![\xc1-\xfe])\xa2[\xc1-\xfe]", content):
        return "cp1253"
    return charset


def _is_one_script(lines: Sequence[str]) -> bool:
    """Return whether nearly all non-ASCII letters are of one script; Korean may include Han."""
    counts = dict(zip(BLOCKS, script_counts(lines)[1:-1].tolist(), strict=True))
    total = float(script_counts(lines).sum())
    joined = "".join(lines)
    counts["Latn"] -= sum(character.isascii() and character.isalpha() for character in joined)
    total -= sum(character.isascii() and character.isalpha() for character in joined)
    counts["Hang"] += counts["Hani"] if counts["Hang"] > counts["Hani"] else 0
    found = max(counts, key=lambda script: counts[script])
    return found != "Latn" and counts[found] >= max(_LEAST_LETTERS, _ONE_SCRIPT * total)
