"""``interlingua.score`` and ``interlingua score``: the pairs of a bitext, scored and filtered."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

from interlingua.config import Above, AtLeast
from interlingua.config.options import (
    FILTERING,
    INPUT,
    OUTPUT,
    SEARCH,
    Names,
    argument,
    function_of,
    is_frame,
    listed,
    option,
)
from interlingua.config.registry import CHECKS, FORMATS
from interlingua.errors import ConfigError, InterlinguaError, count_of
from interlingua.mining import defaults
from interlingua.mining.pair_cut import PairCut
from interlingua.report.rows import data_frame
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.storage.limits import in_line_limit
from interlingua.storage.remote import keep_inputs
from interlingua.verbs.parts.input_checks import (
    check_bitext,
    check_inputs,
    check_packages_of_checks,
)
from interlingua.verbs.parts.shared_options import (
    BadLineOptions,
    ModelOptions,
    PairOptions,
    SheetOptions,
    as_path,
    as_text,
    is_output_folder,
    join_names,
    output_option,
)

if TYPE_CHECKING:
    import pandas

    from interlingua.corpus.formats.bad_lines import BadLines
    from interlingua.corpus.formats.localization.bitext_folders import Bitexts
    from interlingua.encoder.protocol import Encode
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.filter import Filter
    from interlingua.mining.score import ScoreConfig, Stream
    from interlingua.mining.writer import PairRow
    from interlingua.verbs.parts.score_files import JudgedFile


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
    """The kept pairs in their order; each pair is scored only when it is read.

    The stream is empty if the pairs were written to a file.

    Attributes:
        pairs: iterator of the kept pairs.
        lines: the report; complete when all pairs have been read.
        failures: one line for each bitext that could not be read, if there are several.
    """

    pairs: Iterator[ScoredPair] = field(default_factory=lambda: iter(()))
    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[ScoredPair]:
        return self.pairs

    def __next__(self) -> ScoredPair:
        return next(self.pairs)

    def to_pandas(self) -> pandas.DataFrame:
        """Read the remaining pairs, and return them as a data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        rows = ({"source": pair.source, "target": pair.target, **pair.columns} for pair in self)
        return data_frame(rows, ("source", "target", "score"))

    def __repr__(self) -> str:
        """Return one line, without reading any pair."""
        return "<ScoredStream: pairs are scored as they are read; to_pandas() reads all>"


