"""One output for each of several inputs, in a folder; a second run does what is new or changed."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from interlingua.errors import ConfigError, InterlinguaError, count_of
from interlingua.storage.files import sha256_file
from interlingua.storage.journal import Journal

_OWN_KEYS = {"output", "inputs", "digest"}
"""Keys of every entry of the journal."""


@dataclasses.dataclass(frozen=True)
class OutputJob:
    """An input, the options of the verb for only it, and its name in reports."""

    label: str
    options: Any
    inputs: tuple[str, ...]


_Job = TypeVar("_Job", bound=OutputJob)


class OutputFolder:
    """Runner of a verb for each input; reports unreadable inputs at the end and does the rest.

    Args:
        options: of the run; the output is the folder.
        journal: name of the file of finished outputs, in that folder.
        ignored: names of options that do not change the outputs.
        word: of a finished input in the report: scored, mined.
        lines: gets the report.
        failures: gets one line for each input that failed.
        also: digests of further files that change the outputs, by their names.
        again: do all inputs, also those that an earlier run finished.

    Attributes:
        skipped: inputs that an earlier run finished.
    """

    def __init__(
        self,
        options: Any,
        *,
        journal: str,
        ignored: Sequence[str],
        word: str,
        lines: list[str],
        failures: list[str],
        also: Mapping[str, str] | None = None,
        again: bool = False,
    ) -> None:
        self.options = options
        self.journal = journal
        self.ignored = ignored
        self.word = word
        self.lines = lines
        self.failures = failures
        self.also = dict(also or {})
        self.again = again
        self.skipped = 0
        self._done: dict[str, dict[str, Any]] = {}

    def run(self, jobs: Sequence[_Job], do: Callable[[_Job], list[str]]) -> None:
        """Write the outputs; those that an earlier run finished are left as is.

        Args:
            jobs: the inputs.
            do: writes the output of a job, and returns its report.
        """
        folder = Path(os.fspath(self.options.output or ""))
        remedy = f"use another --output, or remove {folder / self.journal}"
        journal = self.open_journal(folder, remedy)
        for job in jobs:
            output = Path(os.fspath(job.options.output or ""))
            name = os.path.relpath(output, folder)
            if self.is_finished(name, job, output):
                continue
            with self.noting_failure():
                self.report(job.label, do(job))
                journal.add(self.entry(name, job, output))
        if self.skipped:
            self.lines.append(
                f"{count_of(self.skipped, 'files')} finished by an earlier run; to do all files"
                f" again, {remedy}"
            )

    def open_journal(self, folder: Path, remedy: str) -> Journal:
        """Read the outputs that an earlier run finished, and return the journal for new ones.

        Args:
            folder: of the journal; it is made if there is none.
            remedy: for the user, if the settings of the earlier run differ.
        """
        folder.mkdir(parents=True, exist_ok=True)
        # A line of the journal is added when the output is whole on the disk.
        journal = Journal(folder / self.journal)
        parts = journal.resume(self._settings(), remedy=remedy)
        self._done = {part["output"]: part for part in parts if isinstance(part, dict)}
        return journal

    def is_finished(self, name: str, job: OutputJob, output: Path) -> bool:
        """Return whether an earlier run wrote an output from these inputs, and it is unchanged."""
        part = self._done.get(name)
        if self.again or part is None or not output.is_file():
            return False
        if sha256_file(output) != part.get("digest"):
            return False
        if any(part.get(key) != self.also.get(key) for key in {*self.also, *part} - _OWN_KEYS):
            return False
        # A file that was replaced by itself with scores is no input any more.
        is_same = os.path.realpath(job.inputs[0]) == os.path.realpath(output)
        if not is_same and _digests(job) != part.get("inputs"):
            return False
        self.skipped += 1
        return True

    def entry(self, name: str, job: OutputJob, output: Path) -> dict[str, Any]:
        """Return the entry of a finished output, for the journal."""
        return {
            "output": name,
            "inputs": _digests(job),
            "digest": sha256_file(output),
            **self.also,
        }

    @contextlib.contextmanager
    def noting_failure(self) -> Iterator[None]:
        """Note the error of an input, and continue with the next."""
        try:
            yield
        except ConfigError:
            # An option is wrong, and so it is for all of them.
            raise
        except InterlinguaError as error:
            self.failures.append(str(error))

    def report(self, label: str, lines: Iterable[str]) -> None:
        """Add the report of one input."""
        self.lines += [f"{label}: {line}" for line in lines]

    def report_all(self, count: int) -> None:
        """Add the last lines of the report."""
        self.lines += [f"not {self.word}: {failure}" for failure in self.failures]
        failed = f"{len(self.failures):,} not {self.word}"
        self.lines.append(f"{count_of(count, 'files')}, {failed}")

    def _settings(self) -> dict[str, Any]:
        """Return the settings that determine the outputs, for the journal."""
        # Numbers and texts as they are, so that an error names the difference.
        values = {
            field.name: getattr(self.options, field.name)
            for field in dataclasses.fields(self.options)
            if field.name not in self.ignored
        }
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """Return an option as JSON has it; a function is its name, which is the same in each run."""
    if value is None or isinstance(value, str | int | float):
        return value
    if inspect.isroutine(value):
        return f"{value.__module__}:{value.__qualname__}"
    return str(value)


def _digests(job: OutputJob) -> list[str]:
    return [sha256_file(path) for path in job.inputs]
