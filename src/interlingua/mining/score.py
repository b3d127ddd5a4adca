"""Scoring of the pairs of a bitext in a stream: all of ``interlingua score`` except its filter.

A pair is scored by its cosine, compared with the mean cosines of its source and of its target to
their k nearest on the other side (``functional.margin``). Mining does the same, but here neighbors
are searched only among the texts of a window of w pairs. The first w pairs are scored among
themselves. After that w/2 pairs at a time are read and scored among the w latest pairs, themselves
included. So every pair is compared with the texts of w pairs (or of all, if there are fewer), and
memory holds one window, whatever the length of the stream.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.config import CheckedSettings
from interlingua.config.languages import resolve_language
from interlingua.config.registry import check_choice
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import IN_TWO_FILES, TextPair, guess_format, read_pairs
from interlingua.corpus.formats.moses import moses_files
from interlingua.encoder.protocol import Encode
from interlingua.encoder.texts import PAIRS, check_text, refuse_container
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.functional.margin import MARGINS, MarginKind, margin_score
from interlingua.mining import defaults
from interlingua.mining.calibration.calibration import load_calibration
from interlingua.mining.checks import CheckPlan
from interlingua.mining.filter import (
    LEARNED_FROM,
    Filter,
    ScoredPairs,
)
from interlingua.mining.pair_cut import PairCut
from interlingua.mining.review import Judgments
from interlingua.mining.vectors import embed_texts
from interlingua.mining.writer import PairRow
from interlingua.retrieval.topk.exact import exact_topk
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import count_lines

MIN_PAIRS_PER_NEIGHBOR = 10
"""Pairs for each of the k neighbors; with fewer, a warning says that margins mean little."""
_STANDARD_INPUT = "-"
"""Name of standard input in place of a file."""
_NOT_FROM_STANDARD_INPUT = ("opus", "gettext", "huggingface", "xlsx", "xliff", "qt", *IN_TWO_FILES)
_SCORING = re.compile(r"score (?P<margin>ratio|distance) k=(?P<k>\d+) window=(?P<window>\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreConfig(CheckedSettings):
    """Settings of the scoring of pairs.

    The server and stored calibrations make a ``ScoreConfig`` without a verb of the command line.
    ``ScoreOptions`` has options of the same names; types and defaults of both are in
    ``mining/defaults.py``.
    """

    margin: MarginKind = defaults.DEFAULT_MARGIN
    """ratio, distance, or absolute, which is the plain cosine and needs no window."""
    k: defaults.NeighborCount = defaults.K
    """Neighbors that the margin's means are taken over."""
    window: defaults.WindowSize = defaults.WINDOW
    """Number of pairs among whose texts neighbors are searched."""
    device: str | None = None
    """Device on which large windows are searched; see ``search_device``."""

    def __post_init__(self) -> None:
        check_choice("margin", self.margin, MARGINS)

    def too_few(self, pairs: int) -> bool:
        """Return whether a margin is unreliable because so few pairs are compared."""
        return (
            self.margin != "absolute" and min(pairs, self.window) < MIN_PAIRS_PER_NEIGHBOR * self.k
        )

    @property
    def scoring(self) -> str:
        """Description of all settings that determine the meaning of a score."""
        if self.margin == "absolute":
            return "score absolute"
        return f"score {self.margin} k={self.k} window={self.window}"

    @classmethod
    def of_scoring(cls, scoring: str) -> ScoreConfig:
        """Return the configuration that ``scoring`` describes.

        Raises:
            ConfigError: the scores were computed in another way, such as by mining.
        """
        if scoring == cls(margin="absolute").scoring:
            return cls(margin="absolute")
        found = _SCORING.fullmatch(scoring)
        if found is None:
            raise ConfigError(
                f"the scores were computed by {scoring!r}, not by `interlingua score`; use a"
                " calibration that `interlingua score --learn` wrote"
            )
        margin: Any = found["margin"]
        return cls(margin=margin, k=int(found["k"]), window=int(found["window"]))


def score_config(
    margin: str, *, k: int, window: int, cosine: bool, device: str | None = None
) -> ScoreConfig:
    """Build the configuration from options; plain cosines are used only if requested.

    Raises:
        ConfigError: a value is invalid.
    """
    if margin == "absolute" and not cosine:
        raise ConfigError("the margin absolute is the plain cosine; pass --cosine instead")
    # ``ScoreConfig`` itself refuses a name that is not a margin.
    kind: Any = margin
    if cosine:
        kind = "absolute"
    return ScoreConfig(margin=kind, k=k, window=window, device=device)


