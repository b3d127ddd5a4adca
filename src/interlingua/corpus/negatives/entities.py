"""Names in a text, found without a model: capitalized words, and a gazetteer of a corpus's names.

In scripts with case, a name is a run of capitalized words. A word does not count if it is only
capitalized as a sentence's first word, or is more often written small. In German and Luxembourgish,
which capitalize nouns, other nouns are included. In other scripts, a name is a capitalized word in
Latin letters, a Japanese name with middle dots, or a Chinese title in brackets; if a language has
none of these, no names are found.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from interlingua.config.languages import resolve_language
from interlingua.corpus.negatives.alterations import in_word

CASED = frozenset({"Latn", "Cyrl", "Grek", "Armn"})
MOST_WORDS = 3
MIN_SAME_ENDING = 5
"""Minimum number of known names with the same ending for a replacement to keep the ending."""
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010\u2011][^\W\d_]+)*")
_KATAKANA = r"[\u30a1-\u30fa\u30fc]+"
_FOREIGN = re.compile(
    rf"[A-Z][A-Za-z]+(?:"
    rf" [A-Z][A-Za-z]+){{0,2}}|{_KATAKANA}(?:[・＝]{_KATAKANA})+|(?<=《)[^《》]{{2,20}}(?=》)"
)


class NameSpan(NamedTuple):
    """Position of a name."""

    start: int
    end: int
    text: str


class _Word(NamedTuple):
    start: int
    end: int
    text: str
    begins: bool
    """Only punctuation precedes it in the sentence, or it follows a full stop, a quote, ..."""


class _Shape(NamedTuple):
    """Properties that a name and its replacement share; an ending often shows grammatical case."""

    words: int
    acronym: bool
    script: str
    ending: str


class Gazetteer:
    """The names of a corpus, each of which may replace another.

    Args:
        texts: all sentences.
        language: language of the sentences.
    """

    def __init__(self, texts: Iterable[str], language: str) -> None:
        self._cased = resolve_language(language).script in CASED
        large: Counter[str] = Counter()
        small: Counter[str] = Counter()
        names: set[str] = set()
        for text in texts:
            if not self._cased:
                names.update(name.text for name in _foreign(text))
                continue
            words = _words(text)
            capitals = [word for word in words if word.text[0].isupper()]
            small.update(word.text for word in words if not word.text[0].isupper())
            if 3 * len(capitals) <= 2 * len(words):  # a headline is no evidence
                # At the start of a sentence, every word has a capital letter.
                inside = [word for word in capitals if not word.begins]
                large.update(word.text for word in inside)
                names.update(name.text for name in _runs(text, inside))
        # A name is written with a capital letter more often than without.
        self._known = {
            word for word, count in large.items() if count > small[word.lower()] and len(word) > 1
        }
        self._names: dict[_Shape, list[str]] = {}
        # Sorted, since the order of a set changes from run to run and names are drawn by place.
        for name in sorted(names):
            if not self._cased or self._known.issuperset(_WORD.findall(name)):
                for shape in _shapes(name):
                    self._names.setdefault(shape, []).append(name)

    def find(self, text: str) -> list[NameSpan]:
        """Return the names in a text."""
        if not self._cased:
            return _foreign(text)
        return _runs(text, [word for word in _words(text) if word.text in self._known])

    def other_names(self, text: str, draw: random.Random) -> Iterator[str]:
        """Yield texts with one name replaced by another of the corpus.

        The other name has as many words as the replaced one and, if there are enough such names,
        the same ending.
        """
        found = self.find(text)
        own_names = {name.text for name in found}
        choices = []
        for name in found:
            others = [other for other in self._similar_names(name.text) if other not in own_names]
            if others:
                choices.append((name, others))
        while choices:
            name, others = draw.choice(choices)
            yield text[: name.start] + draw.choice(others) + text[name.end :]

    def _similar_names(self, name: str) -> list[str]:
        exact, loose = _shapes(name)
        same_ending = self._names.get(exact, [])
        if len(same_ending) >= MIN_SAME_ENDING:
            return same_ending
        return self._names.get(loose, [])


def _shapes(name: str) -> tuple[_Shape, _Shape]:
    """Return the shape of a name with the ending and without."""
    is_acronym = name.isupper() and len(name) > 1
    script = ""
    if name[0] >= "\u30a1":  # katakana, or the Han characters of a title
        script = "Kana"
    shape = _Shape(len(name.split(" ")), is_acronym, script, "")
    return shape._replace(ending=name[-2:].lower()), shape


def _words(text: str) -> list[_Word]:
    words = []
    for match in _WORD.finditer(text):
        before = text[: match.start()].rstrip(" ")[-1:]
        # A new sentence may start after a full stop or a quote, but not after a comma or a word.
        begins = not before or not (before == "," or in_word(before))
        words.append(_Word(*match.span(), match[0], begins))
    return words


def _runs(text: str, words: Sequence[_Word]) -> list[NameSpan]:
    """Join words with one space between them, up to three."""
    runs: list[list[_Word]] = []
    for word in words:
        if runs and len(runs[-1]) < MOST_WORDS and text[runs[-1][-1].end : word.start] == " ":
            runs[-1].append(word)
        else:
            runs.append([word])
    return [NameSpan(run[0].start, run[-1].end, text[run[0].start : run[-1].end]) for run in runs]


def _foreign(text: str) -> list[NameSpan]:
    return [NameSpan(*match.span(), match[0]) for match in _FOREIGN.finditer(text)]
