"""A stream of pairs or of texts, counted and sampled as it passes, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.cleaning.dedup import ExactDeduplicator
from interlingua.corpus.cleaning.keys import EMPTY_KEY, combine_keys
from interlingua.corpus.formats.bitext import TextPair, pair_fields
from interlingua.corpus.inspection.counts import Order, RatioCounts, SideCounts, copies_of
from interlingua.corpus.inspection.faults import Sampled
from interlingua.corpus.inspection.misalignment import SlipFinder
from interlingua.corpus.samples.reservoir import reservoir
from interlingua.errors import DataError
from interlingua.runtime.portions import portions
from interlingua.runtime.progress import SILENT, Progress

T = TypeVar("T")
_SAMPLE = 20_000
"""Number of units, from all parts of the file, that show languages and character sets."""
_AT_ONCE = 8192
_SAMPLED_CHARACTERS = 1000
"""Maximum characters of a text in the sample, so that endless lines do not fill the memory."""
_SORT_OF_SCORES = 0.98


@dataclass
class StreamCounts:
    """Counts and a sample of a stream.

    Attributes:
        sides: of source and target, or of texts only.
        units: pairs or texts.
        languages: pairs by languages of source and target.
        columns: names of further values of the pairs.
        duplicates: pairs that occurred before.
        copies: pairs with one text on both sides.
        first_copy: number of the first of these.
        overlap: units with a side in an evaluation set, by the name of the set.
        sample: units in the order of the file.
        first: the first unit, which need not be in the sample.
        failure: the error that ended the stream early.
    """

    sides: list[SideCounts]
    units: int = 0
    languages: Counter[tuple[str, str]] = field(default_factory=Counter)
    columns: tuple[str, ...] = ()
    duplicates: int = 0
    copies: int = 0
    first_copy: int | None = None
    overlap: dict[str, int] = field(default_factory=dict)
    sample: list[Sampled] = field(default_factory=list)
    first: Sampled | None = None
    ratios: RatioCounts = field(default_factory=RatioCounts)
    scores: Order = field(default_factory=lambda: Order(_SORT_OF_SCORES))
    slips: SlipFinder = field(default_factory=SlipFinder)
    failure: DataError | None = None


def count_pairs_of(
    pairs: Iterable[TextPair],
    folder: Path,
    evaluation: EvaluationKeys | None = None,
    progress: Progress = SILENT,
) -> StreamCounts:
    """Count and sample a stream of pairs.

    Args:
        pairs: read once, to the end or up to an error.
        folder: for the keys of duplicates.
        evaluation: sentences of evaluation sets.
        progress: counts the pairs.
    """
    found = StreamCounts([SideCounts(folder / "source"), SideCounts(folder / "target")])
    seen = ExactDeduplicator(folder / "pairs")

    def counted() -> Iterator[Sampled]:
        for portion in portions(_until_failure(pairs, found), _AT_ONCE):
            start = found.units
            if found.first is None:
                found.first = Sampled(1, portion[0][0], portion[0][1])
            _count_portion(portion, found, seen, evaluation)
            progress.advance(len(portion))
            for number, pair in enumerate(portion, start + 1):
                # A slice that covers the whole text is the text itself, and costs nothing.
                source, target = pair[0][:_SAMPLED_CHARACTERS], pair[1][:_SAMPLED_CHARACTERS]
                yield Sampled(number, source, target)

    # One pass: the stream is counted as the sample is drawn from it.
    found.sample = sorted(reservoir(counted(), _SAMPLE, seed=0))
    if evaluation is not None:
        found.overlap = {name: count for name, count in evaluation.counts.items() if count}
    return found


def _count_portion(
    portion: list[TextPair],
    found: StreamCounts,
    seen: ExactDeduplicator,
    evaluation: EvaluationKeys | None,
) -> None:
    """Add some pairs to the counts."""
    sources = [pair[0] for pair in portion]
    targets = [pair[1] for pair in portion]
    source_keys, source_lengths = found.sides[0].add(sources)
    target_keys, target_lengths = found.sides[1].add(targets)
    # All rows of a table have the columns of the first.
    if not found.units:
        found.columns = tuple(pair_fields(portion[0]))
    pair_languages = Counter(pair[2:4] for pair in portion)
    found.languages.update(pair_languages)
    # Two empty sides are counted as empty, and not as duplicates too.
    is_filled = (source_keys != EMPTY_KEY) | (target_keys != EMPTY_KEY)
    keys = combine_keys(source_keys, target_keys, "", "")
    found.duplicates += int(np.count_nonzero(~seen.first_seen(keys[is_filled])))
    copies = np.flatnonzero(copies_of(sources, targets, (source_keys, target_keys)))
    if len(copies) and found.first_copy is None:
        found.first_copy = found.units + int(copies[0]) + 1
    found.copies += len(copies)
    found.ratios.add(source_lengths, target_lengths)
    found.slips.add(sources, targets)
    # If some scores are missing, their order is not examined.
    scores = [pair[4] for pair in portion if pair[4] is not None]
    if len(scores) == len(portion):
        found.scores.add(np.array(scores, np.float64))
    if evaluation is not None:
        evaluation.contaminated_keys(source_keys, target_keys)
    found.units += len(portion)


def count_texts_of(
    texts: Iterable[str],
    folder: Path,
    evaluation: EvaluationKeys | None = None,
    progress: Progress = SILENT,
) -> StreamCounts:
    """Count and sample a stream of texts; see ``count_pairs_of``."""
    found = StreamCounts([SideCounts(folder / "texts")])

    def counted() -> Iterator[Sampled]:
        for portion in portions(_until_failure(texts, found), _AT_ONCE):
            if found.first is None:
                found.first = Sampled(1, portion[0])
            keys, _ = found.sides[0].add(portion)
            if evaluation is not None:
                evaluation.contaminated_keys(keys)
            start = found.units
            found.units += len(portion)
            progress.advance(len(portion))
            for number, text in enumerate(portion, start + 1):
                yield Sampled(number, text[:_SAMPLED_CHARACTERS])

    found.sample = sorted(reservoir(counted(), _SAMPLE, seed=0))
    if evaluation is not None:
        found.overlap = {name: count for name, count in evaluation.counts.items() if count}
    return found


def _until_failure(items: Iterable[T], found: StreamCounts) -> Iterator[T]:
    """Yield items until an error; keep the error, or raise it if no item came before it."""
    count = 0
    try:
        for item in items:
            count += 1
            yield item
    except DataError as error:
        # A file of which nothing can be read is unreadable, not a file with a fault.
        if not count:
            raise
        found.failure = error