class _WindowVectors:
    """The texts of one side of a window, each once, with their vectors."""

    def __init__(self, encode: Encode, language: str) -> None:
        self.encode = encode
        self.language = language or None
        self.tells_progress = takes_progress(encode)
        self.rows: dict[str, int] = {}
        self.vectors: Float32[ndarray, "n d"] = np.zeros((0, 0), np.float32)

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Forget all texts except these; return those of them that have no vector yet."""
        # A dict and not a set: vectors and batches must not depend on the order of a hash.
        needed = dict.fromkeys(filter(str.strip, texts))
        old = [text for text in needed if text in self.rows]
        self.vectors = self.vectors[self.rows_of(old)]
        self.rows = {text: row for row, text in enumerate(old)}
        return [text for text in needed if text not in self.rows]

    def embed(self, texts: Sequence[str], progress: Progress) -> None:
        """Add texts."""
        if not texts:
            return
        encode = functools.partial(self.encode, language=self.language)
        if self.tells_progress:
            vectors = embed_texts(functools.partial(encode, show_progress_bar=progress), texts)
        else:
            vectors = embed_texts(encode, texts, progress)
        # At first there are no vectors: the empty array has no width, and nothing can be joined.
        if len(self.vectors):
            vectors = np.concatenate([self.vectors, vectors])
        self.vectors = vectors
        self.rows |= {text: len(self.rows) + row for row, text in enumerate(texts)}

    def rows_of(self, texts: Iterable[str]) -> Int64[ndarray, " n"]:
        """Return the rows of the vectors of some texts."""
        return np.array([self.rows[text] for text in texts], np.int64)


class BitextScorer:
    """Scores one stream.

    Args:
        encode: see ``Encode``.
        config: how scores are made.
        progress: counts the pairs that are embedded; a pair may be half done.
    """

    def __init__(
        self,
        encode: Encode,
        config: ScoreConfig | None = None,
        *,
        progress: Progress = SILENT,
    ) -> None:
        self.encode = encode
        self.config = config or ScoreConfig()
        self.progress = progress

    def score(self, pairs: Iterable[TextPair]) -> Iterator[ScoredPairs]:
        """Score a stream, some pairs at a time, in order.

        Raises:
            DataError: a pair is of other languages than the first.
        """
        stream = _one_language_pair(pairs)
        new = list(itertools.islice(stream, self.config.window))
        if not new:
            return
        sides = (
            _WindowVectors(self.encode, new[0].source_language),
            _WindowVectors(self.encode, new[0].target_language),
        )
        window: list[TextPair] = []
        while new:
            # The latest pairs; the plain cosine needs none besides those that it scores.
            if self.config.margin == "absolute":
                window = new
            else:
                window = [*window, *new][-self.config.window :]
            missing = [
                side.missing(texts) for side, texts in zip(sides, _texts(window), strict=True)
            ]
            # The progress counts pairs: when the missing texts of both sides are embedded, all new
            # pairs are done, including those whose texts already had vectors.
            with self.progress.within(len(new)) as part:
                part.start(sum(map(len, missing)), "texts")
                for side, texts in zip(sides, missing, strict=True):
                    side.embed(texts, part)
            yield self._scored(new, sides)
            new = list(itertools.islice(stream, max(1, self.config.window // 2)))

    def _scored(
        self, pairs: list[TextPair], sides: tuple[_WindowVectors, _WindowVectors]
    ) -> ScoredPairs:
        """Score some pairs among all texts of a window."""
        # A pair with an empty side scores 0, and its other side is the neighbor of no text.
        has_texts = np.array([bool(pair.source.strip() and pair.target.strip()) for pair in pairs])
        found = ScoredPairs(
            pairs, np.zeros(len(pairs)), np.zeros(len(pairs)), np.zeros(len(pairs), np.int64)
        )
        if not has_texts.any():
            return found
        texts = _texts(itertools.compress(pairs, has_texts))
        x, y = (side.rows_of(some) for side, some in zip(sides, texts, strict=True))
        cosines = np.einsum("nd,nd->n", sides[0].vectors[x], sides[1].vectors[y], dtype=np.float64)
        found.cosines[has_texts] = found.scores[has_texts] = cosines
        if self.config.margin == "absolute":
            return found
        # Both directions: the means of the sources over targets, then of the targets over sources.
        means = []
        hubs = []
        for own, side, other in ((x, *sides), (y, *sides[::-1])):
            # A text that occurs in several pairs is searched for once.
            queries, place = np.unique(own, return_inverse=True)
            similar, indices = exact_topk(
                side.vectors[queries], other.vectors, k=self.config.k, device=self.config.device
            )
            means.append(similar.double().mean(dim=1)[torch.from_numpy(place)])
            hubs.append(np.bincount(indices[:, 0].numpy(), minlength=len(other.rows)))
        scores = margin_score(
            torch.from_numpy(cosines), means[0], means[1], margin=self.config.margin
        )
        # Vectors of zeros have the ratio 0 / 0.
        found.scores[has_texts] = torch.nan_to_num(scores).numpy()
        # The first search counts the targets that are nearest, the second the sources.
        found.hubs[has_texts] = np.maximum(hubs[1][x], hubs[0][y])
        return found


def takes_progress(encode: Encode) -> bool:
    """Return whether ``encode`` reports each batch; a portion may take minutes on a slow CPU."""
    try:
        return "show_progress_bar" in inspect.signature(encode).parameters
    except (TypeError, ValueError):
        # Some callables, such as those that are compiled, have no signature to look at.
        return False


def _texts(pairs: Iterable[TextPair]) -> tuple[list[str], list[str]]:
    """Return all sources and all targets."""
    all_pairs = list(pairs)
    return [pair.source for pair in all_pairs], [pair.target for pair in all_pairs]


def _one_language_pair(pairs: Iterable[TextPair]) -> Iterator[TextPair]:
    """Yield the same pairs, and check that all have the languages of the first."""
    first: tuple[str, str] | None = None
    for pair in pairs:
        found = pair.source_language, pair.target_language
        first = first or found
        if found != first:
            raise DataError(
                f"the file contains several language pairs, {'-'.join(first)} and then"
                f" {'-'.join(found)}; choose one with --source-language and --target-language"
            )
        yield pair


class Stream(NamedTuple):
    """Pairs that can be read once.

    Attributes:
        pairs: the stream.
        languages: of its first pair.
        total: pairs, if they can be counted at once.
        skipped: pairs that the reader leaves out, by reason.
        bad: how to handle unreadable lines.
        path: of the file, or ``-``; None = the pairs are in memory.
        read_again: opens the file once more, and notes no bad lines.
    """

    pairs: Iterator[TextPair]
    languages: tuple[str, str]
    total: int | None
    skipped: Counter[str]
    bad: BadLines
    path: str | None = None
    read_again: Callable[[], Stream] | None = None


@contextlib.contextmanager
def scored_rows(
    stream: Stream,
    encode: Encode,
    config: ScoreConfig,
    cut: PairCut,
    checks: CheckPlan,
    *,
    calibration: Path | None = None,
    judgments: Judgments | None = None,
    model: str | None = None,
    progress: Progress = SILENT,
    lines: list[str],
) -> Iterator[tuple[Filter, Iterator[PairRow]]]:
    """Yield the filter of a stream, and all its pairs as they are scored, kept or not.

    Pairs in memory are scored in memory: no file is written.

    Args:
        stream: see ``open_stream`` and ``pair_stream``.
        encode: gives vectors of length 1.
        config: how scores are made.
        cut: which pairs are kept.
        checks: that measure and reject pairs.
        calibration: file that gives probabilities.
        judgments: answers to some pairs, which decide in place of the score and the checks.
        model: identity of the model, for the calibration.
        progress: receives the progress of the work.
        lines: gets the report when the block ends.
    """
    started = time.perf_counter()
    curve = None
    if calibration is not None:
        curve = load_calibration(
            calibration, *stream.languages, model=model, scoring=config.scoring
        )
    with contextlib.ExitStack() as stack:
        # The checks record earlier pairs in this folder, because a file may have any length.
        folder = None
        if stream.path is not None:
            temporary = tempfile.TemporaryDirectory(prefix="interlingua-")
            folder = Path(stack.enter_context(temporary))
        stack.enter_context(stream.bad)
        kept = Filter(cut, checks, stream.languages, curve, folder, judgments)
        progress.start(stream.total, "pairs", "scoring")
        scorer = BitextScorer(encode, config, progress=progress)
        blocks = scorer.score(stream.pairs)
        # The share of right pairs is estimated from all pairs: the first ones may be of another
        # kind, for example if a bitext is sorted by length. A file that is longer than its first
        # scored part is read twice.
        if curve is not None and folder is not None and (stream.total or 0) > config.window:
            blocks = _scored_twice(stream, scorer, kept, folder / "scores.bin")
        yield kept, kept.rows(blocks)
    lines += _report(kept, stream, config, time.perf_counter() - started)


def _scored_twice(
    stream: Stream, scorer: BitextScorer, kept: Filter, path: Path
) -> Iterator[ScoredPairs]:
    """Score all pairs, let the filter learn from them, and yield them with their scores.

    Args:
        stream: of a file; its pairs are read in the second reading.
        scorer: scores the first reading.
        kept: learns.
        path: file for the scores.
    """
    assert stream.read_again is not None
    first = stream.read_again()
    step = max(1, (stream.total or 0) // LEARNED_FROM)
    scores = []
    sizes = []
    with open(path, "wb") as file:
        for block in scorer.score(first.pairs):
            scores.append(block.scores[kept.accepted(block.pairs)][::step])
            sizes.append(len(block.pairs))
            for column in (block.scores, block.cosines, block.hubs):
                file.write(column.astype(np.float64).tobytes())
    kept.learn(np.concatenate(scores))
    kept.learned_from = "all pairs"
    with open(path, "rb") as file:
        for size in sizes:
            pairs = list(itertools.islice(stream.pairs, size))
            columns = np.fromfile(file, np.float64, 3 * size).reshape(3, size)
            if len(pairs) != size:
                raise DataError(
                    "the file was changed while it was read; run the command again",
                    path=stream.path,
                )
            yield ScoredPairs(pairs, columns[0], columns[1], columns[2].astype(np.int64))


def _report(kept: Filter, stream: Stream, config: ScoreConfig, seconds: float) -> list[str]:
    """Return the report of a stream that was scored, in lines."""
    lines = kept.report()
    lines[0] += f"; {kept.read / max(seconds, 1e-9):,.0f} pairs/s"
    # The plus sign drops the reasons with a count of 0.
    skipped = +stream.skipped
    if skipped:
        counts = ", ".join(f"{reason} {count:,}" for reason, count in skipped.items())
        lines.append(f"left out: {counts}")
    lines += stream.bad.lines()
    if config.too_few(kept.read):
        lines.append(few_pairs(config, kept.read))
    return lines + kept.no_cut_lines()


def few_pairs(config: ScoreConfig, pairs: int) -> str:
    """Return a message that there are too few pairs for a margin, with the sufficient number."""
    least = MIN_PAIRS_PER_NEIGHBOR * config.k
    met = count_of(min(pairs, config.window), "pairs")
    return (
        f"warning: a margin with k = {config.k} requires {least:,} pairs in a window, found {met};"
        " score more pairs, raise --window, or pass --cosine"
    )


def open_stream(
    path: str,
    format: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    *,
    columns: tuple[str, str] | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    bad: BadLines | None = None,
) -> Stream:
    """Open a bitext that is read once.

    Args:
        path: as in ``read_pairs``, or ``-`` for standard input.
        format: a name of ``registry.FORMATS``; by the file's name by default, TSV on standard
            input.
        source_language: in any code.
        target_language: code of the target's language, or None.
        columns: of the texts in a table, see ``read_pairs``.
        sheet: of a workbook.
        header_row: row of a table with the names of the columns.
        bad: how to handle unreadable lines; by default the first one is an error.

    Raises:
        DataError: it holds no pair, or is missing, broken or misaligned.
    """
    if path == _STANDARD_INPUT and format in _NOT_FROM_STANDARD_INPUT:
        raise ConfigError(
            f"{format} cannot be read from standard input; use tsv, jsonl, csv or tmx, for"
            " example: paste a.de a.en | ..."
        )
    skipped: Counter[str] = Counter()
    bad = bad or BadLines()
    # Standard input has no name that shows its format.
    if path == _STANDARD_INPUT:
        format = format or "tsv"
    pairs = read_pairs(
        path,
        format=format or None,
        source_language=source_language,
        target_language=target_language,
        columns=columns,
        sheet=sheet,
        header_row=header_row,
        skipped=skipped,
        bad=bad,
    )
    # The first pair is read at once: it shows the languages, and an empty or broken input fails
    # before a model is loaded.
    first = _first_pair_or_close(pairs, path, skipped, bad)
    languages = (first.source_language, first.target_language)
    total = count_pairs(
        path,
        format,
        source_language,
        target_language,
        columns=columns,
        sheet=sheet,
        header_row=header_row,
    )

    def read_again() -> Stream:
        # Only the stream whose pairs are written notes bad lines.
        silent = BadLines("skip" if bad.skips else "stop")
        return open_stream(
            path,
            format,
            source_language,
            target_language,
            columns=columns,
            sheet=sheet,
            header_row=header_row,
            bad=silent,
        )

    whole = itertools.chain([first], pairs)
    return Stream(whole, languages, total, skipped, bad, path, read_again)


def _first_pair_or_close(
    pairs: Iterator[TextPair], path: str, skipped: Counter[str], bad: BadLines
) -> TextPair:
    """Return the first pair; if there is none, no file of bad lines stays."""
    try:
        return _first_pair(pairs, path, skipped, bad)
    except BaseException as error:
        # The reader may have started a file of left-out entries, which must not stay.
        bad.__exit__(type(error), error, error.__traceback__)
        raise


def _first_pair(
    pairs: Iterator[TextPair], path: str, skipped: Counter[str], bad: BadLines
) -> TextPair:
    """Return the first pair of a bitext.

    Raises:
        DataError: there is none, or the file can't be read.
    """
    first = next(pairs, None)
    if first is None:
        unreadable = ""
        if bad.count:
            unreadable = f" ({bad.count:,} lines cannot be read; the first: {bad.first[0]})"
        elif +skipped:
            counts = ", ".join(f"{reason} {count:,}" for reason, count in (+skipped).items())
            unreadable = f" (left out: {counts})"
        raise DataError(f"the file contains no pair{unreadable}; nothing can be scored", path=path)
    return first


def pair_stream(
    pairs: Iterable[tuple[str, str]], source_language: str | None, target_language: str | None
) -> Stream:
    """Return pairs in memory as a bitext that is read once.

    Args:
        pairs: source and target, any number of them.
        source_language: in any code, if the encoder or a check needs it.
        target_language: code of the target's language, or None.

    Raises:
        ConfigError: they are a table or a dictionary.
        DataError: a pair does not hold two texts; raised when it is read.
    """
    refuse_container(pairs, PAIRS)
    source = _resolved(source_language) or ""
    target = _resolved(target_language) or ""
    return Stream(
        _checked_pairs(pairs, source, target), (source, target), None, Counter(), BadLines()
    )


def _resolved(code: str | None) -> str | None:
    """Return the canonical code for any code of a language, or None for None."""
    if not code:
        return None
    return resolve_language(code).code


def _checked_pairs(
    pairs: Iterable[tuple[str, str]], source: str, target: str
) -> Iterator[TextPair]:
    """Yield pairs of texts as they are needed, each checked when it is read."""
    for row, pair in enumerate(pairs):
        # A text of two characters has a length of 2 as well, and is not a pair.
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise DataError(
                f"pairs: row {row:,} (counted from 0): expected a source and a target, found"
                f" {repr(pair)[:60]}"
            )
        one, other = pair
        yield TextPair(
            check_text(one, row, "source"), check_text(other, row, "target"), source, target
        )


def count_pairs(
    path: str,
    format: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    *,
    columns: tuple[str, str] | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
) -> int | None:
    """Count the pairs of a file, which is fast compared with embedding them.

    The count is None for an input that can be read only once.
    """
    if path == _STANDARD_INPUT:
        return None
    name = format or guess_format(path)
    try:
        if name == "moses":
            codes = [_resolved(code) for code in (source_language, target_language)]
            path = str(moses_files(path, codes[0], codes[1]).paths[0])
        # A pipe, or data that are streamed.
        if not os.path.isfile(path):
            return None
        # A pair per line: counting line ends is much faster than reading pairs.
        if name in ("tsv", "jsonl", "moses"):
            return count_lines(path)
        pairs = read_pairs(
            path,
            format=name,
            source_language=source_language,
            target_language=target_language,
            columns=columns,
            sheet=sheet,
            header_row=header_row,
            bad=BadLines("skip"),
        )
        return sum(map(bool, pairs))
    except (DataError, OSError):
        # Errors are reported when the file is read.
        return None
