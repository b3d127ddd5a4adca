"""Cheap checks on mined pairs: the measure of each, and the limit at which it rejects a pair.

A check is a class with ``score(pairs)`` and ``accept(scores)``. A ``CheckPlan`` names the checks of
a run, those of other packages as ``package.module:Class``, and a ``Checker`` holds one object of
each.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.config.registry import CHECKS, resolve_name
from interlingua.corpus.cleaning.codepoints import encode_codepoints, find_text_bounds, join_lines
from interlingua.corpus.cleaning.dedup import ExactDeduplicator
from interlingua.corpus.cleaning.identify import LanguageCheck
from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.cleaning.scripts import letter_widths, script_numbers, scripts_of
from interlingua.errors import ConfigError, MissingExtraError, require_extra
from interlingua.mining.defaults import GLOSSARY

SLACK = 15.0
"""Letters added to both lengths before their ratio is taken, so that short texts may differ
more."""
IDENTIFIED_LETTERS = 20
"""Minimum number of letters; the language of shorter texts is not identified."""
CONFIDENCE = 0.8
"""Probability that another language must reach."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_GROUPED = re.compile(r"(?<!\d)(\d{1,3})((?:[.,'’٬\u00a0\u202f ]\d{3})+)(?!\d)")
"""A number in groups of three digits, separated by any of the signs that languages use."""
_INDIAN = re.compile(r"(?<![\d,.])(\d{1,2}(?:,\d{2})+,\d{3})(?![\d])")
"""A number in the groups of India, ``12,34,567``."""
_MYRIADS = re.compile(r"(\d+)(?:[.](\d+))?\s?([万萬만億亿억])(?![\d〇零一二三四五六七八九])")
"""A number in units of 10^4 or 10^8: ``3.5万``."""
_ZEROS = {"万": 4, "萬": 4, "만": 4, "億": 8, "亿": 8, "억": 8}
_NUMBER = re.compile(r"\d+")
_DIGIT = re.compile(r"\d")
ONE_SIDED = 0.5
"""Agreement of numbers where only one side has any: the other may have them in words."""


class Pairs(NamedTuple):
    """Some mined pairs, in the order of their scores.

    Attributes:
        sources: texts.
        targets: texts.
        hubs: see ``hubs_of``.
        fields: further values of each pair in the file, by name; empty if there are none.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    hubs: NDArray[np.number]
    fields: Sequence[Mapping[str, Any]] = ()


class Check:
    """A measure of mined pairs, and the values of it that are accepted.

    A user's own check is a subclass that has the method ``score``. The subclass is named as
    ``package.module:Class``. An object of it sees the pairs of one run, in the order of their
    scores.

    Attributes:
        name: of its column.
        measures: the column in words.
        reason: why a pair is rejected.
        label: of a value on the page of samples; default: the name.
        unit: of a value on that page: ``%`` for shares, ``ratio``, or nothing.
        default_limit: value from which a pair is rejected by default.
        is_upper_limit: True if values at the limit and above are rejected, False if values below it
            are rejected.
        is_of_pair: whether it depends only on the pair, so that a rejected pair can be excluded
            before the retrieval.
        needs_fields: whether it depends on further values of a pair in the file.

    Args:
        languages: codes of source and target; empty where none is known.
        folder: for records of earlier pairs; None = in memory.
        limit: in place of the default one.
    """

    name: ClassVar[str]
    measures: ClassVar[str] = ""
    reason: ClassVar[str] = ""
    label: ClassVar[str] = ""
    unit: ClassVar[str] = ""
    default_limit: ClassVar[float]
    is_upper_limit: ClassVar[bool] = True
    is_of_pair: ClassVar[bool] = True
    needs_fields: ClassVar[bool] = False

    def __init__(
        self, languages: tuple[str, str], folder: Path | None, limit: float | None = None
    ) -> None:
        self.languages = languages
        self.folder = folder
        if limit is None:
            limit = self.default_limit
        self.limit = limit

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Compute a value for each pair."""
        raise NotImplementedError

    def accept(self, scores: Float64[ndarray, " n"]) -> Bool[ndarray, " n"]:
        """Return which values are within the limit."""
        # The comparisons are negated, so that NaN is within any limit.
        if self.is_upper_limit:
            return np.asarray(~(scores >= self.limit))
        return np.asarray(~(scores < self.limit))

    def explain(self, source: str, target: str) -> str:
        """Describe the fault of a pair in addition to ``reason``; return no text by default."""
        return ""


class LanguageIdentified(Check):
    """Each side is in its language, as identified."""

    name = "language"
    measures = "sides in another language than theirs, 0 to 2"
    reason = "another language"
    label = "sides in another language"
    default_limit = 1

    def __init__(
        self, languages: tuple[str, str], folder: Path | None, limit: float | None = None
    ) -> None:
        super().__init__(languages, folder, limit)
        self.identifier = LanguageCheck(CONFIDENCE)

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Count the sides in another language than expected; ignore short texts."""
        wrong: Float64[ndarray, " n"] = np.zeros(len(pairs.sources))
        for texts, language in zip((pairs.sources, pairs.targets), self.languages, strict=True):
            # Texts in memory may come without a language.
            if language:
                wrong += [self._is_wrong(text, language) for text in texts]
        return wrong

    def _is_wrong(self, text: str, language: str) -> bool:
        letters = sum(map(str.isalpha, text))
        return letters >= IDENTIFIED_LETTERS and self.identifier.is_wrong(text, language)


class ScriptShare(Check):
    """The letters of each side are in a script of its language."""

    name = "script"
    measures = "share of letters in the language's script, of the worse side"
    reason = "wrong script"
    label = "letters in the right script"
    unit = "%"
    default_limit = 0.5
    is_upper_limit = False

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Compute the share of letters in the language's script, of the worse side."""
        source = _script_shares(pairs.sources, self.languages[0])
        target = _script_shares(pairs.targets, self.languages[1])
        return np.asarray(np.minimum(source, target))


class LengthRatio(Check):
    """Both sides are of similar length."""

    name = "length"
    measures = "ratio of the longer to the shorter side"
    reason = "lengths differ"
    label = "longer : shorter side"
    unit = "ratio"
    default_limit = 3

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Compute the ratio of the lengths of each pair."""
        return length_ratios(pairs.sources, pairs.targets)


class EmptySide(Check):
    """Neither side is nearly empty."""

    name = "empty"
    measures = "letters and digits of the larger side plus 1, divided by those of the other side"
    reason = "hardly any text"
    label = "letters per letter of the other side"
    unit = "ratio"
    default_limit = 10

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Return ``empty_ratios``."""
        return empty_ratios(pairs.sources, pairs.targets)


class CopiedWords(Check):
    """One side is not a copy of the other."""

    name = "copied"
    measures = "on the side with fewer words, share of the words that the other side also has"
    reason = "copied text"
    label = "words copied"
    unit = "%"
    default_limit = 0.7

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Compute the share of copied text of each pair."""
        shares = map(copied_share, pairs.sources, pairs.targets)
        return np.fromiter(shares, np.float64, len(pairs.sources))


class NumbersAgree(Check):
    """The same numbers occur on both sides."""

    name = "numbers"
    measures = "share of the numbers that agree; 1 if there are none, 0.5 if only one side has any"
    reason = "numbers differ"
    label = "numbers that agree"
    unit = "%"
    default_limit = 0.5
    is_upper_limit = False

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Compute the agreement of the numbers of each pair."""
        shares = map(number_agreement, pairs.sources, pairs.targets)
        return np.fromiter(shares, np.float64, len(pairs.sources))


class DuplicateSides(Check):
    """No better pair has the same sides."""

    name = "duplicate"
    measures = (
        "sides that a better pair also has, apart from case and punctuation (the signs of numbers"
        " count), 0 to 2"
    )
    reason = "duplicate"
    label = "sides seen before"
    default_limit = 2
    is_of_pair = False

    def __init__(
        self, languages: tuple[str, str], folder: Path | None, limit: float | None = None
    ) -> None:
        super().__init__(languages, folder, limit)
        places = (None, None) if folder is None else (folder / "seen-x", folder / "seen-y")
        self.sources = ExactDeduplicator(places[0])
        self.targets = ExactDeduplicator(places[1])

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Count the sides of each pair that a better pair has, too."""
        # The better pair comes first, as pairs come by descending score.
        seen: Float64[ndarray, " n"] = np.zeros(len(pairs.sources))
        seen += ~self.sources.first_seen(text_keys(pairs.sources))
        seen += ~self.targets.first_seen(text_keys(pairs.targets))
        return seen


class Hubness(Check):
    """Neither side is the nearest of many texts."""

    name = "hub"
    measures = "texts that have one side as their nearest, scaled to corpora of equal size"
    reason = "hub"
    label = "texts that have one side as their nearest"
    default_limit = 20
    is_of_pair = False

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Return the larger number of texts that have a side of each pair as their nearest."""
        return np.asarray(pairs.hubs, dtype=np.float64)


def find_check(name: str) -> type[Check]:
    """Return the class of a check: a name of ``registry.CHECKS``, or ``package.module:Class``.

    Raises:
        ConfigError: there is no such check.
    """
    found: type[Check] = resolve_name(CHECKS, name)
    return found


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """Plan of the checks to measure and of those that reject a pair.

    Attributes:
        columns: checks that are measured, each as ``find_check`` takes it.
        limits: checks that reject, each with its limit.
        glossary: file of the terms; None = there is none.
        left_out: checks that ``all`` leaves out, each with the reason.
        requested: columns of the checks that are requested by name or by ``all``, without those
            that are measured only because they reject.
    """

    columns: tuple[str, ...]
    limits: Mapping[str, float]
    glossary: Path | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    requested: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls,
        columns: str,
        rejecting: str,
        glossary: Path | None = None,
        *,
        without: Mapping[str, str] | None = None,
    ) -> CheckPlan:
        """Parse a plan from comma-separated lists.

        Args:
            columns: names, or ``all`` for every built-in check that can run; checks that reject are
                measured in any case.
            rejecting: names with or without a limit, ``length=2.5,script``; ``none`` or an empty
                text if no check rejects.
            glossary: file of the terms; with it, the check of terms is measured too.
            without: further checks that ``all`` leaves out, each with the reason.

        Raises:
            ConfigError: there is no such check, a limit is not a number, or terms are to be checked
                without a glossary.
        """
        limits: dict[str, float] = {}
        for part in _split(rejecting):
            name, equals, limit = (piece.strip() for piece in part.partition("="))
            limits[name] = find_check(name).default_limit
            if equals:
                limits[name] = _number(name, limit)
        requested = _split(columns)
        left_out: dict[str, str] = {}
        if columns.strip() == "all":
            left_out = _left_out_of_all(glossary, limits) | dict(without or {})
            requested = [name for name in CHECKS if name not in left_out]
        by_name = frozenset(requested)
        if glossary is not None:
            requested.append(GLOSSARY)
        elif GLOSSARY in requested or GLOSSARY in limits:
            raise ConfigError("the check glossary requires --glossary (a file of terms)")
        # A name that is unknown is refused here, and not when the first pairs are measured.
        for name in requested:
            find_check(name)
        # Columns have a fixed order, independent of the order of names: built-in ones first.
        known = [name for name in CHECKS if name in requested or name in limits]
        others = [name for name in dict.fromkeys([*requested, *limits]) if name not in CHECKS]
        measured = (*known, *others)
        by_request = tuple(find_check(name).name for name in measured if name in by_name)
        return cls(measured, limits, glossary, left_out, by_request)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the checks that are measured."""
        return tuple(find_check(name).name for name in self.columns)

    def lines(self) -> list[str]:
        """Return a line on the checks that ``all`` leaves out, or none."""
        if not self.left_out:
            return []
        reasons = ", ".join(f"{name} ({reason})" for name, reason in self.left_out.items())
        return [f"left out of --check all: {reasons}"]


def _left_out_of_all(glossary: Path | None, limits: Mapping[str, float]) -> dict[str, str]:
    """Return the checks that cannot run here unless they are named, each with the reason."""
    found = {}
    if glossary is None and GLOSSARY not in limits:
        found[GLOSSARY] = "needs --glossary"
    if "language" not in limits:
        try:
            require_extra("py3langid", extra="langid")
        except MissingExtraError as error:
            found["language"] = str(error)
    return found


NO_CHECKS = CheckPlan((), {})
"""Plan that measures and rejects nothing."""


class Checker:
    """The checks of a run, which measure pairs that come by descending score, some at a time.

    Args:
        plan: of the checks.
        languages: codes of source and target.
        folder: for records of earlier pairs; None = in memory.
    """

    def __init__(self, plan: CheckPlan, languages: tuple[str, str], folder: Path | None) -> None:
        checks = {
            name: find_check(name)(languages, folder, plan.limits.get(name))
            for name in plan.columns
        }
        # Terms are read before the work, so that a mistake in the file wastes no work.
        if plan.glossary is not None:
            terms: Any = checks[GLOSSARY]
            terms.read(plan.glossary)
        self.checks = list(checks.values())
        self.rejecting = [checks[name] for name in plan.limits]
        self.needs_fields = any(check.needs_fields for check in self.checks)

    def measure(self, pairs: Pairs) -> dict[str, Float64[ndarray, " n"]]:
        """Compute the columns of some pairs.

        The check of duplicates ignores pairs that another check rejects.
        """
        columns: dict[str, Float64[ndarray, " n"]] = {}
        # The check of duplicates runs after all others, but its column keeps its position.
        for check in self.checks:
            columns[check.name] = np.zeros(len(pairs.sources))
            if not isinstance(check, DuplicateSides):
                columns[check.name] = check.score(pairs)
        for check in self.checks:
            if isinstance(check, DuplicateSides):
                kept = self._kept(columns, len(pairs.sources))
                sources = list(itertools.compress(pairs.sources, kept))
                targets = list(itertools.compress(pairs.targets, kept))
                columns[check.name][kept] = check.score(Pairs(sources, targets, pairs.hubs[kept]))
        return columns

    def rejected(
        self, columns: Mapping[str, Float64[ndarray, " n"]]
    ) -> dict[str, Bool[ndarray, " n"]]:
        """Return which pairs each check rejects, by its reason."""
        return {
            check.reason or check.name: ~check.accept(columns[check.name])
            for check in self.rejecting
        }

    def findings(
        self, columns: Mapping[str, Float64[ndarray, " n"]]
    ) -> dict[str, Bool[ndarray, " n"]]:
        """Return, by name of check, the pairs beyond its limit, even if it does not reject them."""
        return {check.name: ~check.accept(columns[check.name]) for check in self.checks}

    def explain(self, name: str, source: str, target: str) -> str:
        """Return a description of the fault that a check finds in a pair."""
        details = self._named(name).explain(source, target)
        if not details:
            return self.reason_of(name)
        return f"{self.reason_of(name)}: {details}"

    def reason_of(self, name: str) -> str:
        """Return the reason of a check that is measured."""
        check = self._named(name)
        return check.reason or check.name

    def _named(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    def refuses(self, sources: Sequence[str], targets: Sequence[str]) -> Bool[ndarray, " n"]:
        """Return which pairs are rejected by themselves, independently of the other pairs."""
        pairs = Pairs(sources, targets, np.zeros(len(sources), np.int64))
        marks = np.zeros(len(sources), bool)
        for check in self.rejecting:
            if check.is_of_pair:
                marks |= ~check.accept(check.score(pairs))
        return marks

    def _kept(
        self, columns: Mapping[str, Float64[ndarray, " n"]], size: int
    ) -> Bool[ndarray, " n"]:
        """Return which pairs no check rejects; the check of duplicates does not count."""
        marks = np.ones(size, bool)
        for check in self.rejecting:
            if not isinstance(check, DuplicateSides):
                marks &= check.accept(columns[check.name])
        return marks


def hubs_of(
    hub_x: NDArray[np.integer], hub_y: NDArray[np.integer], n: int, m: int
) -> Float64[ndarray, " pairs"]:
    """Count the texts that have a pair's source or target as their nearest; return the larger.

    Args:
        hub_x: for each pair's source, the number of targets that have it as their nearest.
        hub_y: the same for its target, counted over the sources.
        n: texts of the sources' side.
        m: texts of the targets' side. If this side has more texts, a source is the nearest of
            ``m / n`` texts on average, so ``hub_x`` is divided by ``m / n``.
    """
    source_hubs = hub_x / max(1.0, m / n)
    target_hubs = hub_y / max(1.0, n / m)
    return np.asarray(np.maximum(source_hubs, target_hubs), dtype=np.float64)


def length_ratios(sources: Sequence[str], targets: Sequence[str]) -> Float64[ndarray, " n"]:
    """Compute how much longer the longer side is, in equivalents of Latin letters.

    A Chinese character counts as three Latin letters.
    """
    lengths = [SLACK + _sums(letter_widths(), texts) for texts in (sources, targets)]
    return np.asarray(np.maximum(*lengths) / np.minimum(*lengths))


def empty_ratios(sources: Sequence[str], targets: Sequence[str]) -> Float64[ndarray, " n"]:
    """Compare the letters and digits of both sides, in equivalents of Latin letters.

    The value is (a + 1) / max(b, 0.1) for the larger count a and the smaller count b. It is at
    least 10 if a side has neither letter nor digit. For longer texts ``length_ratios`` rejects
    sooner.
    """
    counts = [_letters_and_digits(texts) for texts in (sources, targets)]
    return np.asarray((np.maximum(*counts) + 1) / np.maximum(np.minimum(*counts), 0.1))


def _letters_and_digits(texts: Sequence[str]) -> Float64[ndarray, " n"]:
    """Count the letters of each text, in equivalents of Latin letters, and its digits."""
    widths = letter_widths().copy()
    # Script 0 holds digits, and spaces and signs, which do not count.
    widths[0] = 0
    digits = np.array([len(_DIGIT.findall(text)) for text in texts], np.float64)
    return np.asarray(_sums(widths, texts) + digits)


def copied_share(source: str, target: str) -> float:
    """Compute the share of the shorter side's words that the other side also contains.

    Only words of 3 letters or more count, and the shorter side is the one with fewer of them. The
    share is 1 for equal texts with a letter; equal texts without a letter, such as numbers, are
    valid translations. Otherwise it is 0 if a side has two words or fewer.
    """
    if source.casefold() == target.casefold():
        return float(any(map(str.isalpha, source)))
    words = [Counter(_WORD.findall(text.casefold())) for text in (source, target)]
    fewest = min(counts.total() for counts in words)
    # A name or two that occur on both sides are not a copy.
    if fewest <= 2:
        return 0.0
    return (words[0] & words[1]).total() / fewest


def number_agreement(source: str, target: str) -> float:
    """Compute the share of the numbers of both sides that agree, in the digits of any script.

    It is 1 if neither side has a number, and ``ONE_SIDED`` if only one side has any: the other side
    may spell them out. Groups of three digits are one number (``1,000``, ``1.000``, ``1 000``). Any
    other sign between digits separates two numbers, so that ``3.5`` agrees with ``3,5``, and
    ``12.05.`` with ``05/12``.
    Leading zeros are ignored. If both texts have no letter, such as dates and versions, all numbers
    have to agree; otherwise the share is 0.
    """
    found = [Counter(numbers(text)) for text in (source, target)]
    # Union and intersection of multisets: a number that occurs twice has to agree twice.
    either = (found[0] | found[1]).total()
    if not either:
        return 1.0
    if not (found[0] and found[1]):
        return ONE_SIDED
    if found[0] != found[1] and not any(map(str.isalpha, source + target)):
        return 0.0
    return (found[0] & found[1]).total() / either


def numbers(text: str) -> list[str]:
    """Return the numbers in a text, in ASCII digits."""
    if not any(map(str.isdecimal, text)):
        return []
    plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    if "," in plain:
        plain = _INDIAN.sub(lambda match: match[1].replace(",", ""), plain)
    whole = _GROUPED.sub(lambda match: match[1] + re.sub(r"\D", "", match[2]), plain)
    if not whole.isascii():
        whole = _MYRIADS.sub(_without_myriads, whole)
    return [run.lstrip("0") or "0" for run in _NUMBER.findall(whole)]


def _without_myriads(match: re.Match[str]) -> str:
    """Return the value of a run of digits with a unit of 10^4 or 10^8."""
    decimals = match[2] or ""
    zeros = _ZEROS[match[3]] - len(decimals)
    if zeros < 0:
        return match[0]
    return f"{match[1]}{decimals}{'0' * zeros}"


def _script_shares(texts: Sequence[str], language: str) -> Float64[ndarray, " n"]:
    """Compute the share of each text in a script of the language, in equivalents of Latin letters.

    It is 1 for a text without letters: a number ("2.2.") is valid in every script, and other checks
    cover such texts.
    """
    # Script 0 contains characters of no script: digits, signs, spaces.
    widths = letter_widths().copy()
    expected = scripts_of(language)
    widths[0] = 0
    letters = _sums(widths, texts)
    own = _sums(np.where(expected, widths, 0), texts)
    return np.where(letters > 0, own / np.maximum(letters, 1e-9), 1.0)


def _sums(widths: NDArray[np.floating], texts: Sequence[str]) -> Float64[ndarray, " n"]:
    """Sum the widths of each text's characters; the script of a character determines its width."""
    if not len(texts):
        return np.zeros(0)
    # All texts at once, a line each: a loop over characters in Python would be far slower.
    points = find_text_bounds(encode_codepoints(join_lines(texts)))
    worth = widths[script_numbers()[points.codes]]
    # The last character of each line is its line feed.
    worth[np.append(points.starts[1:] - 1, len(points.codes) - 1)] = 0
    return np.asarray(np.add.reduceat(worth, points.starts, dtype=np.float64))


def _split(names: str) -> list[str]:
    """Split names at commas; ``none`` is not a name."""
    return [part.strip() for part in names.split(",") if part.strip() and part.strip() != "none"]


def _number(name: str, limit: str) -> float:
    """Parse the limit of a check."""
    try:
        found = float(limit)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise ConfigError(
            f"the limit of {name!r}: expected a number, found {limit!r}; write for example length=3"
        )
    return found
