"""Split plain text into sentences, by rules.

These rules are our own because no package was at least as good on all texts with known sentences.
``sentencex`` 1.0.32 splits 20 of 25 texts of ``test_sentence_splitting.py`` as a reader would,
these rules all. Of FLORES (36 languages, five lines joined) it finds the ends with a
mean F1 of 0.883, these rules with 0.888: they are better in Burmese, Estonian and Japanese, it is
better where a quotation holds several sentences, as it never ends one inside of quotes. PyICU has
no wheels.

A text is cut in two steps. Lines are first joined to paragraphs: a blank line ends a paragraph, and
so does every line of a text of which the lines are long (a paragraph each). In a text that was
wrapped at a fixed width, a line that nearly reaches the width goes on in the next one. A paragraph
is then cut after each mark that ends a sentence, with the quotes and brackets that close behind it.
Marks of scripts without spaces (Chinese, Japanese) and marks that mean nothing else (Hindi,
Armenian, Amharic, Arabic) always end one. A Latin full stop does only before white space and what
may begin a sentence, and not after an abbreviation, an initial or, in languages that write ordinal
numbers so, a short number. Languages without such marks (Thai, Lao, Khmer) are left with a sentence
per paragraph.

The time is linear in the characters, whatever they are: texts come from strangers.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator

from interlingua.config.languages import resolve_language
from interlingua.config.options import checked_call
from interlingua.errors import ConfigError, with_article

WRAPPED_AT_MOST = 100
"""Characters of the longest line of a text that was wrapped at a width."""
NEARLY_FULL = 0.6
"""Share of the width from which a line goes on in the next one."""
CLOSING = "\"'”’»›)]}」』）】》〉〟"
OPENING = "\"'“‘«‹([{「『（【《〈¿¡„‚-–—"
WIDE_ENDS = "。！？｡"
OTHER_ENDS = "।॥؟۔።፧։။។᠃꓿"
OWN_ENDS = {"ell": ";\u037e", "hye": ":"}
"""Marks that end a sentence in one language only: the Greek question mark, and the colon that is
typed for the Armenian full stop."""
CASELESS = "\u10d0-\u10ff"
"""Georgian letters. Python calls them lower case, but they begin sentences."""
_INITIAL = re.compile(r"\w\.")
_FOLLOWING = re.compile(rf"[{re.escape(OPENING)} ]*+.", re.DOTALL)
WORD_CHARACTERS = 100
"""Characters before a full stop that its word is looked for in."""
ORDINAL_DIGITS = 2
"""Digits of a number before a full stop that may make it an ordinal: a day, a century, but not a
year."""
ORDINALS = "deu dan nob nno fin ces slk slv hrv bos hun pol est lav tur isl"
"""Languages that write ordinal numbers with a full stop."""
ABBREVIATIONS = {
    "": "mr mrs ms dr prof st vs etc cf al no vol fig eds ed inc ltd co jr sr gen col lt capt rev"
        " sgt maj cpl gov sen hon e.g i.e p.m a.m u.s u.k approx jan feb mar apr jun jul aug sep"
        " sept oct nov dec pp",
    "deu": "bzw z.b d.h u.a ca nr usw evtl ggf vgl abs art bd hrsg str tel inkl zzgl s.o s.u o.ä"
           " i.d.r z.t",
    "fra": "m mm mme mmes mlle p.ex env av apr art chap éd c.-à-d",
    "spa": "sr sra sres srta d dña ud uds ee uu ee.uu p.ej pág núm aprox",
    "por": "sr sra dra exmo av nº pág p.ex",
    "ita": "sig sigg dott ing avv pag es ecc art",
    "nld": "dhr mevr bijv d.w.z o.a enz blz ca nr",
    "rus": "г гг в вв т.е т.д т.п т.к т.н др пр ул им руб тыс млн млрд см рис стр напр",
    "ukr": "р рр ст т.д т.п т.зв ім вул див рис напр",
    "pol": "np tzn itd itp dr prof ul pkt tzw m.in",
    "ces": "např tzn atd apod tj tzv str",
    "swe": "t.ex bl.a dvs osv ca kl",
    "tur": "vb vs prof dr örn sn",
    "hin": "डॉ प्रो",
    "vie": "tp ths ts pgs gs",
}  # fmt: skip


@checked_call
def split(text: str, language: str | None = None) -> list[str]:
    """Return the sentences of a text, as ``align --split`` finds them.

    Args:
        text: plain text; a blank line ends a paragraph.
        language: of the text, in any code, for its abbreviations and marks; default: those of
            English.

    Raises:
        ConfigError: it is no text.
        LanguageError: there is no such language.
    """
    if not isinstance(text, str):
        raise ConfigError(
            f"split takes one text, got {with_article(type(text).__name__)}; of several:"
            " [interlingua.split(text) for text in texts]"
        )
    return split_text(
        text.splitlines(), "" if language is None else resolve_language(language).code
    )


def split_text(lines: Iterable[str], language: str = "") -> list[str]:
    """Split a document into sentences.

    Args:
        lines: of the text, with or without their ends.
        language: three letters of ISO 639-3 and more (``deu_Latn``), for abbreviations; default:
            those of English.
    """
    sentences: list[str] = []
    for paragraph in paragraphs(lines):
        sentences += split_paragraph(paragraph, language)
    return sentences


def paragraphs(lines: Iterable[str], width: int | None = None) -> Iterator[str]:
    """Yield the paragraphs of a text, one per line, without blank ones.

    The module docstring describes how lines are joined.

    Args:
        lines: of the text, with or without their ends.
        width: at which the text was wrapped; 0 if it was not; default: its longest line's.
    """
    stripped = [line.strip() for line in lines]
    if width is None:
        width = max(map(len, stripped), default=0)
    is_wrapped = 0 < width <= WRAPPED_AT_MOST
    parts: list[str] = []
    for line in stripped:
        if line:
            # Chinese and Japanese have no space where a line was broken.
            is_wide = bool(parts) and _is_wide(parts[-1][-1]) and _is_wide(line[0])
            if parts and not is_wide:
                parts.append(" ")
            parts.append(line)
        # A short line of a wrapped text is the last one of its paragraph.
        goes_on = is_wrapped and line and len(line) >= NEARLY_FULL * width
        if parts and not goes_on:
            yield "".join(parts)
            parts = []
    if parts:
        yield "".join(parts)


def split_paragraph(text: str, language: str = "") -> list[str]:
    """Split a paragraph into sentences; see ``split_text``."""
    code = language[:3]
    sentences = []
    start = seen = 0
    has_word = False
    for match in _ends_of(code).finditer(text):
        # A mark that stands alone ends nothing. What was looked at before has no word.
        has_word = has_word or any(map(str.isalnum, text[seen : match.start()]))
        seen = match.end()
        if not has_word or (match["latin"] and not _ends(text, start, match, code)):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
        has_word = False
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _ends(text: str, start: int, match: re.Match[str], code: str) -> bool:
    """Return whether a Latin mark before white space ends the sentence that begins at ``start``."""
    found = _FOLLOWING.match(text, match.end())
    if found is None:
        return True
    following = found[0][-1]
    if following.islower() and not re.match(f"[{CASELESS}]", following):
        return False
    if match["latin"] != ".":
        return True
    # The rest is about a single full stop, which may belong to the word before it.
    before = text[max(start, match.start() - WORD_CHARACTERS) : match.start()]
    *earlier, word = ["", *before.split()]
    word = word.lstrip(OPENING)
    if word.isdigit():
        # The number of a page or an article is no ordinal: "Art. 7."
        is_numbered = bool(earlier) and earlier[-1].endswith(".")
        return is_numbered or code not in ORDINALS.split() or len(word) > ORDINAL_DIGITS
    # An initial, or a part of an abbreviation: "J. Miller", "z. B.", "p. 12".
    if len(word) == 1 and (word.isupper() or (word.isalpha() and not following.isalpha())):
        return False
    if len(word) == 1 and _INITIAL.match(text, match.end()):
        return False
    return word.lower() not in _abbreviations(code)


@functools.cache
def _ends_of(code: str) -> re.Pattern[str]:
    """Return the pattern of marks that may end a sentence, with what closes behind them."""
    closing = f"[{re.escape(CLOSING)}]*"
    if code == "fra":
        # French puts a space before the closing quote.
        closing = f"(?:[ \u00a0\u202f]?»|[{re.escape(CLOSING)}])*"
    latin = re.escape(f".!?…{OWN_ENDS.get(code, '')}")
    # A run of marks is tried once: not from each of its marks, and not with fewer of them.
    return re.compile(
        rf"(?P<always>[{WIDE_ENDS}]+{closing}|[{OTHER_ENDS}]+{closing})\s*"
        rf"|(?<![{latin}])(?P<latin>[{latin}]++){closing}+\s+"
    )


@functools.cache
def _abbreviations(code: str) -> frozenset[str]:
    return frozenset(f"{ABBREVIATIONS['']} {ABBREVIATIONS.get(code, '')}".split())
