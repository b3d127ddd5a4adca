"""Score the bitexts of a folder or a pattern, with one model, to one output each or one for all."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from interlingua.config.options import listed
from interlingua.errors import ConfigError, InterlinguaError, count_of
from interlingua.storage.files import PathLike, stem_and_suffix
from interlingua.storage.remote import keep_inputs
from interlingua.verbs.parts.output_folder import OutputFolder, OutputJob
from interlingua.verbs.parts.shared_options import is_output_folder

if TYPE_CHECKING:
    from interlingua.corpus.formats.localization.bitext_folders import Bitext, Bitexts
    from interlingua.encoder.protocol import Encode
    from interlingua.mining.score import Stream
    from interlingua.mining.writer import PairRow

_JOURNAL = "score.journal"
_FILE = "file"
_NOT_SETTINGS = (
    *("bitext", "output", "bad_lines", "work", "device", "batch_tokens", "max_line"),
    *("learn", "labels", "parallel", "rejected", "review", "review_rows"),
)
"""Options that do not change the output, and those of one bitext."""
_Options = Any
"""Options of ``verbs.score``, which imports this module: named there, it would be a circle."""


class SeveralScores:
    """Scores several bitexts; one that can't be read is named at the end, and the rest is done.

    Args:
        options: of the run.
        bitexts: found by it.
        open_bitext: opens one.
        open_model: loads the model; called once, when the first bitext is open.
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
        lines: list[str],
        failures: list[str],
    ) -> None:
        _check_several(options)
        self.options = options
        self.bitexts = bitexts
        self.open_bitext = open_bitext
        self.open_model = functools.cache(open_model)
        self.lines = lines
        self.outputs = OutputFolder(
            options,
            journal=_JOURNAL,
            ignored=_NOT_SETTINGS,
            word="scored",
            lines=lines,
            failures=failures,
        )

    @property
    def is_folder(self) -> bool:
        """True if the output is a folder: it exists as one, or its name has no suffix."""
        return self.options.output is not None and is_output_folder(self.options.output)

    def to_folder(self, write: Callable[[_Options, Stream, Encode, str], list[str]]) -> None:
        """Write one output for each bitext; those that an earlier run finished are left as is."""
        folder = Path(os.fspath(self.options.output or ""))
        jobs = self._jobs(folder)

        def write_one(one: _Options) -> list[str]:
            # The first pair is read before the model is loaded.
            stream = self.open_bitext(one)
            Path(os.fspath(one.output)).parent.mkdir(parents=True, exist_ok=True)
            return write(one, stream, *self.open_model())

        self.outputs.run(jobs, write_one)
        self._report_all(len(jobs))

    def rows(
        self,
        scored: Callable[..., contextlib.AbstractContextManager[tuple[Any, Iterator[PairRow]]]],
    ) -> Iterator[PairRow]:
        """Yield the kept pairs of all bitexts, with a column ``file``."""
        for bitext in self.bitexts.found:
            one = dataclasses.replace(self.options, bitext=bitext.path, output=None)
            with self.outputs.noting_failure():
                stream = self.open_bitext(one)
                lines: list[str] = []
                with scored(one, stream, *self.open_model(), lines) as (_, rows):
                    for row in rows:
                        if not row.reasons:
                            yield _with_file(row, bitext.label)
                self.outputs.report(bitext.label, lines)
        self._report_all(len(self.bitexts.found))

    def _jobs(self, folder: Path) -> list[OutputJob]:
        """Return the bitexts to score, with their outputs.

        Raises:
            ConfigError: an output is read as well, or two bitexts have one output.
        """
        jobs = []
        outputs = []
        for bitext in self.bitexts.found:
            output = folder / _output_name(bitext, self.options.format)
            made = dataclasses.replace(self.options, bitext=bitext.path, output=output)
            jobs.append(OutputJob(bitext.label, made, _files_of(bitext)))
            if not is_same_xliff(bitext.path, made.input_format, output, made.format):
                outputs.append(output)
        keep_inputs(outputs, [part for job in jobs for part in job.inputs])
        return jobs

    def _report_all(self, count: int) -> None:
        """Add the last lines of the report."""
        if self.bitexts.others:
            others = count_of(self.bitexts.others, "files")
            self.lines.append(f"skipped: {others} of other formats")
        self.outputs.report_all(count)


def is_same_xliff(
    file: PathLike | None, input_format: str | None, output: PathLike | None, format: str | None
) -> bool:
    """Return whether an XLIFF file is to be replaced by itself with scores."""
    from interlingua.corpus.formats.bitext import guess_format

    if file is None or output is None or os.path.realpath(file) != os.path.realpath(output):
        return False
    return (input_format or guess_format(file)) == (format or guess_format(output)) == "xliff"


def _check_several(options: _Options) -> None:
    """Refuse options that are for one bitext.

    Raises:
        ConfigError: one of them is used.
    """
    for name in ("learn", "labels", "parallel", "rejected", "review", "bad_lines"):
        if getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise ConfigError(
                f"--{option} requires a single bitext, found several; remove it, or pass one file"
            )


def _output_name(bitext: Bitext, format: str | None) -> str:
    """Return the path of an output: that of the input, in the requested or a written format."""
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
    """Return a row with the name of its file as a first further column."""
    from interlingua.corpus.formats.bitext import PairWithFields, TextPair, pair_fields

    # As a column of the input, so that a plain TSV gets a first line of names.
    fields = {_FILE: label, **pair_fields(row.pair)}
    pair = PairWithFields.of(TextPair(*row.pair), fields)
    extra = (_FILE, *(name for name in row.extra if name != _FILE))
    return row._replace(pair=pair, columns={**row.columns, _FILE: label}, extra=extra)


def _files_of(bitext: Bitext) -> tuple[str, ...]:
    """Return the one or two files of a bitext."""
    if os.path.exists(bitext.path):
        return (bitext.path,)
    return tuple(bitext.path.split(","))


def write_all(several: SeveralScores, rows: Iterator[PairRow], stdout: TextIO | None) -> None:
    """Write the pairs of all bitexts to one output."""
    from interlingua.mining.filter import output_format
    from interlingua.mining.writer import write_rows

    options = several.options
    inputs = [part for one in several.bitexts.found for part in one.path.split(",")]
    keep_inputs([options.output], inputs)
    write_rows(
        rows,
        options.output,
        format=output_format(options.output, options.format),
        columns=listed(options.columns),
        stdout=stdout,
    )
