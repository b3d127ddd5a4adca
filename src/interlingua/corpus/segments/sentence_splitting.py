"""Split plain text into sentences, by rules.

No package is as good as these rules on the texts that were compared by ``benchmarks/split.py``: of
199 cases in 74 languages (``splitting_cases.tsv`` of the tests) these rules have 198 right,
sentencex 1.0.32 has 124, ICU 115 and pysbd 87. The rules were written with these cases in view.
If FLORES lines in 55 languages are joined to texts of five lines, these rules find the borders
with a mean F1 of 0.961, and sentencex with 0.912.

A text is cut in two steps. Lines are first joined to paragraphs: a blank line, a list item and a
heading of Markdown end a paragraph, and so does every line of a text with long lines (each
is a paragraph). In a text that was wrapped at a fixed width, a line that nearly reaches the width
continues in the next one. A paragraph is then cut after each mark that ends a sentence, with the
closing quotes and brackets behind it. Marks of scripts without spaces (Chinese, Japanese) and marks
that mean nothing else (Hindi, Armenian, Amharic, Arabic) always end a sentence, except before a
word that names the speaker of a quotation. A Latin mark ends a sentence only before white space
that a possible start of a sentence follows.

A single full stop is judged by the word before it, see ``abbreviations.py``. A title never ends a
sentence ("Dr."). An abbreviation with a number behind it does not ("S. 12"), and a unit behind a
number does ("1990 г. Она"). Other abbreviations and initials end a sentence if the next word is
one that starts sentences ("plan B. It"). In languages that write ordinal numbers with a full stop,
a short number does not end a sentence ("3. Oktober"). Thai has no marks: a space ends a sentence
behind a word of politeness, and before a word that links two sentences. Other Thai sentences are
not separated.

The time is linear in the number of characters for any text, because texts may be malicious.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator

from interlingua.config.languages import resolve_language
from interlingua.config.options import checked_call
from interlingua.corpus.segments.abbreviations import CAPITALIZING, words_of_language
from interlingua.errors import ConfigError, with_article

WRAPPED_AT_MOST = 100
"""Maximum length in characters of the lines of a text that was wrapped at a width."""
NEARLY_FULL = 0.6
"""Minimum length of a line, as a share of the width, for it to continue in the next one."""
CLOSING = "\"'”’»›)]}」』）】》〉〟"
OPENING = "\"'“‘«‹([{「『（【《〈¿¡„‚”-–—*_"
WIDE_ENDS = "。！？｡"
OTHER_ENDS = "।॥؟۔።፧։။។᠃꓿"
OWN_ENDS = {"ell": ";\u037e", "hye": ":"}
"""Marks that end a sentence in one language only: the Greek question mark, and the colon that is
typed for the Armenian full stop."""
CASELESS = re.compile("[\u10d0-\u10ff]")
"""Georgian letters. Python calls them lower case, but they start sentences."""
WORD_CHARACTERS = 100
"""Number of characters before a full stop that are searched for its word."""
ORDINAL_DIGITS = 2
"""Maximum digits of an ordinal number that ends with a full stop: a day or a century, but not a
year."""
ENUMERATOR_DIGITS = 3
"""Maximum digits of the number of a list item: ``12. Close the door.``"""
_ORDINAL_CODES = "deu dan nob nno fin ces slk slv hrv bos srp hun pol est lvs tur isl ltz fao"
ORDINALS = _ORDINAL_CODES.split()
"""Languages that write ordinal numbers with a full stop."""
_FOLLOWING = re.compile(rf"[{re.escape(OPENING)} ]*+(\w{{1,30}}+|.)([.)]?)", re.DOTALL)
"""The text behind a mark: its first word, and a stop or a bracket behind that."""
_ROMAN = re.compile(r"[IVXLC]+")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}")
_VOWELS = re.compile(r"[aeiouyаеёиоуыэюяіїєαεηιουω]")
_THAI_BORDER = (
    r"|(?:ครับ|ค่ะ|คะ|จ้ะ|จ๊ะ)\s++|(?<!\s)\s++(?=อย่างไรก็ตาม|อย่างไรก็ดี|นอกจากนี้|นอกจากนั้น|ดังนั้น|เพราะฉะนั้น|ทั้งนี้|ต่อมา"
    r"|จากนั้น|หลังจากนั้น|ในขณะเดียวกัน|ในทางกลับกัน|ยิ่งไปกว่านั้น|ด้วยเหตุนี้)"
)
"""A space behind a word of politeness, or before a word that links a sentence to the last one."""
_OWN_BORDERS = {"tha": _THAI_BORDER, "bod": r"|(?<!།)།++\s+", "dzo": r"|(?<!།)།++\s+"}
"""Borders in single languages: those of Thai, and in Tibetan a shad before a space."""
_SAYS = re.compile(r"\s*[^。！？：“「\s]{0,8}?(?:说|說|问|問|道|答|叫|喊|讲|講|話)[，。！]")
"""A short clause in Chinese that names the speaker of the quotation before it."""
_QUOTED = re.compile(r"\s*(?:と|って|という|などと)")
"""A particle in Japanese behind a quotation."""
_ALWAYS_ITEM = re.compile(r"(?:[*•‣◦▪·+]|#{1,6}|>)\s+\S")
_ITEM = re.compile(r"(?:[-–—]|\(?(?:\d{1,3}|[a-z])[.)])\s+\S")
_HEADING = re.compile(r"#{1,6}\s")
NARROW = 30
"""Minimum length in characters of the longest line of a wrapped text. In a narrower text, a line
continues only if the next one does not start with a capital letter."""


@checked_call
def split(text: str, language: str | None = None) -> list[str]:
    """Return the sentences of a text, as ``align --split`` finds them.

    Args:
        text: plain text; a blank line ends a paragraph.
        language: of the text, in any code, for its abbreviations and marks; default: those of
            English.

    Raises:
        ConfigError: ``text`` is not a string.
        LanguageError: there is no such language.
    """
    if not isinstance(text, str):
        raise ConfigError(
            f"split: expected one text, found {with_article(type(text).__name__)}; for several"
            " texts: [interlingua.split(text) for text in texts]"
        )
    return split_text(
        text.splitlines(), "" if language is None else resolve_language(language).code
    )


def split_text(lines: Iterable[str], language: str = "") -> list[str]:
    """Split a document into sentences.

    Args:
        lines: of the text, with or without their ends.
        language: a code that starts with three letters of ISO 639-3 (``deu_Latn``), for
            abbreviations; default: those of English.
    """
    sentences: list[str] = []
    for paragraph in paragraphs(lines):
        sentences += split_paragraph(paragraph, language)
    return sentences


def paragraphs(lines: Iterable[str], width: int | None = None) -> Iterator[str]:
    """Yield the paragraphs of a text, each as one line, without blank ones.

    The module docstring describes how lines are joined.

    Args:
        lines: of the text, with or without their ends.
        width: characters of its longest line, 0 if no line was wrapped; by default all lines are
            held in memory to find it.
    """
    stripped: Iterable[str] = (line.strip() for line in lines)
    if width is None:
        stripped = list(stripped)
        width = max(map(len, stripped), default=0)
    parts: list[str] = []
    before = ""
    was_item = False
    for line in stripped:
        is_item = _begins_item(line, before, was_item)
        if parts and not (line and not is_item and _goes_on(before, line, width)):
            yield "".join(parts)
            parts = []
        if line:
            # Chinese and Japanese have no space where a line was broken.
            if parts and not (_is_wide(before[-1]) and _is_wide(line[0])):
                parts.append(" ")
            parts.append(line)
            was_item = is_item or (was_item and len(parts) > 1)
        before = line or before
    if parts:
        yield "".join(parts)


def _begins_item(line: str, before: str, was_item: bool) -> bool:
    """Return whether a line starts a list item or a heading, after the line ``before``."""
    if _ALWAYS_ITEM.match(line):
        return True
    # A dash or a number may also start a line because a sentence was wrapped there.
    if not _ITEM.match(line):
        return False
    return was_item or not before or before.rstrip(CLOSING)[-1:] in ".!?…:;" or before[-1] in ".:"


def _goes_on(before: str, line: str, width: int) -> bool:
    """Return whether a paragraph continues from the line ``before`` to the next one."""
    if not 0 < width <= WRAPPED_AT_MOST or _HEADING.match(before):
        return False
    # A short line of a wrapped text is the last one of its paragraph.
    if len(before) < NEARLY_FULL * width:
        return False
    return width >= NARROW or not line[0].isupper()


def split_paragraph(text: str, language: str = "") -> list[str]:
    """Split a paragraph into sentences; see ``split_text``."""
    code = language[:3]
    sentences = []
    start = seen = 0
    has_word = False
    for match in _ends_of(code).finditer(text):
        # A mark without a word before it ends nothing. Text before ``seen`` is not searched again.
        has_word = has_word or any(map(str.isalnum, text[seen : match.start()]))
        seen = match.end()
        if not has_word or not _ends(text, start, match, code):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
        has_word = False
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _ends(text: str, start: int, match: re.Match[str], code: str) -> bool:
    """Return whether the marks end the sentence that starts at ``start``."""
    if match["latin"]:
        return _latin_ends(text, start, match, code)
    # In Chinese or Japanese, words that name the speaker may follow a quotation.
    if match["wide"] and match["wide"][-1] in CLOSING and not match["wide"][-1].isspace():
        if _QUOTED.match(text, match.end()):
            return False
        is_quotation = text[start : start + 1] in '“「『"‘'
        return not (is_quotation and _SAYS.match(text, match.end()))
    return True


def _latin_ends(text: str, start: int, match: re.Match[str], code: str) -> bool:
    """Return whether a Latin mark before white space ends the sentence from ``start``."""
    following = _FOLLOWING.match(text, match.end())
    if following is None:
        return True
    if not _may_begin(text, match.end(), following):
        return False
    if match["latin"] != ".":
        return True
    # The rest is about a single full stop, which may belong to the word before it.
    if code == "tha":
        return False
    before = text[max(start, match.start() - WORD_CHARACTERS) : match.start()]
    *earlier, word = ["", *before.split()]
    word = word.lstrip(OPENING)
    previous = earlier[-1] if earlier else ""
    if word.isdigit():
        return _number_ends(word, previous, following, code)
    return _word_ends(word, previous, following, code)


def _may_begin(text: str, place: int, following: re.Match[str]) -> bool:
    """Return whether the text behind a mark may start a sentence."""
    word, behind = following.groups()
    if not word[0].islower() or CASELESS.match(word):
        return True
    # "iPhone", "b) Next", and Dutch "'s Morgens".
    if word[1:2].isupper() or (len(word) == 1 and behind == ")"):
        return True
    return (
        len(word) == 1
        and text[following.start(1) - 1] in "'’"
        and (text[following.end() + 1 : following.end() + 2].isupper())
    )


def _number_ends(word: str, previous: str, following: re.Match[str], code: str) -> bool:
    """Return whether the full stop behind a number ends a sentence."""
    if not previous and len(word) <= ENUMERATOR_DIGITS:
        return False
    # A date in Korean, "2020. 5. 1."
    if code == "kor" and (following[1].isdigit() or previous[:-1].isdigit()):
        return False
    if code not in ORDINALS or len(word) > ORDINAL_DIGITS:
        return True
    # The number of a page or an article is no ordinal: "Art. 7."
    words = words_of_language(code)
    if previous.endswith(".") and not previous[:-1].isdigit():
        return True
    return previous.lower() in words.numbered or following[1].lower() in words.starters


def _word_ends(word: str, previous: str, following: re.Match[str], code: str) -> bool:
    """Return whether the full stop behind a word, or a part of an abbreviation, ends a sentence."""
    words = words_of_language(code)
    key = word.lower()
    # "z. B." is looked up as "z.b", and "l'ing." as "ing".
    joined = key
    if previous.endswith(".") and len(previous) <= 4:
        joined = f"{previous.lower()}{key}"
    keys = {key, joined, re.split("['’]", key)[-1]}
    next_word = following[1]
    begins = next_word.lower() in words.starters
    if keys & words.units and previous[-1:].isdigit():
        return True
    if keys & words.weak:
        return begins or (code or "eng") not in CAPITALIZING
    if keys & words.titles:
        return False
    is_number = next_word[0].isdigit() or _ROMAN.fullmatch(next_word) is not None
    is_numbered = bool(keys & words.numbered) or (code == "deu" and key.endswith("str"))
    if is_numbered and is_number:
        return False
    if len(word) == 1 and word.isalpha():
        # An initial: "J. Miller"; a word in "So did I. She did too."
        is_initial = len(next_word) == 1 and following[2] == "."
        is_pronoun = word == "I" and (code or "eng") == "eng" and previous[-1:].islower()
        return (begins or is_pronoun) and not is_initial
    if is_numbered:
        return True
    is_ordinal = code in ORDINALS and _ROMAN.fullmatch(word) is not None
    if is_ordinal or _DOTTED.fullmatch(key):
        return begins
    if _looks_abbreviated(word):
        # Behind a number it is a unit: "600 Mbps."
        return begins or previous[-1:].isdigit()
    return True


def _looks_abbreviated(word: str) -> bool:
    """Return whether a word has a capital only at its start and no vowel: "Hr", not "BBC"."""
    if not (2 <= len(word) <= 4 and word.isalpha() and word[0].isupper() and word[1:].islower()):
        return False
    if not "a" <= word[-1] <= "\u04ff":
        return False
    plain = unicodedata.normalize("NFD", word.lower())
    return not _VOWELS.search(plain)


@functools.cache
def _ends_of(code: str) -> re.Pattern[str]:
    """Return the pattern of marks that may end a sentence, with the closing marks after them."""
    closers = f"[{re.escape(CLOSING)}]"
    # Behind a mark, and before a space, these close too: „so“, **so**, a footnote[1].
    # French puts a space before the closing quote.
    closing = rf"(?:[{re.escape(CLOSING)}“‘«*_]|[ \u00a0\u202f]»(?=\s|$)|\[\d{{1,3}}\]|[⁰¹²³⁴-⁹])*+"
    latin = re.escape(f".!?…{OWN_ENDS.get(code, '')}")
    # A run of marks is matched only as a whole: not from a later mark, and not with fewer marks.
    return re.compile(
        rf"(?P<wide>(?:[{WIDE_ENDS}]++{closers}*+)++)\s*"
        rf"|(?:។ល។|[{OTHER_ENDS}]++)(?:{closers}|[“‘](?=\s|$))*+\s*"
        rf"|(?<![{latin}])(?P<latin>[{latin}]++){closing}\s+"
        rf"{_OWN_BORDERS.get(code, '')}"
    )