@dataclass(frozen=True)
class ScoreOptions(ModelOptions, BadLineOptions, PairOptions, SheetOptions, PairCut):
    """Options of ``score``."""

    bitext: PathLike | Iterable[tuple[str, str]] = argument(
        "Bitext: .tsv, .csv, .xlsx, .tmx, .xliff, .po and others; a.de,a.en or the prefix of"
        " Moses files; a folder or 'lang/*.po'; - is standard input.",
        reads="pairs",
    )
    output: PathLike | None = output_option(
        "Output file; its name sets the format; for several bitexts also a folder; by default"
        " standard output."
    )
    format: str | None = option(
        None,
        "Format of the output: tsv, jsonl or csv; for a file any format of bitext.",
        group=OUTPUT,
    )
    input_format: str | None = option(
        None,
        "Format of the input; by default that of the file's name, and tsv for standard input.",
        group=INPUT,
    )
    source_language: str | None = option(
        None,
        "Language of the source, in any code; by default that of the file's name or content.",
        group=INPUT,
    )
    source_column: str | None = option(
        None,
        "Column of the sources in .tsv, .csv, .xlsx, .parquet, by name or by number from 1, or"
        " key in .jsonl.",
        group=INPUT,
    )
    target_column: str | None = option(
        None, "Column of the targets; give both columns or neither.", group=INPUT
    )
    # How a pair is scored.
    k: defaults.NeighborCount = option(
        defaults.K, "Number of neighbors of a sentence that the margin averages over.", group=SEARCH
    )
    margin: str = option(
        defaults.DEFAULT_MARGIN, "Formula of the score: ratio or distance.", group=SEARCH
    )
    window: defaults.WindowSize = option(
        defaults.WINDOW,
        "Number of consecutive pairs in which neighbors are searched.",
        group=SEARCH,
        unit="pairs",
    )
    cosine: bool = option(
        False, "Score by the plain cosine in place of a margin; needs no window.", group=SEARCH
    )
    # Which pairs are kept, in addition to the options of ``PairCut``.
    calibration: PathLike | None = option(
        None,
        "Calibration from --learn, for the probability of each pair.",
        group=FILTERING,
        kind=Path,
        reads="file",
    )
    probability: Annotated[float, Above(0, below=1)] | None = option(
        None,
        "Keep pairs with at least this probability of being translations, 0 to 1.",
        group=FILTERING,
    )
    prior: Annotated[float, Above(0, below=1)] | None = option(
        None,
        "Share of translations among the pairs, 0 to 1; by default estimated from the first"
        " window.",
        group=FILTERING,
    )
    checks: Names = option(
        "",
        "Checks to measure; each is in .jsonl, and a possible column of --columns: all (that can"
        f" run), none, or some of {', '.join(CHECKS)}, package.module:Class.",
        group=FILTERING,
        flags=("--check",),
    )
    drop: Names | Mapping[str, float | None] = option(
        defaults.DROPPED_OF_PAIR,
        "Checks that reject pairs, optionally with a limit: length=2,script; or none.",
        group=FILTERING,
    )
    # Further outputs.
    columns: Names | None = option(
        None,
        "Columns of .tsv, .csv and .xlsx, separated by commas: score, source, target,"
        " source_language, probability, cosine, reasons, names of checks.",
        group=OUTPUT,
    )
    rejected: PathLike | None = option(
        None,
        "File for the rejected pairs with the reasons: .tsv, .jsonl, .csv or .xlsx.",
        group=OUTPUT,
        kind=Path,
    )
    review: PathLike | None = option(
        None,
        "Sheet of pairs to judge, the worst first: .xlsx, .csv or .tsv. After it is answered,"
        " --labels reads it.",
        group=OUTPUT,
        kind=Path,
    )
    review_rows: Annotated[int, AtLeast(3)] = option(
        300, "Maximum number of pairs in the sheet of --review.", group=OUTPUT, unit="pairs"
    )
    bad_lines: PathLike | None = option(
        None,
        "File for the lines that --on-error skip leaves out; by default OUTPUT.bad-lines.tsv.",
        group=OUTPUT,
        kind=Path,
    )
    work: PathLike | None = option(
        None,
        "Folder that keeps the vectors, so that a run after --learn embeds no text again.",
        kind=Path,
    )
    # Judged pairs decide which pairs are kept; or a calibration is learned and no pair written.
    learn: PathLike | None = option(
        None,
        "Calibration file to learn from --labels or --parallel; no pairs are written.",
        group=OUTPUT,
        kind=Path,
    )
    labels: PathLike | None = option(
        None,
        "Judged pairs of the bitext: the answered sheet of --review, or a table with the columns 1"
        " or 0 TAB source TAB target. Good pairs are kept and bad ones rejected; with --learn, the"
        " calibration is learned from them.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    parallel: PathLike | None = option(
        None,
        "With --learn: held-out translations in any format of bitext, which are mixed into the"
        " pairs.",
        group=INPUT,
        reads="bitext",
    )

    @property
    def least_probability(self) -> float | None:
        """Least probability of a pair."""
        return self.probability

    @property
    def known_prior(self) -> float | None:
        """Share of right pairs; None = estimated from the scores."""
        return self.prior


