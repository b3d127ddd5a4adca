"""A glossary: if the source has a term, the target has one of its translations.

Words are compared without case and accents. In the source, the words of a term must be consecutive.
Each of them may differ from the glossary's word only by a short ending (in English, that of a
plural or a possessive). The longest term at a place counts. In the target it is enough that a
prefix of each word of a translation occurs, even inside a compound; the length of the prefix
depends on that of the word. The comparison of the target is lenient, because a false alarm costs a
translator more than a missed inflection. In languages that write no spaces, the term is searched as
it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from interlingua.mining.rules.glossary_file import TermPair, read_glossary
from interlingua.mining.rules.rule import PairRule

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_LEFT_OUT = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0640\u200b-\u200f\u00ad]")
"""Accents, Hebrew and Arabic points, and characters without a form of their own."""
_UNSPACED = frozenset(("jpn", "zho", "cmn", "yue", "tha", "lao", "khm", "mya", "bod"))
_ENDING = 2
"""Letters by which a word of the source may be longer than the glossary's."""
_LONG_ENDING = 4
"""The same in languages with many endings."""
_VOWELS = frozenset("aeiouyаеиоуыэюяіїєьαεηιουω")
_SHORT = 3
"""Maximum number of letters of a word that is compared as a whole."""
_INFLECTED_CODES = (
    "arb ara heb fin hun est tur rus ukr bel pol ces slk slv hrv srp bos mkd bul lit lvs lav ell"
    " kat hye eus kaz aze azj tam tel mal kan mar hin ben"
)
_INFLECTED = frozenset(_INFLECTED_CODES.split())
"""Languages with many endings, or with changes within a word; less of their words has to agree."""


class GlossaryTerms(PairRule):
    """The terms of a glossary are translated as it says."""

    name = "glossary"
    measures = "terms of the source whose translation in the glossary is missing in the target"
    reason = "glossary"
    label = "terms not as in the glossary"

    def __init__(
        self, languages: tuple[str, str], folder: Path | None, limit: float | None = None
    ) -> None:
        super().__init__(languages, folder, limit)
        self.index = _TermIndex((), languages[0])
        self.target_is_unspaced = languages[1][:3] in _UNSPACED
        self.target_share = 0.6 if languages[1][:3] in _INFLECTED else 0.75

    def read(self, path: Path) -> None:
        """Read the terms of both languages; see ``read_glossary``."""
        self.index = _TermIndex(read_glossary(path, self.languages), self.languages[0])

    def differences(self, source: str, target: str) -> list[str]:
        """Return the terms that are not translated as the glossary says."""
        found = self.index.find(source)
        if not found:
            return []
        folded = fold(target)
        return [
            f"{term.source} → {' | '.join(term.targets)} is missing"
            for term in found
            if not any(self._is_in(translation, folded) for translation in term.targets)
        ]

    def _is_in(self, term: str, folded: str) -> bool:
        term = fold(term)
        if term in folded:
            return True
        if self.target_is_unspaced and not term.isascii():
            return "".join(term.split()) in "".join(folded.split())
        words = _WORD.findall(term)
        return bool(words) and all(self._beginning(word) in folded for word in words)

    def _beginning(self, word: str) -> str:
        """Return the letters of a word that every form of it is expected to have."""
        if len(word) <= _SHORT:
            return word
        return word[: max(_SHORT, round(self.target_share * len(word)))]


class _TermIndex:
    """The terms of a glossary by the start of their first word."""

    def __init__(self, terms: Sequence[TermPair], source: str) -> None:
        self.is_unspaced = source[:3] in _UNSPACED
        self.is_english = source[:3] == "eng"
        self.ending = _LONG_ENDING if source[:3] in _INFLECTED else _ENDING
        self.by_beginning: defaultdict[str, list[tuple[list[str], TermPair]]] = defaultdict(list)
        for term in terms:
            folded = fold(term.source)
            words = [folded] if self.is_unspaced else _WORD.findall(folded)
            if words:
                self.by_beginning[words[0][:2]].append((words, term))
        for some in self.by_beginning.values():
            some.sort(key=lambda entry: (len(entry[0]), len(entry[1].source)), reverse=True)

    def find(self, text: str) -> list[TermPair]:
        """Return the terms in a text, each once, the longest at each place."""
        if not self.by_beginning:
            return []
        folded = fold(text)
        found: dict[str, TermPair] = {}
        if self.is_unspaced:
            place = 0
            while place < len(folded):
                term = self._at(folded, place)
                place += 1 if term is None else len(fold(term.source))
                if term is not None:
                    found[term.source] = term
            return list(found.values())
        words = _WORD.findall(folded)
        number = 0
        while number < len(words):
            length = 1
            for term_words, term in self.by_beginning.get(words[number][:2], ()):
                following = words[number : number + len(term_words)]
                if len(following) == len(term_words) and all(
                    map(self._is_form, following, term_words)
                ):
                    found[term.source] = term
                    length = len(term_words)
                    break
            number += length
        return list(found.values())

    def _is_form(self, word: str, term: str) -> bool:
        if self.is_english:
            return _is_english_form(word, term)
        return _is_form(word, term, self.ending)

    def _at(self, folded: str, place: int) -> TermPair | None:
        some = self.by_beginning.get(folded[place : place + 2], ())
        if not some:
            some = self.by_beginning.get(folded[place], ())
        return next((term for words, term in some if folded.startswith(words[0], place)), None)


def fold(text: str) -> str:
    """Return a text without case, compatibility forms, accents and points."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _LEFT_OUT.sub("", decomposed))


def _is_english_form(word: str, term: str) -> bool:
    """Return whether an English word is the term's word, its plural or its possessive."""
    if word == term or word in (f"{term}s", f"{term}es", f"{term}'s", f"{term}’s", f"{term}s'"):
        return True
    return term.endswith("y") and word == f"{term[:-1]}ies"


def _is_form(word: str, term: str, ending: int) -> bool:
    """Return whether a word of a text is the term's word with another ending.

    A final vowel may change (``книга``, ``книги``), and a few letters may follow.
    """
    if word == term or len(term) <= _SHORT:
        return word == term
    stem = term
    if len(term) > _SHORT + 1 and unicodedata.normalize("NFD", term)[-1] in _VOWELS:
        stem = term[:-1]
    return word.startswith(stem) and len(word) - len(term) <= ending
