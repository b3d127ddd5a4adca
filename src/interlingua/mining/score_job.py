"""The whole of ``interlingua score``: a bitext from a file or from standard input, scored, filtered, written."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TextIO

from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.formats import TextPair, guess_format, read_pairs
from interlingua.corpus.moses import moses_files
from interlingua.errors import ConfigError, DataError, InterlinguaError
from interlingua.languages import resolve
from interlingua.mining.calibration import load_calibration
from interlingua.mining.filter import (
    COLUMNS,
    REJECTED,
    Filter,
    FilterConfig,
    output_format,
    scratch_folder,
    write_filtered,
)
from interlingua.mining.pair_rows import PairRow, check_columns, format_with_columns
from interlingua.mining.score import LEAST_PAIRS, Encode, PairScorer, ScoreConfig
from interlingua.mining.texts import count_lines
from interlingua.remote import keep_inputs

STANDARD_INPUT = "-"


class Stream(NamedTuple):
    """Pairs that can be read once.

    Attributes:
        pairs: the stream.
        languages: of its first pair.
        total: pairs, where they can be counted at once.
        skipped: what the reader leaves out, by reason.
        bad: what becomes of lines that can't be read.
    """

    pairs: Iterator[TextPair]
    languages: tuple[str, str]
    total: int | None
    skipped: Counter[str]
    bad: BadLines


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreJob:
    """What ``interlingua score --help`` says of the options of these names; ``format`` is that of the output.

    ``input`` is None where the pairs are in memory.
    """

    input: str | None
    input_format: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    output: Path | None = None
    format: str | None = None
    columns: Sequence[str] | None = None
    rejected: Path | None = None
    on_error: str = "stop"
    bad_lines: Path | None = None
    calibration: Path | None = None
    config: ScoreConfig = field(default_factory=ScoreConfig)
    selection: FilterConfig

    def __post_init__(self) -> None:
        check_columns(self.columns, COLUMNS, self.selection.checks)
        output_format(self.output, self.format)
        if self.rejected is not None:
            format_with_columns(self.rejected, REJECTED)
        needed = [
            *self.selection.needs_calibration,
            *(["probability"] if "probability" in (self.columns or ()) else []),
        ]
        if self.calibration is None and needed:
            raise ConfigError(f"{needed[0]} needs --calibration; make one with interlingua score --learn")
        keep_inputs((self.output, self.rejected, self._bad_lines().path), (self.input, self.calibration))
        if self.config.margin == "absolute" and "hub" in self.selection.checks.columns:
            raise ConfigError("plain cosines look at no neighbours, so hubs are not known; drop the check or --cosine")

    def open(self) -> Stream:
        """The stream; its first pair is read.

        Raises:
            DataError: there is none, or the file is missing, broken or misaligned.
        """
        assert self.input is not None
        return open_stream(
            self.input, self.input_format, self.source_language, self.target_language, bad=self._bad_lines()
        )

    def _bad_lines(self) -> BadLines:
        """They go to a file where one is named, or next to the output."""
        path = self.bad_lines
        if path is None and self.output is not None:
            output = Path(self.output)  # from Python it may be given as a text
            path = output.with_name(f"{output.name}.bad-lines.tsv")
        return BadLines(self.on_error, path)

    def run(
        self,
        stream: Stream,
        encode: Encode,
        *,
        model: str | None = None,
        stdout: TextIO | None,
        progress: Callable[[float, int | None], None] = lambda done, total: None,
    ) -> list[str]:
        """Writes the pairs that are kept, and the others where a file for them is named.

        Args:
            stream: what ``open`` gave.
            encode: gives vectors of length 1.
            model: what tells the model, for the calibration.
            stdout: where pairs go unless a file is named.
            progress: called with how many pairs are done, and all where that is known.

        Returns:
            What there is to tell, in lines.

        Raises:
            InterlinguaError: it was stopped while it wrote to standard output.
        """
        started = time.perf_counter()
        with self._filter(stream, model) as kept:
            scorer = PairScorer(encode, self.config, progress=counted(progress, stream.total))
            try:
                write_filtered(
                    kept.rows(scorer.score(stream.pairs)),
                    self.output,
                    format=output_format(self.output, self.format),
                    columns=self.columns,
                    stdout=stdout,
                    rejected=self.rejected,
                )
            except KeyboardInterrupt:
                if self.output is not None:
                    raise
                raise InterlinguaError(
                    f"stopped after {kept.read:,} pairs; the lines so far are whole, begin again for the rest"
                ) from None
        return self._report(kept, stream, time.perf_counter() - started)

    def kept(
        self,
        stream: Stream,
        encode: Encode,
        *,
        model: str | None = None,
        progress: Callable[[float, int | None], None] = lambda done, total: None,
        lines: list[str],
    ) -> Iterator[PairRow]:
        """The pairs that are kept, one by one; see ``run``.

        Args:
            stream: what ``open`` gave.
            encode: gives vectors of length 1.
            model: what tells the model, for the calibration.
            progress: called with how many pairs are done, and all where that is known.
            lines: gets the report at the end.
        """
        started = time.perf_counter()
        with self._filter(stream, model) as kept:
            scorer = PairScorer(encode, self.config, progress=counted(progress, stream.total))
            for row in kept.rows(scorer.score(stream.pairs)):
                if not row.reasons:
                    yield row
        lines += self._report(kept, stream, time.perf_counter() - started)

    @contextlib.contextmanager
    def _filter(self, stream: Stream, model: str | None) -> Iterator[Filter]:
        calibration = None
        if self.calibration is not None:
            calibration = load_calibration(
                self.calibration, *stream.languages, model=model, scoring=self.config.scoring
            )
        with scratch_folder() as folder, stream.bad:
            yield Filter(self.selection, stream.languages, calibration, folder)

    def _report(self, kept: Filter, stream: Stream, seconds: float) -> list[str]:
        lines = kept.report()
        lines[0] += f"; {kept.read / max(seconds, 1e-9):,.0f} pairs/s"
        if +stream.skipped:
            lines.append("left out: " + ", ".join(f"{reason} {count:,}" for reason, count in (+stream.skipped).items()))
        lines += stream.bad.lines()
        if self.config.too_few(kept.read):
            lines.append(few_pairs(self.config, kept.read))
        return lines


def few_pairs(config: ScoreConfig, pairs: int) -> str:
    """Says that there are too few for a margin, and how many are enough."""
    least = LEAST_PAIRS * config.k
    met = min(pairs, config.window)
    return (
        f"warning: a margin needs neighbours, and {met:,} pairs at a time have too few of them for k = {config.k}; give"
        f" {least:,} or more, in a --window of as many, or choose --cosine"
    )


def open_stream(
    path: str,
    format: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    *,
    bad: BadLines | None = None,
) -> Stream:
    """A bitext to be read once.

    Args:
        path: as in ``read_pairs``, or ``-`` for standard input.
        format: a name of ``registry.FORMATS``; by the file's name by default, TSV on standard input.
        source_language: in any code.
        target_language: code of the target's language, or None.
        bad: what becomes of lines that can't be read; by default the first one stops.

    Raises:
        DataError: it holds no pair, or is missing, broken or misaligned.
    """
    if path == STANDARD_INPUT and format in ("moses", "opus", "gettext", "huggingface", "xlsx"):
        raise ConfigError(
            f"{format} can't come from standard input; give tsv, jsonl, csv or tmx, e.g. paste a.de a.en | ..."
        )
    skipped: Counter[str] = Counter()
    bad = bad or BadLines()
    pairs = read_pairs(
        path,
        format=format or ("tsv" if path == STANDARD_INPUT else None),
        source_language=source_language,
        target_language=target_language,
        skipped=skipped,
        bad=bad,
    )
    first = next(pairs, None)
    if first is None:
        also = f" ({bad.count:,} lines could not be read; the first: {bad.first[0]})" if bad.count else ""
        raise DataError(f"holds no pair{also}; there is nothing to score", path=path)
    total = count_pairs(path, format, source_language, target_language)
    return Stream(itertools.chain([first], pairs), (first.source_language, first.target_language), total, skipped, bad)


def count_pairs(
    path: str, format: str | None = None, source_language: str | None = None, target_language: str | None = None
) -> int | None:
    """Counts the pairs of a file, fast compared with embedding them; None for an input that can be read only once."""
    if path == STANDARD_INPUT:
        return None
    name = format or guess_format(path)
    try:
        if name == "moses":
            codes = [resolve(code).code if code else None for code in (source_language, target_language)]
            path = str(moses_files(path, codes[0], codes[1]).paths[0])
        if not os.path.isfile(path):  # a pipe, or data that are streamed
            return None
        if name in ("tsv", "jsonl", "moses"):
            return count_lines(path)
        pairs = read_pairs(path, format=name, source_language=source_language, target_language=target_language)
        return sum(map(bool, pairs))
    except (DataError, OSError):  # reported when it is read
        return None


def counted(progress: Callable[[float, int | None], None], total: int | None) -> Callable[[float], None]:
    """Sums what is done, for those who show all of it."""
    done = 0.0

    def more(pairs: float) -> None:
        nonlocal done
        done += pairs
        progress(done, total)

    return more