def run_score(
    options: ScoreOptions,
    progress: Progress = SILENT,
    stdout: TextIO | None = None,
) -> ScoredStream:
    """Score the pairs of a bitext of any length, and filter them.

    The bitext is a file, an iterable of (source, target) pairs, or a table in memory with a column
    for each side.

    Args:
        options: of the verb.
        progress: receives the progress of the work.
        stdout: receives the pairs if there is no output; None = the pairs are returned.

    Returns:
        The pairs that are kept; without a filter all.

    Raises:
        ConfigError: an option is wrong, or the pairs are a dictionary.
        DataError: a file can't be read, or a pair is not two texts (raised when it is read).
    """
    check_inputs(options)
    check_packages_of_checks(options.checks, options.drop)
    bitexts = _several(options)
    if bitexts is not None:
        return _score_several(options, bitexts, progress, stdout)
    check_bitext(options.bitext, options.input_format)
    from interlingua.mining.calibration.calibrate import check_learning, learn_scores
    from interlingua.verbs.parts.models import open_model

    config, checks = check_score(options)
    learns = check_learning(as_path(options.learn), as_path(options.labels), options.parallel)
    # A mistake in the file shows before the model is loaded.
    stream = open_bitext(options)
    # Calibrations and kept vectors are valid for one model; only they need its identity.
    is_identified = learns or options.calibration is not None or options.work is not None
    encode, identity = open_model(options, identified=is_identified)
    if learns:
        with _keeping(options, encode, identity) as keeping:
            lines = learn_scores(
                stream,
                keeping,
                config,
                checks,
                output=Path(options.learn or ""),
                labels=as_path(options.labels),
                parallel=as_text(options.parallel),
                model=identity,
                progress=progress,
            )
        return ScoredStream(lines=lines)
    if options.output is not None or stdout is not None:
        lines = write_scored(options, stream, encode, identity, stdout=stdout, progress=progress)
        return ScoredStream(lines=lines)
    # In Python the pairs are streamed to the caller; the report is complete after the last one.
    found = ScoredStream()
    rows = _kept_rows(options, stream, encode, identity, progress, found.lines)
    # The pairs are read after this function has returned, so they need their own line limit.
    found.pairs = (
        ScoredPair(row.columns["score"], row.pair.source, row.pair.target, row.columns)
        for row in in_line_limit(rows, options.max_line)
    )
    return found


def _several(options: ScoreOptions) -> Bitexts | None:
    """Return the bitexts of a folder or a pattern; None if the input is a single bitext."""
    from interlingua.corpus.formats.localization.bitext_folders import several_bitexts

    file = _file_of(options)
    # If a format is named, the input is one bitext, such as a folder of Hugging Face data.
    if file is None or options.input_format is not None:
        return None
    return several_bitexts(file, options.source_language, options.target_language)


def _score_several(
    options: ScoreOptions, bitexts: Bitexts, progress: Progress, stdout: TextIO | None
) -> ScoredStream:
    """Score several bitexts; see ``parts.score_files``."""
    from interlingua.verbs.parts.models import open_model
    from interlingua.verbs.parts.score_files import ScoreJob, SeveralScores, write_all

    result = ScoredStream()
    # Calibrations, kept vectors and finished outputs are valid for one model.
    needs_identity = (options.calibration, options.work, options.output)
    is_identified = any(one is not None for one in needs_identity)
    # All options are checked before the first file is opened.
    checked = replace(options, bitext=())
    if options.output is not None and is_output_folder(options.output):
        checked = replace(checked, output=None, format=None)
    _, checks = check_score(checked)
    several = SeveralScores(
        options,
        bitexts,
        open_bitext=open_bitext,
        open_model=lambda: open_model(options, identified=is_identified),
        checks=checks,
        common=_lines_of_run(options, checks),
        lines=result.lines,
        failures=result.failures,
    )
    if several.is_folder:
        several.to_folder(
            lambda job, stream, encode, model: write_scored(
                job.options,
                stream,
                encode,
                model,
                stdout=None,
                progress=progress,
                judged=job.judged,
            )
        )
        return result

    def scored(job: ScoreJob, stream: Stream, encode: Encode, model: str, lines: list[str]) -> Any:
        return _scored(job.options, stream, encode, model, progress, lines, judged=job.judged)

    if options.output is not None or stdout is not None:
        write_all(several, scored, stdout)
        result.lines += columns_line(replace(options, bitext=()))
        return result
    rows = several.rows(scored)
    result.pairs = (
        ScoredPair(row.columns["score"], row.pair.source, row.pair.target, row.columns)
        for row in in_line_limit(rows, options.max_line)
    )
    return result


@contextlib.contextmanager
def _keeping(options: ScoreOptions, encode: Encode, model: str) -> Iterator[Encode]:
    """Yield a function that embeds, and keeps the vectors if there is a work folder."""
    if options.work is None:
        yield encode
        return
    from interlingua.evaluation.kept_vectors import kept_vectors
    from interlingua.mining.work_folder import at_work

    folder = Path(options.work)
    with at_work(folder, options=options), kept_vectors(encode, folder, model) as keeping:
        yield keeping


