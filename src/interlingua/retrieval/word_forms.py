"""Normalization of the words of passages and questions for a search by words.

LanceDB's ICU tokenizer splits texts of all scripts into words, with dictionaries for Chinese,
Japanese, Thai, Lao, Khmer and Burmese. It lowers capitals and removes the marks of Latin letters.
It keeps words that are written together as one word: l'école, teacher's, request_timeout,
www.example.org, and in Korean, Arabic and Hebrew a noun with its particles and articles. Its other
mode splits at all characters except letters, and so it splits words of Hindi and Thai at their
marks.

``word_forms`` rewrites a text before it is indexed and before it is looked up. The scripts in the
text choose the rules, because a question does not state its language.

- Latin: the four letters i of Turkish become one; a word ends at an apostrophe, a point, a colon
  or _.
- Korean: overlapping pairs of syllables, as in Lucene's CJK analyzer. 도서관은 ("library" as topic)
  shares two pairs with 도서관. A word of one syllable is also indexed without its particle.
- Arabic script: no vowel points, one form of letters that are typed in several ways, no article ال.
  A word that may start with "and" or a preposition is followed by its shorter form.
- Hebrew: no vowel points; a word that may start with an article, "and" or a preposition is followed
  by its shorter form, as roots may start with these letters too.
- Greek and Cyrillic: no accents, one sigma, no ё; an apostrophe in a Cyrillic word is left out.
- Scripts of India: plain digits; no dot below letters and one sign of nasal vowels in Devanagari.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from interlingua.corpus.forms.text_forms import TextForm, undo_forms

UNDONE: tuple[TextForm, ...] = ("invisible", "presentation", "decomposed", "points")
APOSTROPHES = "'’‘ʼʻʹ´`"
ARABIC = "\u0620-\u063a\u0641-\u064a\u066e-\u06d3\u06d5\u06ee-\u06ff\u0750-\u077f"
CYRILLIC = "\u0400-\u052f"
HANGUL = "가-힣"
HEBREW = "א-ת"

# A pattern starts with the rarest characters, which are found fast, and then looks behind them.
INSIDE = re.compile(rf"_|[{APOSTROPHES}.:](?<=[^\W\d].)(?=\w)")
"""Characters that Unicode's rules keep inside a word; a point in a number is not among them."""
POSSESSIVE = re.compile(rf"[{APOSTROPHES}](?<=\w.)[sS]\b")
MARKS = re.compile("[\u0300-\u036f]")
CYRILLIC_APOSTROPHE = re.compile(rf"[{APOSTROPHES}](?<=[{CYRILLIC}].)(?=[{CYRILLIC}])")
GERESH = re.compile(rf"[{APOSTROPHES}\"”״׳](?<=[{HEBREW}].)(?=[{HEBREW}])")
"""Marks of sounds and abbreviations."""
HEBREW_PREFIXED = re.compile(
    rf"\b((?:[והבלמשכ]{{1,3}}(?=[{HEBREW}]{{3}})|ה(?=[{HEBREW}]{{2}}\b))([{HEBREW}]+))"
)
ARABIC_ARTICLE = re.compile(rf"ال(?<!\w..)(?!له\b)(?=[{ARABIC}]{{2}})")
"""The Arabic article, except in the name of God, which without it would be the word "for him"."""
ARABIC_PREFIXED = re.compile(rf"\b((?:[وفبك]ال|لل|و)([{ARABIC}]{{3,}}))")
KOREAN_PARTICLE = re.compile(rf"\b([{HANGUL}])(은|는|이|가|을|를|에|의|도|로|와|과|만|에서|으로)\b")
KOREAN_INSIDE = re.compile(rf"([{HANGUL}])(?<=[{HANGUL}].)(?=[{HANGUL}])")


def _greek_letters() -> dict[str, str]:
    """Return Greek letters with their small forms without accents, and with one sigma."""
    letters = {}
    for code in (*range(0x370, 0x400), *range(0x1F00, 0x2000)):
        base = unicodedata.normalize("NFD", chr(code))[0]
        if base.isalpha():
            letters[chr(code)] = base.lower().replace("ς", "σ")
    return letters


def _digits(*blocks: range) -> dict[str, str]:
    """Return a mapping from the digits in blocks of characters to those of ASCII."""
    digits = {}
    for code in (code for block in blocks for code in block):
        value = unicodedata.digit(chr(code), None)
        if value is not None:
            digits[chr(code)] = str(value)
    return digits


GREEK_LETTERS = str.maketrans(_greek_letters())
ARABIC_LETTERS = str.maketrans(
    {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ئ": "ي", "ؤ": "و", "ک": "ك"}
    | {"ة": "ه", "ۀ": "ه", "\u200c": " "}
    | _digits(range(0x660, 0x66A), range(0x6F0, 0x6FA))
)
INDIC_LETTERS = str.maketrans({"\u093c": "", "ँ": "ं"} | _digits(range(0x900, 0xD80)))
DOTS = str.maketrans({"İ": "i", "ı": "i"})
YO = str.maketrans({"Ё": "Е", "ё": "е"})


def _cyrillic(text: str) -> str:
    return CYRILLIC_APOSTROPHE.sub("", text.translate(YO))


def _hebrew(text: str) -> str:
    return HEBREW_PREFIXED.sub(r"\1 \2", GERESH.sub("", text))


def _arabic(text: str) -> str:
    text = ARABIC_ARTICLE.sub("", text.translate(ARABIC_LETTERS))
    return ARABIC_PREFIXED.sub(r"\1 \2", text)


def _korean(text: str) -> str:
    text = KOREAN_PARTICLE.sub(r"\1\2 \1", text)
    return KOREAN_INSIDE.sub(r"\1 \1", text)


_RULES: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (MARKS, lambda text: MARKS.sub("", text)),
    (re.compile("[İı]"), lambda text: text.translate(DOTS)),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), lambda text: text.translate(GREEK_LETTERS)),
    (re.compile(f"[{CYRILLIC}]"), _cyrillic),
    (re.compile(f"[{HEBREW}]"), _hebrew),
    (re.compile("[\u0600-\u077f]"), _arabic),
    (re.compile("[\u0900-\u0d7f]"), lambda text: text.translate(INDIC_LETTERS)),
    (re.compile(f"[{HANGUL}]"), _korean),
)
"""Characters of a script, and the treatment of a text that has one of them."""


def word_forms(text: str) -> str:
    """Return a text in which LanceDB's tokenizer finds the words to compare.

    Args:
        text: a passage or a question, in any language.
    """
    if not text.isascii():
        (text,) = undo_forms([text], UNDONE)
        for script, rewrite in _RULES:
            if script.search(text):
                text = rewrite(text)
    return INSIDE.sub(" ", POSSESSIVE.sub("", text))
