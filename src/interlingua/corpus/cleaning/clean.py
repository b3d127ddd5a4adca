"""Cleaning of sentence pairs: one spelling for the texts, and rules that drop a pair.

Every rule counts the pairs it drops under its name. A chunk of pairs is one array of code points
(``codepoints``), in which letters are counted and weighed by script with numpy; so rules 1 to 7
work on whole chunks, and only rule 8 looks at single texts. The rules, in the order in which they
are tried (a pair is counted under the first that drops it):

1. ``empty``          a side is empty once normalized
2. ``no_letters``     a side has no letter (numbers, punctuation, symbols only)
3. ``identical``      both sides are the same text except for case: an untranslated copy
4. ``too_short``      a side has fewer than ``min_characters``
5. ``too_long``       a side has more than ``max_characters``
6. ``length_ratio``   the sides' lengths disagree by more than ``max_length_ratio``
7. ``wrong_script``   too few letters of a side are in the script of its language
8. ``wrong_language`` (only with ``identify_languages``) a side is clearly in another language
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64, UInt8
from numpy import ndarray

from interlingua.config import Between, CheckedSettings, languages
from interlingua.corpus.cleaning.codepoints import CodePoints, decode
from interlingua.corpus.cleaning.normalize import Markup, normalize_codes
from interlingua.corpus.cleaning.scripts import letter_widths, script_numbers, scripts_of
from interlingua.corpus.formats.bitext import TextPair
from interlingua.errors import ConfigError

_RULES = (
    "empty", "no_letters", "identical", "too_short", "too_long", "length_ratio", "wrong_script",
    "wrong_language",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CleanConfig(CheckedSettings):
    """Settings of cleaning: how it changes texts, and which pairs it drops."""

    markup: Markup = "keep"
    """Tags, entities and format placeholders: kept, stripped, or each written as one symbol."""
    min_characters: Annotated[int, Between(0, 10**9)] = 1
    """Minimum number of characters of each side; otherwise the pair is dropped."""
    max_characters: Annotated[int, Between(0, 10**9)] = 1000
    """Maximum number of characters of each side; otherwise the pair is dropped (the vocabulary
    applies the limit in tokens)."""
    max_length_ratio: Annotated[float, Between(0, 1e6)] = 3.0
    """Maximum ratio of the longer to the shorter side, in characters, after ``length_slack`` is
    added to each; a Chinese character counts as 3 Latin ones, kana and Hangul as 2, Ethiopic as
    1.5. 0 switches the rule off."""
    length_slack: Annotated[float, Between(0, 1e6)] = 15.0
    """Characters added to both sides before the ratio is taken, so that short texts may differ
    more."""
    min_script_share: Annotated[float, Between(0, 1)] = 0.25
    """Minimum share (0 to 1) of a side's letters in the script of its language, where a Chinese
    character again counts as 3; names, acronyms and code may be the rest. 0 switches the rule
    off."""
    drop_identical: bool = True
    """Drop pairs of two equal texts."""
    identify_languages: bool = False
    """Identify languages (by py3langid, the extra ``langid``; about 10,000 texts a second)."""
    min_language_confidence: Annotated[float, Between(0, 1)] = 0.8
    """Minimum probability (0 to 1) of another language for a pair to be dropped; a closely related
    language never causes this."""
    min_identified_letters: Annotated[int, Between(0, 10**9)] = 20
    """Minimum number of letters of a text; shorter texts are not identified."""

    def __post_init__(self) -> None:
        if self.min_characters > self.max_characters:
            raise ConfigError(
                f"min_characters = {self.min_characters} is greater than max_characters ="
                f" {self.max_characters}; choose min_characters <= max_characters"
            )
        if 0 < self.max_length_ratio < 1:
            raise ConfigError(
                "max_length_ratio: expected a ratio of at least 1, or 0 for no rule, found"
                f" {self.max_length_ratio}"
            )


class _SideMeasures(NamedTuple):
    """One side of a chunk, normalized and measured.

    The unit of all measures except ``characters`` is one Latin letter.
    """

    texts: list[str]
    characters: Int64[ndarray, " n"]
    width: Float64[ndarray, " n"]
    letters: Float64[ndarray, " n"]
    in_script: Float64[ndarray, " n"]


class Cleaner:
    """A cleaner that normalizes pairs and drops bad ones.

    Attributes:
        counts: rule name -> pairs it dropped; every rule is there from the start.
    """

    def __init__(self, config: CleanConfig) -> None:
        self.config = config
        self.counts = dict.fromkeys(_RULES, 0)
        self._wrong_language: Callable[[str, str], bool] | None = None
        if self.config.identify_languages:
            from interlingua.corpus.cleaning.identify import LanguageCheck

            self._wrong_language = LanguageCheck(self.config.min_language_confidence).is_wrong

    def clean(self, pairs: Sequence[TextPair]) -> list[TextPair]:
        """Clean a chunk of pairs and return the kept ones, in order."""
        if not pairs:
            return []
        source_languages = [pair.source_language for pair in pairs]
        target_languages = [pair.target_language for pair in pairs]
        source = self._measure([pair.source for pair in pairs], source_languages)
        target = self._measure([pair.target for pair in pairs], target_languages)
        good = np.ones(len(pairs), dtype=bool)
        for rule, dropped in self._broken_rules(source, target):
            # Count a pair only under the first rule that drops it.
            self.counts[rule] += int(np.count_nonzero(good & dropped))
            good &= ~dropped
        normalized = zip(
            source.texts,
            target.texts,
            source_languages,
            target_languages,
            [pair.score for pair in pairs],
            strict=True,
        )
        cleaned = [TextPair(*values) for values in compress(normalized, good)]
        if self._wrong_language is None:
            return cleaned
        in_their_language = [pair for pair in cleaned if not self._has_foreign_side(pair)]
        self.counts["wrong_language"] += len(cleaned) - len(in_their_language)
        return in_their_language

    def _measure(self, texts: list[str], text_languages: list[str]) -> _SideMeasures:
        points = normalize_codes(texts, markup=self.config.markup)
        # Script number of every code point, 0 for characters that are neither letters nor marks.
        # Each script has a width, the number of Latin letters that one of its characters
        # represents.
        numbers = script_numbers()[points.codes]
        widths = letter_widths()[numbers]
        letters = np.where(numbers != 0, widths, 0)
        in_script = np.where(_expected(numbers, points, text_languages), widths, 0)
        return _SideMeasures(
            texts=decode(points.codes).split("\n")[:-1],
            characters=points.spans - 1,  # without the separator
            width=_sums(widths, points) - 1,  # without the width of the separator
            letters=_sums(letters, points),
            in_script=_sums(in_script, points),
        )

    def _broken_rules(
        self, a: _SideMeasures, b: _SideMeasures
    ) -> Iterator[tuple[str, Bool[ndarray, " n"]]]:
        config = self.config
        yield "empty", (a.characters == 0) | (b.characters == 0)
        yield "no_letters", (a.letters == 0) | (b.letters == 0)
        if config.drop_identical:
            texts = zip(a.texts, b.texts, strict=True)
            is_same = (x == y or x.casefold() == y.casefold() for x, y in texts)
            yield "identical", np.fromiter(is_same, bool, len(a.texts))
        yield "too_short", np.minimum(a.characters, b.characters) < config.min_characters
        yield "too_long", np.maximum(a.characters, b.characters) > config.max_characters
        if config.max_length_ratio:
            long = np.maximum(a.width, b.width) + config.length_slack
            short = np.minimum(a.width, b.width) + config.length_slack
            yield "length_ratio", long > config.max_length_ratio * short
        if config.min_script_share:
            wrong_a = a.in_script < config.min_script_share * a.letters
            wrong_b = b.in_script < config.min_script_share * b.letters
            yield "wrong_script", wrong_a | wrong_b

    def _has_foreign_side(self, pair: TextPair) -> bool:
        return self._is_foreign(pair.source, pair.source_language) or self._is_foreign(
            pair.target, pair.target_language
        )

    def _is_foreign(self, text: str, language: str) -> bool:
        # A few words, or a name, are too little evidence of a language.
        assert self._wrong_language is not None
        letters = sum(map(str.isalpha, text))
        return letters >= self.config.min_identified_letters and self._wrong_language(
            text, language
        )


def _sums(widths: Float32[ndarray, " c"], points: CodePoints) -> Float64[ndarray, " n"]:
    return np.asarray(np.add.reduceat(widths, points.starts, dtype=np.float64))


def _expected(
    numbers: UInt8[ndarray, " c"], points: CodePoints, text_languages: list[str]
) -> Bool[ndarray, " c"]:
    """Mark the code points that are in the script of their text's language."""
    known = list(dict.fromkeys(text_languages))
    # Row = language, column = script number: whether the language is written in the script.
    table = np.stack([scripts_of(languages.resolve_language(code).code) for code in known])
    found: Bool[ndarray, " c"]
    if len(known) == 1:  # the common case needs no row number per code point
        found = table[0, numbers]
        return found
    row = {code: number for number, code in enumerate(known)}
    rows = np.fromiter((row[code] for code in text_languages), np.int64, len(text_languages))
    found = table[np.repeat(rows, points.spans), numbers]
    return found