def check_score(options: ScoreOptions) -> tuple[ScoreConfig, CheckPlan]:
    """Return how scores are made and which checks and filters apply, after checking all options.

    Raises:
        ConfigError: an option has a wrong value, or does not go with another.
    """
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.filter import REJECTED, SCORE_COLUMNS, output_format
    from interlingua.mining.review import check_review
    from interlingua.mining.score import score_config
    from interlingua.mining.writer import check_columns, format_with_columns
    from interlingua.verbs.parts.score_files import is_same_xliff

    columns_of_checks = join_names(options.checks)
    # By default a review sheet has the reasons of all checks that need no model.
    if options.review is not None and not columns_of_checks:
        columns_of_checks = ",".join(defaults.REVIEWED)
    without = {"hub": "cosines use no neighbors; remove --cosine"} if options.cosine else {}
    checks = CheckPlan.parse(
        columns_of_checks, join_names(options.drop), as_path(options.glossary), without=without
    )
    options.check_cut()
    config = score_config(
        options.margin,
        k=options.k,
        window=options.window,
        cosine=options.cosine,
        device=options.device,
    )
    file = _file_of(options)
    # Pairs and tables in memory are checked where they are opened.
    has_columns = options.source_column is not None
    if file is not None and has_columns != (options.target_column is not None):
        raise ConfigError(
            "--source-column and --target-column require each other; add the missing one, or"
            " remove both"
        )
    columns = listed(options.columns)
    check_columns(columns, SCORE_COLUMNS, checks)
    output_format(options.output, options.format)
    if options.rejected is not None:
        format_with_columns(options.rejected, REJECTED)
    # Only a calibration makes a score a probability.
    needed = list(options.needs_calibration)
    if "probability" in (columns or ()):
        needed.append("probability")
    if options.review is not None:
        check_review(options.review)
    if options.review is not None and options.learn is not None:
        raise ConfigError(
            "--learn and --review cannot be combined, because --learn writes no pairs; remove one"
        )
    if options.calibration is None and needed:
        raise ConfigError(
            f"{needed[0]} requires --calibration; create one with `interlingua score --learn`"
        )
    # An output must not replace a file that is still to be read.
    outputs = [options.output, options.rejected, options.review, _bad_lines(options).path]
    if is_same_xliff(file, options.input_format, options.output, options.format):
        outputs[0] = None  # the file is read again while its copy is written
    keep_inputs(outputs, (file, options.calibration, options.labels))
    if config.margin == "absolute" and "hub" in checks.columns:
        raise ConfigError(
            "the check hub and --cosine cannot be combined, because cosines use no neighbors;"
            " remove one"
        )
    return config, checks


def _file_of(options: ScoreOptions) -> str | None:
    """Return the file of the pairs; None if they are in memory."""
    if isinstance(options.bitext, str | os.PathLike):
        return os.fspath(options.bitext)
    return None


def _bad_lines(options: ScoreOptions) -> BadLines:
    """Return how lines that can't be read are handled, and the file for them."""
    from interlingua.corpus.formats.bad_lines import BadLines

    path = as_path(options.bad_lines)
    if path is None and options.output is not None:
        output = Path(options.output)
        path = output.with_name(f"{output.name}.bad-lines.tsv")
    return BadLines(options.on_error, path)


def open_bitext(options: ScoreOptions) -> Stream:
    """Open the pairs, and read the first pair of a file.

    Raises:
        DataError: there is no pair, or the file is missing, broken or misaligned.
    """
    from interlingua.mining.score import open_stream

    file = _file_of(options)
    if file is None:
        return _open_in_memory(options)
    # ``check_score`` has refused one without the other.
    columns = None
    if options.source_column is not None and options.target_column is not None:
        columns = (options.source_column, options.target_column)
    return open_stream(
        file,
        options.input_format,
        options.source_language,
        options.target_language,
        columns=columns,
        sheet=options.sheet,
        header_row=options.header_row,
        bad=_bad_lines(options),
    )


def _open_in_memory(options: ScoreOptions) -> Stream:
    """Open pairs in memory: an iterable of (source, target) pairs, or a table."""
    from interlingua.corpus.frames import frame_pairs
    from interlingua.mining.score import pair_stream

    pairs: Any = options.bitext
    source = options.source_language
    target = options.target_language
    if is_frame(pairs):
        pairs, codes = frame_pairs(pairs, options.source_column, options.target_column)
        # Columns may be named after their languages, as in a file.
        if codes is not None:
            source = source or codes[0]
            target = target or codes[1]
    elif options.source_column or options.target_column:
        raise ConfigError(
            "source_column and target_column require a file or a table, found pairs; remove them"
        )
    return pair_stream(pairs, source, target)


