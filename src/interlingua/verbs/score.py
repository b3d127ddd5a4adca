"""``interlingua.score`` and ``interlingua score``: the pairs of a bitext, scored and filtered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from interlingua.config.options import (
    FILTERING,
    INPUT,
    OUTPUT,
    SEARCH,
    Names,
    argument,
    filled,
    function_of,
    is_frame,
    listed,
    option,
)
from interlingua.config.registry import CHECKS
from interlingua.errors import ConfigError
from interlingua.mining import defaults
from interlingua.report.rows import data_frame
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.storage.limits import in_line_limit
from interlingua.verbs.parts.input_checks import (
    check_bitext,
    check_inputs,
    check_packages_of_checks,
)
from interlingua.verbs.parts.shared_options import (
    BadLineOptions,
    ModelOptions,
    PairOptions,
    as_path,
    as_text,
    joined,
    output_option,
)

if TYPE_CHECKING:
    import pandas

    from interlingua.mining.score import ScoreJob, Stream


class ScoredPair(NamedTuple):
    """A pair that was scored and kept.

    Attributes:
        score: margin, or cosine; 0 where a side is blank.
        source: the text.
        target: the text.
        columns: all that is known of the pair: cosine, checks, probability.
    """

    score: float
    source: str
    target: str
    columns: Mapping[str, Any]


@dataclass(slots=True, repr=False)
class ScoredStream:
    """The kept pairs, in their order, each scored when its turn comes.

    It is empty where they were written to a file.

    Attributes:
        pairs: the stream of them.
        lines: the report; complete when all pairs have been read.
    """

    pairs: Iterator[ScoredPair] = field(default_factory=lambda: iter(()))
    lines: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[ScoredPair]:
        return self.pairs

    def __next__(self) -> ScoredPair:
        return next(self.pairs)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame of the pairs that have not been read yet, which it reads.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame(
            {"source": pair.source, "target": pair.target, **pair.columns} for pair in self
        )

    def __repr__(self) -> str:
        """Return one line, and read nothing."""
        return "<ScoredStream: pairs are scored as they are read; to_pandas() reads all>"


@dataclass(frozen=True)
class ScoreOptions(ModelOptions, BadLineOptions, PairOptions):
    """Options of ``score``."""

    bitext: PathLike | Iterable[tuple[str, str]] = argument(
        ".tsv, .csv, .xlsx, .tmx, .jsonl ..., the prefix of Moses files or a.de,a.en; - is"
        " standard input.",
        reads="pairs",
    )
    output: PathLike | None = output_option(
        "File; its name decides the format; standard output by default."
    )
    format: str | None = option(
        None, "Of the output: tsv, jsonl or csv, to a file any format.", group=OUTPUT
    )
    input_format: str | None = option(
        None, "By the name by default, tsv from standard input.", group=INPUT
    )
    source_language: str | None = option(
        None, "Any code; by the file's name or content by default.", group=INPUT
    )
    source_column: str | None = option(
        None,
        "Column of the sources in .tsv, .csv, .xlsx or key in .jsonl: a name, or a number from 1.",
        group=INPUT,
    )
    target_column: str | None = option(
        None, "Column of the targets; both are named or neither.", group=INPUT
    )
    # How a pair is scored.
    k: defaults.Neighbors = option(
        defaults.K, "Neighbors scored, and averaged over in the margin.", group=SEARCH
    )
    margin: str = option(defaults.MARGIN, "ratio or distance.", group=SEARCH)
    window: defaults.Window = option(
        defaults.WINDOW,
        "Pairs of the stream among which neighbors are searched.",
        group=SEARCH,
        unit="pairs",
    )
    cosine: bool = option(
        False, "Plain cosine in place of a margin; needs no window.", group=SEARCH
    )
    # Which pairs are kept.
    threshold: float | None = option(None, "Keep pairs of at least this score.", group=FILTERING)
    calibration: PathLike | None = option(
        None,
        "From --learn: gives each pair its probability.",
        group=FILTERING,
        kind=Path,
        reads="file",
    )
    probability: float | None = option(
        None, "Keep pairs that are translations with at least this one, 0 to 1.", group=FILTERING
    )
    precision: float | None = option(
        None, "Keep as many pairs as are expected to be this precise, 0 to 1.", group=FILTERING
    )
    prior: float | None = option(
        None, "Share of translations; estimated from the first window by default.", group=FILTERING
    )
    checks: Names = option(
        "",
        f"Checks to measure: all, or some of {', '.join(CHECKS)}, package.module:Class.",
        group=FILTERING,
        flags=("--check",),
    )
    drop: Names | Mapping[str, float | None] = option(
        defaults.DROPPED_OF_PAIR,
        "Checks that reject pairs, with their limits or without: length=2,script; or none.",
        group=FILTERING,
    )
    # What is written besides.
    columns: Names | None = option(
        None,
        "Of .tsv, .csv and .xlsx: score, source, target, source_language, probability, cosine,"
        " reasons, checks.",
        group=OUTPUT,
    )
    rejected: PathLike | None = option(
        None,
        "File for all other pairs with the reasons, .tsv, .jsonl, .csv or .xlsx.",
        group=OUTPUT,
        kind=Path,
    )
    bad_lines: PathLike | None = option(
        None,
        "Where --on-error skip keeps them: OUTPUT.bad-lines.tsv by default.",
        group=OUTPUT,
        kind=Path,
    )
    # A calibration in place of pairs, and what it is learned from.
    learn: PathLike | None = option(
        None,
        "Write no pairs but this calibration file, from --labels or --parallel.",
        group=OUTPUT,
        kind=Path,
    )
    labels: PathLike | None = option(
        None,
        "With --learn: judged pairs of the bitext, 1 or 0 TAB source TAB target.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    parallel: PathLike | None = option(
        None,
        "With --learn: held-out translations, any format of bitext; mixed in.",
        group=INPUT,
        reads="bitext",
    )


def run_score(
    options: ScoreOptions,
    progress: Progress = SILENT,
    stdout: TextIO | None = None,
) -> ScoredStream:
    """Scores or filters the pairs of a bitext of any length, in its order.

    The bitext is a file, any iterable of a source and a target each, or a table in memory of which
    two columns hold them.

    Args:
        options: what to do.
        progress: shows how far the work is.
        stdout: where pairs go that have no output; without it they come back.

    Returns:
        The pairs that are kept; without a filter all.

    Raises:
        ConfigError: an option is wrong; the pairs are a dictionary.
        DataError: a pair does not hold two texts, when its turn comes; a file can't be read.
    """
    check_inputs(options)
    check_bitext(options.bitext, options.input_format)
    check_packages_of_checks(options.checks, options.drop)
    from interlingua.mining.calibration.calibrate import learn_job
    from interlingua.verbs.parts.sources import open_model

    job = score_job(options)
    parallel = as_text(options.parallel)
    learner = learn_job(
        as_path(options.learn),
        as_path(options.labels),
        parallel,
        job.config,
        job.selection.checks,
    )
    # A mistake in the file shows before the model is loaded.
    stream = _open(options, job)
    # A calibration holds for one model; without one there is no need to know which it is.
    encode, identity = open_model(options, identified=bool(options.calibration or learner))
    if learner is not None:
        return ScoredStream(lines=learner.run(stream, encode, model=identity, progress=progress))
    if options.output is not None or stdout is not None:
        lines = job.run(stream, encode, model=identity, stdout=stdout, progress=progress)
        return ScoredStream(lines=lines)
    # In Python the pairs stream on to the caller; the report is complete with the last one.
    found = ScoredStream()
    rows = job.kept(stream, encode, model=identity, progress=progress, lines=found.lines)
    # They are read after this function has returned, when its own limit has ended.
    found.pairs = (
        ScoredPair(row.columns["score"], row.pair.source, row.pair.target, row.columns)
        for row in in_line_limit(rows, options.max_line)
    )
    return found


def score_job(options: ScoreOptions) -> ScoreJob:
    """The checked job that the options describe."""
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.filter import Selection
    from interlingua.mining.score import ScoreJob, score_config

    checks = CheckPlan.parse(joined(options.checks), joined(options.drop))
    file = None
    if isinstance(options.bitext, str | os.PathLike):
        file = os.fspath(options.bitext)
    return filled(
        ScoreJob,
        options,
        input=file,
        # Those of a table in memory are read with it, see ``_open``.
        source_column=options.source_column if file is not None else None,
        target_column=options.target_column if file is not None else None,
        columns=listed(options.columns),
        config=score_config(
            options.margin,
            k=options.k,
            window=options.window,
            cosine=options.cosine,
            device=options.device,
        ),
        selection=filled(Selection, options, checks=checks),
    )


def _open(options: ScoreOptions, job: ScoreJob) -> Stream:
    if isinstance(options.bitext, str | os.PathLike):
        return job.open()
    from interlingua.corpus.frames import frame_pairs
    from interlingua.mining.score import pair_stream

    pairs: Any = options.bitext
    source = options.source_language
    target = options.target_language
    if is_frame(pairs):
        pairs, codes = frame_pairs(pairs, options.source_column, options.target_column)
        # Columns may be called by their languages, as in a file.
        if codes is not None:
            source = source or codes[0]
            target = target or codes[1]
    elif options.source_column or options.target_column:
        raise ConfigError(
            "source_column and target_column are for files and tables, got pairs; drop them"
        )
    return pair_stream(pairs, source, target)


score = function_of(ScoreOptions, run_score, "score")
