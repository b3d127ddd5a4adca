"""Cheap checks on mined pairs: what each measures, and from which limit on it rejects a pair."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.corpus.codepoints import encode, join_lines, segment
from interlingua.corpus.dedup import ExactDeduplicator
from interlingua.corpus.identify import LanguageCheck
from interlingua.corpus.keys import text_keys
from interlingua.corpus.scripts import letter_widths, script_numbers, scripts_of
from interlingua.errors import ConfigError
from interlingua.registry import did_you_mean

SLACK = 15.0
"""Letters added to both lengths before their ratio is taken, so that short texts may differ more."""
IDENTIFIED_LETTERS = 20
"""Shorter texts are in no language."""
CONFIDENCE = 0.8
"""Probability that another language must reach."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_GROUPED = re.compile(r"(?<!\d)(\d{1,3})((?:[.,'’٬\u00a0\u202f ]\d{3})+)(?!\d)")
_NUMBER = re.compile(r"\d+")


class Pairs(NamedTuple):
    """Some mined pairs, in the order of their scores.

    Attributes:
        sources: texts.
        targets: texts.
        hubs: see ``hubs_of``.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    hubs: NDArray[np.number]


class Rule(NamedTuple):
    """A check.

    Attributes:
        measures: the column in words.
        reason: why a pair is rejected.
        limit: from which on a pair is rejected, unless another is given.
        above: whether values above the limit are rejected (or at it, for counts), or those below.
    """

    measures: str
    reason: str
    limit: float
    above: bool

    def rejects(self, values: Float64[ndarray, " n"], limit: float) -> Bool[ndarray, " n"]:
        """Which values are beyond the limit."""
        return np.asarray(values >= limit if self.above else values < limit)


RULES: Mapping[str, Rule] = {
    "language": Rule("sides in another language than theirs, 0 to 2", "another language", 1, True),
    "script": Rule("share of letters in the language's script, of the worse side", "wrong script", 0.5, False),
    "length": Rule("ratio of the longer to the shorter side", "lengths differ", 3, True),
    "copied": Rule("share of the words of the side with fewer that stand in the other too", "copied text", 0.7, True),
    "numbers": Rule("share of the numbers of both sides that agree; 1 without numbers", "numbers differ", 0.5, False),
    "duplicate": Rule("sides that a better pair has but for case and punctuation, 0 to 2", "duplicate", 2, True),
    "hub": Rule("texts of the other side, were both of one size, that have one of these for nearest", "hub", 20, True),
}
OF_A_PAIR = ("language", "script", "length", "copied", "numbers")
"""Checks that look at nothing but the pair."""
CHEAP = tuple(name for name in RULES if name != "language")
"""All that need no further package."""
DROPPED = "script,length,copied,duplicate,hub"
"""What rejects a pair unless other checks are named."""


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What is measured, and what rejects a pair.

    Attributes:
        columns: checks that are measured.
        limits: checks that reject, each with its limit.
    """

    columns: tuple[str, ...]
    limits: Mapping[str, float]

    @classmethod
    def parse(cls, columns: str, rejecting: str) -> CheckPlan:
        """From lists with commas.

        Args:
            columns: names, ``all`` for every one; those that reject are measured anyway.
            rejecting: names with or without a limit, ``length=2.5,script``; ``none`` or nothing for none.

        Raises:
            ConfigError: there is no such check, or a limit is no number.
        """
        limits: dict[str, float] = {}
        for part in _split(rejecting):
            name, equals, limit = (piece.strip() for piece in part.partition("="))
            _known(name)
            try:
                limits[name] = float(limit) if equals else RULES[name].limit
            except ValueError:
                limits[name] = math.nan
            if math.isnan(limits[name]):
                raise ConfigError(f"the limit of {name!r} is {limit!r}, expected a number, e.g. length=3")
        wanted = list(RULES) if columns.strip() == "all" else _split(columns)
        for name in wanted:
            _known(name)
        return cls(tuple(name for name in RULES if name in wanted or name in limits), limits)


class Checker:
    """Measures pairs that come by descending score, some at a time.

    Args:
        plan: what to measure.
        source_language: a code.
        target_language: a code.
        folder: for what is remembered of earlier pairs.
    """

    def __init__(self, plan: CheckPlan, source_language: str, target_language: str, folder: Path) -> None:
        self.plan = plan
        self.languages = (source_language, target_language)
        self._seen = tuple(ExactDeduplicator(folder / f"seen-{side}") for side in "xy")
        self._identified = LanguageCheck(CONFIDENCE) if "language" in plan.columns else None
        self._measures: dict[str, Callable[[Pairs], Float64[ndarray, " n"]]] = {
            "language": self._foreign,
            "script": lambda pairs: np.minimum(*(_script_shares(*one) for one in self._sides(pairs))),
            "length": lambda pairs: length_ratios(pairs.sources, pairs.targets),
            "copied": lambda pairs: _each(copied_share, pairs),
            "numbers": lambda pairs: _each(number_agreement, pairs),
            "duplicate": self._duplicates,
            "hub": lambda pairs: np.asarray(pairs.hubs, dtype=np.float64),
        }

    def measure(self, pairs: Pairs) -> dict[str, Float64[ndarray, " n"]]:
        """The columns of some pairs; one that another check rejects makes no later one a duplicate."""
        columns = {name: self._measures[name](pairs) for name in self.plan.columns if name != "duplicate"}
        if "duplicate" in self.plan.columns:
            kept = ~self._any(columns, len(pairs.sources))
            texts = [list(itertools.compress(side, kept)) for side in (pairs.sources, pairs.targets)]
            columns["duplicate"] = np.zeros(len(kept))
            columns["duplicate"][kept] = self._duplicates(Pairs(texts[0], texts[1], pairs.hubs[kept]))
        return {name: columns[name] for name in self.plan.columns}

    def rejected(self, columns: Mapping[str, Float64[ndarray, " n"]]) -> dict[str, Bool[ndarray, " n"]]:
        """Which pairs each check rejects, of those that were measured."""
        limits = {name: limit for name, limit in self.plan.limits.items() if name in columns}
        return {name: RULES[name].rejects(columns[name], limit) for name, limit in limits.items()}

    def refuses(self, sources: Sequence[str], targets: Sequence[str]) -> Bool[ndarray, " n"]:
        """Which pairs are rejected for what they are, whatever other pairs there are."""
        pairs = Pairs(sources, targets, np.zeros(len(sources), np.int64))
        wanted = [name for name in OF_A_PAIR if name in self.plan.limits]
        return self._any({name: self._measures[name](pairs) for name in wanted}, len(sources))

    def _any(self, columns: Mapping[str, Float64[ndarray, " n"]], size: int) -> Bool[ndarray, " n"]:
        marks = np.zeros(size, bool)
        for rejected in self.rejected(columns).values():
            marks |= rejected
        return marks

    def _sides(self, pairs: Pairs) -> list[tuple[Sequence[str], str]]:
        return list(zip((pairs.sources, pairs.targets), self.languages, strict=True))

    def _foreign(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        assert self._identified is not None
        wrong = np.zeros(len(pairs.sources))
        for texts, language in self._sides(pairs):
            if not language:  # of texts in memory, where none was given
                continue
            wrong += [
                sum(map(str.isalpha, text)) >= IDENTIFIED_LETTERS and self._identified.is_wrong(text, language)
                for text in texts
            ]
        return wrong

    def _duplicates(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        sides = zip(self._seen, (pairs.sources, pairs.targets), strict=True)
        return np.asarray(sum((~seen.first_seen(text_keys(texts)) for seen, texts in sides), np.zeros(len(pairs.hubs))))


def hubs_of(hub_x: NDArray[np.integer], hub_y: NDArray[np.integer], n: int, m: int) -> Float64[ndarray, " pairs"]:
    """How many texts of the other side have one of a pair for their nearest; the larger of the two.

    Args:
        hub_x: of each pair's source, the texts of the other side that have it for nearest.
        hub_y: the same of its target.
        n: texts of the sources' side.
        m: texts of the other; where it is the longer, a source is the nearest of ``m / n`` by mere equal shares, which
            count as one.
    """
    return np.asarray(np.maximum(hub_x / max(1.0, m / n), hub_y / max(1.0, n / m)), dtype=np.float64)


def length_ratios(sources: Sequence[str], targets: Sequence[str]) -> Float64[ndarray, " n"]:
    """How much longer the longer side is, in letters' worth: a Chinese character counts as three Latin letters."""
    widths = [SLACK + _sums(letter_widths(), texts) for texts in (sources, targets)]
    return np.asarray(np.maximum(*widths) / np.minimum(*widths))


def copied_share(source: str, target: str) -> float:
    """Share of the words (3 letters or more) of the side with fewer that stand in the other too; 1 for equal texts."""
    if source.casefold() == target.casefold():
        return 1.0
    words = [Counter(_WORD.findall(text.casefold())) for text in (source, target)]
    fewest = min(counts.total() for counts in words)
    return (words[0] & words[1]).total() / fewest if fewest > 2 else 0.0


def number_agreement(source: str, target: str) -> float:
    """Share of the numbers of both sides that agree, in the digits of any script; 1 where neither has any.

    Groups of three digits are one number (``1,000``, ``1.000``, ``1 000``); at other signs a number ends, so that
    ``3.5`` and ``3,5`` agree, and ``12.05.`` and ``05/12`` do. Zeros in front don't count.
    """
    found = [Counter(numbers(text)) for text in (source, target)]
    either = (found[0] | found[1]).total()
    return (found[0] & found[1]).total() / either if either else 1.0


def numbers(text: str) -> list[str]:
    """The numbers in a text, in ASCII digits."""
    if not any(map(str.isdecimal, text)):
        return []
    plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    whole = _GROUPED.sub(lambda match: match[1] + re.sub(r"\D", "", match[2]), plain)
    return [run.lstrip("0") or "0" for run in _NUMBER.findall(whole)]


def _script_shares(texts: Sequence[str], language: str) -> Float64[ndarray, " n"]:
    """Share of each text's letters, in Latin letters' worth, in a script of the language; 1 where there are none.

    A number ("2.2.") is in every script: what there is to say against it the other checks say.
    """
    widths = letter_widths().copy()
    expected = scripts_of(language)
    widths[0] = 0
    letters = _sums(widths, texts)
    own = _sums(np.where(expected, widths, 0), texts)
    return np.where(letters > 0, own / np.maximum(letters, 1e-9), 1.0)


def _sums(widths: NDArray[np.floating], texts: Sequence[str]) -> Float64[ndarray, " n"]:
    """Sum of what each text's characters are worth by their script; the line feed behind it left out."""
    if not len(texts):
        return np.zeros(0)
    points = segment(encode(join_lines(texts)))
    worth = widths[script_numbers()[points.codes]]
    worth[np.append(points.starts[1:] - 1, len(points.codes) - 1)] = 0
    return np.asarray(np.add.reduceat(worth, points.starts, dtype=np.float64))


def _each(measure: Callable[[str, str], float], pairs: Pairs) -> Float64[ndarray, " n"]:
    return np.array([measure(*pair) for pair in zip(pairs.sources, pairs.targets, strict=True)], dtype=np.float64)


def _split(names: str) -> list[str]:
    return [part.strip() for part in names.split(",") if part.strip() and part.strip() != "none"]


def _known(name: str) -> None:
    if name not in RULES:
        raise ConfigError(f"unknown check {name!r}{did_you_mean(name, RULES)}")
