"""Other forms of a sentence that mean the same: how people and programs write it.

Training draws them (``batches/written_forms.py``), so that a model gives all forms one vector, and
the task ``robustness`` measures whether it does. A form that a sentence cannot have (capitals of
Thai, points of English) is the sentence itself.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Mapping

from interlingua.corpus.forms.text_forms import without_points
from interlingua.errors import ConfigError, did_you_mean

SOFT_HYPHEN = "\u00ad"
ARABIC_POINTS = "\u064e\u064f\u0650\u0652\u0651"
"""Fatha, damma, kasra, sukun, shadda."""
HEBREW_POINTS = "\u05b4\u05b5\u05b6\u05b7\u05b8\u05b9\u05bc\u05b0"
"""Hiriq, tsere, segol, patah, qamats, holam, dagesh, sheva."""
TURKIC = ("tur", "aze", "azj", "crh")
"""Languages in which i and ı are two letters, each with its capital."""
_SHORTEST_WORD = 6
"""Minimum letters of a word that gets soft hyphens."""
SYLLABLE = 3
"""Letters between two soft hyphens."""
SHORTEST_TYPO = 4
"""Minimum letters of a word that may get a typo."""
TYPO_SHARE = 0.15
"""Share of the long enough words that get a typo; at least one word gets one."""
_LONG_WORD = re.compile(rf"[^\W\d_]{{{_SHORTEST_WORD},}}")
_TYPO_WORD = re.compile(rf"[^\W\d_]{{{SHORTEST_TYPO},}}")
_ARABIC_LETTER = re.compile("[\u0621-\u063a\u0641-\u064a]")
_HEBREW_LETTER = re.compile("[\u05d0-\u05ea]")


def capitals(text: str, draw: random.Random, language: str = "") -> str:
    """Return the text in capitals: in Turkic languages with a dotted İ, in Greek unaccented."""
    if language[:3] in TURKIC:
        text = text.replace("i", "İ")
    if language[:3] == "ell":
        accented = unicodedata.normalize("NFD", text)
        text = unicodedata.normalize("NFC", accented.replace("\u0301", ""))
    # The capital of one small letter can be two letters (ß becomes SS), as people write it.
    return text.upper()


def lower_case(text: str, draw: random.Random, language: str = "") -> str:
    """Return the text in small letters; in Turkic languages, I becomes a dotless ı."""
    if language[:3] in TURKIC:
        text = text.replace("I", "ı")
    return text.replace("İ", "i").lower()


def decomposed(text: str, draw: random.Random, language: str = "") -> str:
    """Return the text in NFD, as macOS and some keyboards write it."""
    return unicodedata.normalize("NFD", text)


def points(text: str, draw: random.Random, language: str = "") -> str:
    """Add a random point behind each Arabic or Hebrew letter, except at the end of a word.

    The points are not the correct ones of the words, because the test only measures whether points
    matter. Points that a text already has are removed first.
    """
    pointed = []
    plain = without_points(text)
    for index, letter in enumerate(plain):
        pointed.append(letter)
        if not plain[index + 1 : index + 2].isalpha():
            continue
        if _ARABIC_LETTER.match(letter):
            pointed.append(draw.choice(ARABIC_POINTS))
        elif _HEBREW_LETTER.match(letter):
            pointed.append(draw.choice(HEBREW_POINTS))
    return "".join(pointed)


def soft_hyphens(text: str, draw: random.Random, language: str = "") -> str:
    """Return the text with a soft hyphen after every third letter of long words with case."""

    def hyphenated(match: re.Match[str]) -> str:
        word = match[0]
        if not (word[0].isupper() or word[0].islower()):
            return word
        parts = [word[start : start + SYLLABLE] for start in range(0, len(word), SYLLABLE)]
        # A single letter is never cut off.
        if len(parts[-1]) == 1:
            parts[-2:] = [parts[-2] + parts[-1]]
        return SOFT_HYPHEN.join(parts)

    return _LONG_WORD.sub(hyphenated, text)


def typos(text: str, draw: random.Random, language: str = "") -> str:
    """Return the text with a letter left out, doubled or swapped with the next in some words."""
    words = [match.span() for match in _TYPO_WORD.finditer(text)]
    if not words:
        return text
    count = max(1, round(TYPO_SHARE * len(words)))
    # Start at the end of the text, so that the places of earlier words remain valid.
    for start, end in sorted(draw.sample(words, count), reverse=True):
        text = text[:start] + _mistyped(text[start:end], draw) + text[end:]
    return text


def no_punctuation(text: str, draw: random.Random, language: str = "") -> str:
    """Remove punctuation from a text, except inside words and numbers."""
    kept = []
    for index, character in enumerate(text):
        if unicodedata.category(character)[0] != "P" or _is_inside(text, index):
            kept.append(character)
        elif not kept or not kept[-1].isspace():
            # Chinese has no space behind a comma: two clauses would become one word.
            kept.append(" ")
    return " ".join("".join(kept).split())


FORM_VARIANTS: Mapping[str, Callable[[str, random.Random, str], str]] = {
    "capitals": capitals,
    "lower_case": lower_case,
    "decomposed": decomposed,
    "points": points,
    "soft_hyphens": soft_hyphens,
    "typos": typos,
    "no_punctuation": no_punctuation,
}
"""Name of a form -> function that makes it from a sentence, random numbers and the language."""


def check_variants(names: tuple[str, ...], key: str) -> None:
    """Refuse names of forms that do not exist.

    Args:
        names: of ``FORM_VARIANTS``.
        key: of the option, for the error.

    Raises:
        ConfigError: there is no form of such a name.
    """
    for name in names:
        if name not in FORM_VARIANTS:
            raise ConfigError(f"{key}: unknown form {name!r}{did_you_mean(name, FORM_VARIANTS)}")


def _mistyped(word: str, draw: random.Random) -> str:
    """Return the word with one mistake behind its first letter."""
    place = draw.randrange(1, len(word) - 1)
    kind = draw.choice(("left out", "doubled", "swapped"))
    if kind == "left out":
        return word[:place] + word[place + 1 :]
    if kind == "doubled":
        return word[: place + 1] + word[place:]
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def _is_inside(text: str, index: int) -> bool:
    """Return whether an apostrophe, a hyphen or a decimal point is in a word or a number."""
    if text[index] not in "'’-.,:·":
        return False
    before = text[index - 1 : index] if index else ""
    after = text[index + 1 : index + 2]
    if text[index] in ".,:":
        return before.isdecimal() and after.isdecimal()
    return before.isalnum() and after.isalnum()
