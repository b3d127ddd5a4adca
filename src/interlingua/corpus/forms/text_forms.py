"""One form of texts before tokenization, so that vectors do not depend on how texts are typed.

The same sentence can be stored decomposed or composed, with or without soft hyphens and vowel
points, in presentation forms or in capitals. A tokenizer gives each of them different tokens. A
model can list the forms to undo before tokenization, in ``vocabulary.json`` (``text_forms``); a
model that lists none reads texts as they are. Each form is undone separately, in the order of
``TEXT_FORMS``, and undoing it again changes nothing.

The cleaning of a corpus is separate (``normalize.py``): it also unifies quotes and white space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

TextForm = Literal["invisible", "presentation", "decomposed", "points", "capitals"]
TEXT_FORMS: tuple[TextForm, ...] = (
    "invisible",
    "presentation",
    "decomposed",
    "points",
    "capitals",
)
"""All forms, in the order in which they are undone."""
IN_TOKENIZER_FILE: tuple[TextForm, ...] = ("invisible", "decomposed", "points")
"""Forms that a ``tokenizer.json`` can undo by itself, see ``normalizers_of``."""

# Soft hyphen, combining grapheme joiner, marks of direction, zero-width space, invisible operators,
# byte order mark.
INVISIBLE = "\u00ad\u034f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
"""Characters without a shape, as in a class of a regular expression."""
# Words in Persian and in the scripts of India contain joiners, and so do emoji. The blocks are
# those from Arabic to Sinhala, those from Tibetan to Myanmar, and those of Khmer and Mongolian.
KEEPS_JOINERS = (
    "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\ua8e0-\ua8ff\ua9e0-\ua9ff\uaa60-\uaa7f"
    "\ufb50-\ufdff\ufe70-\ufefc\ufe0f\u2600-\u27bf\U0001f000-\U0001faff"
)
"""Characters behind which a zero-width joiner or non-joiner is part of the spelling."""
POINTS = (
    # Arabic marks, tatweel, superscript alef; Quranic marks; spacing forms of the marks.
    "\u0610-\u061a\u0640\u064b-\u0652\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\ufe70-\ufe7f"
    # Hebrew accents and points.
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
)
"""Arabic and Hebrew marks that most texts leave out."""
# Ligatures, Arabic and Hebrew presentation forms, full-width letters and digits, half-width kana
# and hangul. Full-width punctuation stays: it is what Chinese and Japanese write.
PRESENTATION = (
    "\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdff\ufe80-\ufefc\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
    "\uff65-\uffdc"
)
"""Characters that Unicode has only for their shape or width."""
FEW_WORDS = 4
"""Minimum number of words for a text in capitals not to count as a row of abbreviations, whatever
the length of its words."""
LONG_WORDS = 4
"""Minimum mean number of letters per word for a text in capitals, of at least two words, not to
count as a row of abbreviations."""

INVISIBLE_PATTERN = f"[{INVISIBLE}]|(?<![{KEEPS_JOINERS}])[\u200c\u200d]"
POINTS_PATTERN = f"[{POINTS}]"
_INVISIBLE = re.compile(INVISIBLE_PATTERN)
_POINTS = re.compile(POINTS_PATTERN)
_PRESENTATION = re.compile(f"[{PRESENTATION}]+")
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_START = re.compile(r"(?:^|[.!?…。！？؟։།॥]\s)\W*(\w)")
# Only Turkic languages have these letters; in them, the small letter of I is dotless.
_TURKIC = re.compile("[İĞ]")
_TURKIC_CASE = str.maketrans({"I": "ı", "İ": "i"})


def undo_forms(texts: Sequence[str], forms: Collection[str]) -> list[str]:
    """Return the texts without these forms.

    Args:
        texts: any strings.
        forms: which of ``TEXT_FORMS`` to undo.
    """
    if not forms:
        return list(texts)
    steps = [step for form, step in _STEPS.items() if form in forms]
    keeps_case = "capitals" not in forms
    undone = []
    for text in texts:
        # Plain ASCII can be in capitals and in no other form.
        if text.isascii() and (keeps_case or not text.isupper()):
            undone.append(text)
            continue
        for step in steps:
            text = step(text)
        undone.append(text)
    return undone


def normalizers_of(forms: Collection[str]) -> list[dict[str, Any]]:
    """Return the steps of a ``tokenizer.json`` that undo forms, for libraries that read only this.

    There are none for presentation forms and capitals.
    """
    steps: list[dict[str, Any]] = []
    if "invisible" in forms:
        steps.append(_removal(INVISIBLE_PATTERN))
    if "decomposed" in forms:
        steps.append({"type": "NFC"})
    if "points" in forms:
        steps.append(_removal(POINTS_PATTERN))
    return steps


def _removal(pattern: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""}


def without_invisible(text: str) -> str:
    """Remove characters without a shape; joiners stay in the scripts that need them."""
    return _INVISIBLE.sub("", text)


def without_presentation_forms(text: str) -> str:
    """Replace presentation forms, ligatures and full- and half-width letters by plain letters."""
    return _PRESENTATION.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def composed(text: str) -> str:
    """Return the text in NFC."""
    return unicodedata.normalize("NFC", text)


def without_points(text: str) -> str:
    """Remove Arabic and Hebrew vowel points, and the Arabic tatweel."""
    return _POINTS.sub("", text)


def in_sentence_case(text: str) -> str:
    """Lowercase a text in capitals, except for the first letter of each sentence.

    A text with a small letter, a single word and a row of abbreviations stay as they are, and so
    does a text of which most letters have no case. The length does not change.
    """
    if not text.isupper() or not _is_written_in_capitals(text):
        return text
    if _TURKIC.search(text):
        text = text.translate(_TURKIC_CASE)
    small = text.lower()
    return _SENTENCE_START.sub(lambda match: match[0][:-1] + match[1].title(), small)


def _is_written_in_capitals(text: str) -> bool:
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    with_case = sum(letter.isupper() for word in words for letter in word)
    # Names in capitals occur in Chinese sentences too.
    if len(words) < 2 or 2 * with_case <= letters:
        return False
    return len(words) >= FEW_WORDS or letters >= LONG_WORDS * len(words)


_STEPS: Mapping[TextForm, Callable[[str], str]] = {
    "invisible": without_invisible,
    "presentation": without_presentation_forms,
    "decomposed": composed,
    "points": without_points,
    "capitals": in_sentence_case,
}
