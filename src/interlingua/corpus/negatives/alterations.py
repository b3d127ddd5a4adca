"""Alterations of a sentence that change few words and its meaning.

An altered form is made in two steps: regular expressions find the spans that can be changed, and
one of them is drawn and replaced. The functions yield altered forms of a text. They may repeat
forms and may never end, and the caller takes as many forms as it needs. All draws come from the
``random.Random`` that the caller passes.
"""

from __future__ import annotations

import functools
import random
import re
import unicodedata
from collections.abc import Iterator

from interlingua.corpus.negatives.contrasts import Opposites

_Span = tuple[int, int]
JOINERS = "'\u2019\u200c\u200d"
"""Characters inside words that are not letters: apostrophes and the joiners of Persian."""
LONGEST_NUMBER = 18
"""Maximum number of digits in a row that count as a number."""
SWAPS = 64
"""Number of swaps of two words that are tried."""
SHORTEST_WORDS = {"Hang": 2}
"""Minimum characters of a word, by script, for it to be swapped."""
_SHORTEST_WORD = 3
"""The same for every other script."""
_DIGITS = re.compile(r"\d+")
_PIECE = re.compile(r"[^\s\u200b]+")  # Khmer has the zero-width space between words
_HAN = r"\u3400-\u9fff\uf900-\ufaff"
_KATAKANA = r"\u30a1-\u30fa\u30fc"
# Characters that seldom belong to a content word: the text between two of them counts as a word.
_FUNCTION = (
    "的了着是在和与與或及而也都就但把被从從对對向于於以为為有不这"
    "這那其之等个個们們会會要可能很更最并並她他它我你"
)
_CHINESE_RUN = re.compile(rf"(?:(?![{_FUNCTION}])[{_HAN}]){{2,6}}")
_JAPANESE_RUN = re.compile(rf"[{_HAN}]{{2,}}|[{_KATAKANA}]{{2,}}")


def other_numbers(text: str, draw: random.Random) -> Iterator[str]:
    """Yield texts with one number replaced by another, with as many digits of the same script.

    A number that looks like a year keeps its century, and a possible day of a month becomes
    another. A number adjacent to a cased letter (``21st``, ``A4``) is unchanged unless it has four
    digits (``1980s``).
    """
    spans = [span for span in _spans(_DIGITS, text) if _is_number(text, *span)]
    while spans:  # endless, because every number has many alternatives
        start, end = draw.choice(spans)
        yield text[:start] + _other_digits(text[start:end], draw) + text[end:]


def other_phrases(text: str, draw: random.Random, *, opposites: Opposites) -> Iterator[str]:
    """Yield texts with one phrase of a lexicon replaced by its opposite.

    Each possible change occurs once, in drawn order.
    """
    changes: list[tuple[_Span, str]] = []
    for match in opposites.pattern.finditer(text):
        if not opposites.spaced or _is_whole(text, *match.span()):
            # The table's phrases are in lower case with a plain apostrophe.
            key = match[0].replace("\u2019", "'").lower()
            changes += [(match.span(), other) for other in opposites.table.get(key, ())]
    draw.shuffle(changes)
    for (start, end), other in changes:
        yield _put(text, start, end, other)


def other_order(text: str, draw: random.Random, *, script: str) -> Iterator[str]:
    """Yield texts with two non-adjacent words swapped; a sentence's first word stays.

    For Chinese, runs of Han characters between frequent function characters serve as words; for
    Japanese, runs of Han and of katakana do. Thai, Lao, Burmese and Tibetan have spaces between
    phrases, and these are swapped.
    """
    units = word_like(text, script)
    if len(units) < 3:  # there are no two words with another word between them
        return
    for _ in range(SWAPS):
        first, second = sorted(draw.sample(range(len(units)), 2))
        (start, end), (later, last) = units[first], units[second]
        # Swap neither adjacent words nor two occurrences of the same word.
        if second - first > 1 and text[start:end].lower() != text[later:last].lower():
            yield text[:start] + text[later:last] + text[end:later] + text[start:end] + text[last:]


def word_like(text: str, script: str) -> list[_Span]:
    """Return the starts and ends of the spans that ``other_order`` treats as words."""
    if script == "Jpan":
        return _spans(_JAPANESE_RUN, text)
    if script in ("Hans", "Hant"):
        return _spans(_CHINESE_RUN, text)
    least = SHORTEST_WORDS.get(script, _SHORTEST_WORD)
    # Without the sentence's first word, which stays in its place.
    spans = [_without_punctuation(text, *span) for span in _spans(_PIECE, text)][1:]
    return [
        (start, end)
        for start, end in spans
        if end - start >= least and not text[start:end].isdecimal()
    ]


@functools.lru_cache(maxsize=8192)
def in_word(character: str) -> bool:
    """Return whether a character is a letter, a mark that belongs to one, or a digit."""
    return unicodedata.category(character)[0] in "LMN"


def _spans(pattern: re.Pattern[str], text: str) -> list[_Span]:
    return [match.span() for match in pattern.finditer(text)]


def _adjacent_characters(text: str, start: int, end: int) -> str:
    """Return the existing characters before and after a span."""
    return text[max(start - 1, 0) : start] + text[end : end + 1]


def _is_number(text: str, start: int, end: int) -> bool:
    length = end - start
    if length > LONGEST_NUMBER:
        return False
    # A letter with case next to the digits makes them part of a name or an ordinal.
    adjacent = _adjacent_characters(text, start, end)
    in_name = any(character.lower() != character.upper() for character in adjacent)
    return not in_name or length == 4


def _other_digits(digits: str, draw: random.Random) -> str:
    # The decimal digits of every script are ten code points in a row, from its zero on.
    zero = ord(digits[0]) - int(digits[0])
    old = int(digits)
    length = len(digits)
    low = 0
    if int(digits[0]):  # a number without a leading zero gets none
        low = 10 ** (length - 1)
    high = 10**length - 1
    if length == 4 and 1100 <= old <= 2099:
        low = old // 100 * 100
        high = old // 100 * 100 + 99
    elif length == 2 and 10 <= old <= 31:
        high = 31
    new = draw.randrange(low, high)  # one value less than possible, as the old one is skipped
    new += new >= old
    return "".join(chr(zero + int(digit)) for digit in str(new).zfill(length))


def _is_whole(text: str, start: int, end: int) -> bool:
    adjacent = _adjacent_characters(text, start, end)
    return not any(in_word(character) or character in JOINERS for character in adjacent)


def _put(text: str, start: int, end: int, other: str) -> str:
    """Replace a span by ``other``, in the case of the replaced text.

    If ``other`` is empty, the spaces after the span are removed as well.
    """
    found = text[start:end]
    is_capitalized = found[:1].isupper()
    if not other:
        rest = text[end:].lstrip(" ")
        if is_capitalized:
            rest = _capitalized(rest)
        return text[:start] + rest
    if is_capitalized and found.isupper() and len(found) > 1:
        other = other.upper()
    elif is_capitalized:
        other = _capitalized(other)
    return text[:start] + other + text[end:]


def _capitalized(text: str) -> str:
    """Capitalize the first letter; ``str.capitalize`` would lowercase the others."""
    return text[:1].upper() + text[1:]


def _without_punctuation(text: str, start: int, end: int) -> _Span:
    """Return a span without the punctuation at its ends."""
    while start < end and not in_word(text[start]):
        start += 1
    while end > start and not in_word(text[end - 1]):
        end -= 1
    return start, end
