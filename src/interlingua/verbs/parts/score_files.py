"""Score the bitexts of a folder or a pattern with one model, to one or several outputs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from interlingua.config.languages import LanguageCode, region_of
from interlingua.config.options import listed
from interlingua.errors import ConfigError, InterlinguaError, count_of
from interlingua.storage.files import (
    PathLike,
    atomic_write,
    is_special,
    sha256_file,
    stem_and_suffix,
)
from interlingua.storage.journal import Journal
from interlingua.storage.json_text import parse_json
from interlingua.storage.remote import keep_inputs
from interlingua.verbs.parts.output_folder import OutputFolder, OutputJob
from interlingua.verbs.parts.shared_options import as_path, is_output_folder

if TYPE_CHECKING:
    from interlingua.corpus.formats.localization.bitext_folders import Bitext, Bitexts
    from interlingua.encoder.protocol import Encode
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.review import Judging
    from interlingua.mining.score import Stream
    from interlingua.mining.writer import PairRow

_JOURNAL = "score.journal"
_ROWS = "rows"
_PARTS = {_ROWS: r"score\.journal|[0-9a-f]{32}\.jsonl"}
"""Names of files with the kept pairs of finished bitexts, if all have one common output."""
_FILE = "file"
_NOT_SETTINGS = (
    *("bitext", "output", "bad_lines", "work", "device", "batch_tokens", "max_line"),
    *("learn", "labels", "parallel", "rejected", "review", "review_rows"),
)
"""Options that do not change the output, that are for one bitext, or that are about answers."""
_Options = Any
"""``ScoreOptions`` of ``verbs.score``; importing it would be circular."""
_Scored = Callable[..., contextlib.AbstractContextManager[tuple[Any, Iterator["PairRow"]]]]
"""Function that opens the scored pairs of a bitext: its filter, and all rows."""


class JudgedFile(NamedTuple):
    """The review sheet and the answers of a run, with the bitext to look up in them.

    Attributes:
        judging: review sheet and answers of the run.
        file: one of several bitexts; None = the only one.
    """

    judging: Judging
    file: str | None = None


def begin_judging(options: _Options, *, by_file: bool = False) -> Judging:
    """Begin the review sheet of a run, and read the answers to its pairs.

    Args:
        options: of the run.
        by_file: there are several bitexts.
    """
    from interlingua.mining.review import Judging

    rows = None if options.review is None else options.review_rows
    return Judging.of(rows, as_path(options.labels), by_file=by_file)


class ScoreJob(NamedTuple):
    """The options to score one of several bitexts, and how its pairs are judged."""

    options: _Options
    judged: JudgedFile


class SeveralScores:
    """Scoring of several bitexts; it names unreadable ones at the end, and scores the others.

    Args:
        options: of the run.
        bitexts: the bitexts found in the input.
        open_bitext: function that opens one bitext.
        open_model: function that loads the model; called once, when a finished output is compared
            or after the first bitext is opened.
        checks: plan of the checks of the run.
        common: see ``OutputFolder``.
        lines: gets the report.
        failures: gets one line for each bitext that could not be scored.
    """

    def __init__(
        self,
        options: _Options,
        bitexts: Bitexts,
        *,
        open_bitext: Callable[[_Options], Stream],
        open_model: Callable[[], tuple[Encode, str]],
        checks: CheckPlan,
        common: Collection[str],
        lines: list[str],
        failures: list[str],
    ) -> None:
        _check_several(options)
        self.options = options
        # An answered sheet may be in the folder, and is no bitext.
        labels = as_path(options.labels)
        found = [one for one in bitexts.found if labels is None or not _is_same(one.path, labels)]
        self.bitexts = bitexts._replace(found=found)
        self.judging = begin_judging(options, by_file=True)
        self.open_bitext = open_bitext
        self.open_model = functools.cache(open_model)
        self.lines = lines
        facts: dict[str, Any] = {}
        # The checks of ``all`` depend on the installed packages. Finished outputs stay valid if a
        # check is only measured for a review sheet.
        if options.checks:
            facts["measured"] = list(checks.columns)
        # Changed answers change the outputs.
        if labels is not None:
            facts["labels"] = sha256_file(labels)
        self.outputs = OutputFolder(
            options,
            journal=_JOURNAL,
            ignored=_NOT_SETTINGS,
            word="scored",
            lines=lines,
            failures=failures,
            model=lambda: self.open_model()[1],
            facts=facts,
            common=common,
            # A review sheet needs the pairs of all bitexts.
            is_anew=options.review is not None,
        )

    @property
    def is_folder(self) -> bool:
        """True if the output is a folder: it exists as one, or its name has no suffix."""
        return self.options.output is not None and is_output_folder(self.options.output)

    def to_folder(self, write: Callable[[ScoreJob, Stream, Encode, str], list[str]]) -> None:
        """Write one output for each bitext; those that an earlier run finished are left as is."""
        folder = Path(os.fspath(self.options.output or ""))
        jobs = self._jobs(folder)

        def write_one(one: _Options) -> list[str]:
            # The first pair is read before the model is loaded.
            stream = self.open_bitext(one)
            Path(os.fspath(one.output)).parent.mkdir(parents=True, exist_ok=True)
            return write(self._scored_as(one), stream, *self.open_model())

        skipped = self.outputs.run(jobs, write_one)
        self._report_all(len(jobs), skipped)

    def rows(self, scored: _Scored) -> Iterator[PairRow]:
        """Yield the kept pairs of all bitexts, with a column ``file``."""
        for job in self._one_output():
            with self.outputs.noting_failure():
                yield from self._rows_of(job, scored)
        self._report_all(len(self.bitexts.found))

    def resumed_rows(self, scored: _Scored, folder: Path) -> Iterator[PairRow]:
        """Yield the same pairs as ``rows``, and keep those of each finished bitext in a folder.

        Args:
            scored: opens the scored pairs of a bitext.
            folder: for these pairs; those of an earlier run with equal inputs are reused.
        """
        folder.mkdir(exist_ok=True)
        journal = Journal(folder / _JOURNAL)
        parts = journal.resume(self.outputs.settings(), remedy=f"remove {folder.parent}")
        done = {part["output"]: part for part in parts if isinstance(part, dict)}
        skipped = 0
        for job in self._one_output():
            name = job.label
            part = folder / f"{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}.jsonl"
            with self.outputs.noting_failure():
                if self.outputs.is_done(done.get(name), job, part):
                    skipped += 1
                else:
                    # Pairs of a bitext that turns out to be damaged do not get into the output.
                    with atomic_write(part) as file:
                        file.writelines(map(_row_line, self._rows_of(job, scored)))
                    journal.add({"output": name, **self.outputs.state(job, part)})
                with open(part, encoding="utf-8", newline="\n") as lines:
                    yield from map(_row_of_line, lines)
        if skipped:
            self.lines.append(f"{count_of(skipped, 'files')} finished by an earlier run")
        self._report_all(len(self.bitexts.found), skipped)

    def _one_output(self) -> Iterator[OutputJob]:
        """Yield a job for each bitext, if all bitexts have one common output."""
        for bitext in self.bitexts.found:
            one = dataclasses.replace(self.options, bitext=bitext.path, output=None)
            yield OutputJob(bitext.label, one, _files_of(bitext))

    def _rows_of(self, job: OutputJob, scored: _Scored) -> Iterator[PairRow]:
        """Yield the kept pairs of a bitext; its report is complete at the end."""
        stream = self.open_bitext(job.options)
        lines: list[str] = []
        model = self.open_model()
        with scored(self._scored_as(job.options), stream, *model, lines) as (_, rows):
            for row in rows:
                if not row.reasons:
                    yield _with_file(row, job.label)
        self.outputs.report(job.label, lines)

    def _scored_as(self, options: _Options) -> ScoreJob:
        labels = {bitext.path: bitext.label for bitext in self.bitexts.found}
        return ScoreJob(options, JudgedFile(self.judging, labels[options.bitext]))

    def _jobs(self, folder: Path) -> list[OutputJob]:
        """Return the bitexts to score, with their outputs.

        Raises:
            ConfigError: an output is also an input, or two bitexts have the same output.
        """
        jobs = []
        outputs = []
        for bitext in self.bitexts.found:
            output = folder / _output_name(bitext, self.options.format)
            made = dataclasses.replace(self.options, bitext=bitext.path, output=output)
            jobs.append(OutputJob(bitext.label, made, _files_of(bitext)))
            if not is_same_xliff(bitext.path, made.input_format, output, made.format):
                outputs.append(output)
        inputs = [part for job in jobs for part in job.inputs]
        keep_inputs([*outputs, self.options.review], inputs)
        return jobs

    def _report_all(self, count: int, skipped: int = 0) -> None:
        """Write the review sheet, and add the last lines of the report."""
        from interlingua.mining.review import write_review

        files = [bitext.label for bitext in self.bitexts.found]
        is_whole = not skipped and not self.outputs.failures
        self.lines += self.judging.report(files, is_whole=is_whole)
        if self.judging.sampler is not None:
            self.lines += write_review(self.options.review, self.judging.sampler, None)
        if self.bitexts.others:
            others = count_of(self.bitexts.others, "files")
            self.lines.append(f"skipped: {others} of other formats")
        self.outputs.report_all(count)


def is_same_xliff(
    file: PathLike | None, input_format: str | None, output: PathLike | None, format: str | None
) -> bool:
    """Return whether an XLIFF file is to be overwritten by its copy with scores."""
    from interlingua.corpus.formats.bitext import guess_format

    if file is None or output is None or not _is_same(file, output):
        return False
    return (input_format or guess_format(file)) == (format or guess_format(output)) == "xliff"


def _check_several(options: _Options) -> None:
    """Refuse options that are for one bitext.

    Raises:
        ConfigError: one of them is used.
    """
    for name in ("learn", "parallel", "rejected", "bad_lines"):
        if getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise ConfigError(
                f"--{option} requires a single bitext, found several; remove it, or pass one file"
            )


def _output_name(bitext: Bitext, format: str | None) -> str:
    """Return the path of an output below the folder: that of the input, often with another suffix.

    The suffix is that of the requested format. Without a request, ``.tsv`` is appended to the name
    of an input in a format that the output cannot have.
    """
    from interlingua.corpus.formats.bitext import READ_ONLY, guess_format

    # "app.xliff" becomes "app.jsonl" if that format is requested.
    if format is not None:
        stem = bitext.label.removesuffix(stem_and_suffix(bitext.label)[1])
        return f"{stem}.{format}"
    try:
        is_written = guess_format(bitext.path) not in (*READ_ONLY, "moses", "opus")
    except InterlinguaError:
        is_written = False
    return bitext.label if is_written else f"{bitext.label}.tsv"


def _with_file(row: PairRow, label: str) -> PairRow:
    """Return a row with the name of its file as the first additional column."""
    from interlingua.corpus.formats.bitext import PairWithFields, TextPair, pair_fields

    # It is added like a column of the input, so that a plain TSV gets a header line.
    fields = {_FILE: label, **pair_fields(row.pair)}
    pair = PairWithFields.of(TextPair(*row.pair), fields)
    extra = (_FILE, *(name for name in row.extra if name != _FILE))
    columns = {**row.columns, _FILE: label}
    return row._replace(pair=pair, columns=columns, extra=extra, has_tags=True)


def _row_line(row: PairRow) -> str:
    """Return a kept row as a line of JSON; ``_row_of_line`` reads it."""
    from interlingua.corpus.formats.bitext import pair_fields

    codes = [(str(code), region_of(code)) for code in row.pair[2:4]]
    values = [
        *(row.pair.source, row.pair.target, codes, row.pair.score),
        *(dict(pair_fields(row.pair)), dict(row.columns), row.extra),
    ]
    return json.dumps(values) + "\n"


def _row_of_line(line: str) -> PairRow:
    from interlingua.corpus.formats.bitext import PairWithFields, TextPair
    from interlingua.mining.writer import PairRow

    source, target, codes, score, fields, columns, extra = parse_json(line)
    own, other = [LanguageCode(*code) for code in codes]
    pair = TextPair(source, target, own, other, score)
    row = PairRow(PairWithFields.of(pair, fields), columns, [], extra=tuple(extra))
    return row._replace(has_tags=True)


def _files_of(bitext: Bitext) -> tuple[str, ...]:
    """Return the one or two files of a bitext."""
    if os.path.exists(bitext.path):
        return (bitext.path,)
    return tuple(bitext.path.split(","))


def _is_same(first: PathLike, second: PathLike) -> bool:
    return os.path.realpath(first) == os.path.realpath(second)


def write_all(several: SeveralScores, scored: _Scored, stdout: TextIO | None) -> None:
    """Write the pairs of all bitexts to one output.

    A run that was interrupted resumes from the folder ``OUTPUT.parts``, which is removed when the
    output is complete.

    Args:
        several: the bitexts.
        scored: opens the scored pairs of a bitext.
        stdout: standard output.
    """
    from interlingua.mining.filter import output_format
    from interlingua.mining.work_folder import at_work
    from interlingua.mining.writer import write_rows

    options = several.options
    inputs = [part for one in several.bitexts.found for part in one.path.split(",")]
    keep_inputs([options.output, options.review], inputs)
    write = functools.partial(
        write_rows,
        format=output_format(options.output, options.format),
        columns=listed(options.columns),
        stdout=stdout,
    )
    if options.output is None or is_special(options.output):
        write(several.rows(scored), options.output)
        return
    folder = Path(f"{os.fspath(options.output)}.parts")
    with at_work(
        folder, keep=False, options=options, parts=_PARTS, remedy=f"remove {folder}"
    ) as work:
        write(several.resumed_rows(scored, work.path / _ROWS), options.output)