def write_scored(
    options: ScoreOptions,
    stream: Stream,
    encode: Encode,
    model: str,
    *,
    stdout: TextIO | None,
    progress: Progress = SILENT,
    judged: JudgedFile | None = None,
) -> list[str]:
    """Write the pairs that are kept, and the others if a file for them is named.

    Args:
        options: of the verb.
        stream: the pairs, from ``open_bitext``.
        encode: function that returns vectors of length 1.
        model: identity of the model, for the calibration.
        stdout: receives the pairs if there is no output.
        progress: receives the progress of the work.
        judged: sheet and answers for one of several bitexts; None = a single bitext, with its own
            sheet.

    Returns:
        The report, in lines.

    Raises:
        InterlinguaError: the run was stopped while it wrote to standard output.
    """
    from interlingua.mining.filter import output_format, write_filtered

    lines: list[str] = []
    with _scored(options, stream, encode, model, progress, lines, judged) as (kept, rows):
        try:
            write_filtered(
                rows,
                options.output,
                format=output_format(options.output, options.format),
                columns=listed(options.columns),
                languages=stream.languages,
                stdout=stdout,
                rejected=options.rejected,
            )
        except KeyboardInterrupt:
            # A file is created only when it is complete, so none exists yet; standard output has
            # already received lines.
            if options.output is not None:
                raise
            raise InterlinguaError(
                f"stopped after {count_of(kept.read, 'pairs')}; the lines written so far are"
                " complete; run the command again to score all pairs"
            ) from None
    return lines + columns_line(options)


def columns_line(options: ScoreOptions) -> list[str]:
    """Return a line if the requested checks are no columns of the output, otherwise none."""
    from interlingua.mining.filter import output_format
    from interlingua.mining.writer import columns_of_checks_line

    if not join_names(options.checks):
        return []
    _, checks = check_score(options)
    form = output_format(options.output, options.format)
    return columns_of_checks_line(form, listed(options.columns), checks.requested)


def _lines_of_run(options: ScoreOptions, checks: CheckPlan) -> list[str]:
    """Return the lines that the reports of several bitexts may have in common."""
    from interlingua.mining.filter import no_cut_line
    from interlingua.mining.writer import columns_of_checks_line

    lines = [no_cut_line("--learn"), *checks.lines()]
    # The outputs in a folder may have several formats.
    for form in FORMATS.names:
        lines += columns_of_checks_line(form, listed(options.columns), checks.requested)
    return lines


def _kept_rows(
    options: ScoreOptions,
    stream: Stream,
    encode: Encode,
    model: str,
    progress: Progress,
    lines: list[str],
) -> Iterator[PairRow]:
    """Yield the pairs that are kept; ``lines`` gets the report at the end."""
    with _scored(options, stream, encode, model, progress, lines) as (_, rows):
        yield from (row for row in rows if not row.reasons)


@contextlib.contextmanager
def _scored(
    options: ScoreOptions,
    stream: Stream,
    encode: Encode,
    model: str,
    progress: Progress,
    lines: list[str],
    judged: JudgedFile | None = None,
) -> Iterator[tuple[Filter, Iterator[PairRow]]]:
    """Open the scored pairs: their filter, and all rows; ``lines`` gets the report at the end."""
    from interlingua.mining.review import write_review
    from interlingua.mining.score import scored_rows
    from interlingua.verbs.parts.score_files import JudgedFile, begin_judging

    config, checks = check_score(options)
    judging, file = judged or JudgedFile(begin_judging(options))
    sheet: list[str] = []
    with (
        _keeping(options, encode, model) as keeping,
        scored_rows(
            stream,
            keeping,
            config,
            options,
            checks,
            calibration=as_path(options.calibration),
            judgments=judging.judgments(file),
            model=model,
            progress=progress,
            lines=lines,
        ) as (kept, rows),
    ):
        if judging.sampler is None:
            yield kept, rows
        else:
            try:
                yield kept, judging.sampler.noted(rows, file)
            finally:
                judging.sampler.explain(kept.checker)
            # The sheet is complete after the last pair; the sheet of several files is written
            # after the last file.
            if judged is None and options.review is not None:
                sheet = write_review(options.review, judging.sampler, _file_of(options))
    lines += [*sheet, *checks.lines()]


score = function_of(ScoreOptions, run_score, "score")
