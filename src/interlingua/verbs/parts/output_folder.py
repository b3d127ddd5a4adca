"""One output for each of several inputs, in a folder; a second run skips unchanged inputs."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from interlingua.config.options import declared
from interlingua.errors import ConfigError, InterlinguaError, count_of
from interlingua.storage.files import sha256_file
from interlingua.storage.journal import Journal


class OutputJob(NamedTuple):
    """An input, the options of the verb for this input only, and its name in reports."""

    label: str
    options: Any
    inputs: tuple[str, ...]


class OutputFolder:
    """Runner of a verb for several inputs; it reports failed inputs after it has done the others.

    Args:
        options: of the run; the output is the folder.
        journal: name of the file of finished outputs, in that folder.
        ignored: names of options that do not change what is written.
        word: word for a finished input in the report, such as scored or mined.
        lines: gets the report.
        failures: gets one line for each input that failed.
        model: function that returns the identity of the model. It is not called before this
            identity is compared or recorded, because it may load the model.
        facts: values that determine the outputs in addition to the options and the inputs.
        common: lines of a report that concern the whole run. Each of them is added once, at the
            end, if the report of an input has it.
        is_anew: finished outputs are made again.
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
        model: Callable[[], str],
        facts: Mapping[str, Any] = MappingProxyType({}),
        common: Collection[str] = (),
        is_anew: bool = False,
    ) -> None:
        self.options = options
        self.journal = journal
        self.ignored = ignored
        self.word = word
        self.lines = lines
        self.failures = failures
        self.model = model
        # A calibration or a glossary may be another one under the same name.
        self.facts = {**_digests_of_options(options, ignored), **facts}
        self.common = common
        self.is_anew = is_anew
        self._found_common: set[str] = set()

    def run(self, jobs: Sequence[OutputJob], do: Callable[[Any], list[str]]) -> int:
        """Write the outputs; those that an earlier run finished are left as is.

        Args:
            jobs: the inputs.
            do: function that writes the output for given options, and returns its report.

        Returns:
            The number of inputs that an earlier run finished.
        """
        folder = Path(os.fspath(self.options.output or ""))
        folder.mkdir(parents=True, exist_ok=True)
        # A line of the journal is added when the output is whole on the disk.
        journal = Journal(folder / self.journal)
        remedy = f"use another --output, or remove {journal.path}"
        parts = journal.resume(self.settings(), remedy=remedy)
        done = {part["output"]: part for part in parts if isinstance(part, dict)}
        # Equal inputs and an unchanged output: the job is not done again.
        skipped = 0
        for job in jobs:
            output = Path(os.fspath(job.options.output or ""))
            name = os.path.relpath(output, folder)
            if self.is_done(done.get(name), job, output):
                skipped += 1
                continue
            with self.noting_failure():
                self.report(job.label, do(job.options))
                journal.add({"output": name, **self.state(job, output)})
        if skipped:
            self.lines.append(
                f"{count_of(skipped, 'files')} finished by an earlier run; to do all files again,"
                f" {remedy}"
            )
        return skipped

    def state(self, job: OutputJob, output: Path) -> dict[str, Any]:
        """Return the facts and digests of a finished input."""
        return {
            "inputs": _digests(job),
            "digest": sha256_file(output),
            "model": self.model(),
            **self.facts,
        }

    def is_done(self, part: Any, job: OutputJob, output: Path) -> bool:
        """Return whether an earlier run wrote an output from the same inputs with the same model.

        The output must be unchanged.
        """
        if self.is_anew or part is None or not output.is_file():
            return False
        own = ("output", "inputs", "digest", "model")
        others = {key: part[key] for key in part if key not in own}
        if others != self.facts or sha256_file(output) != part.get("digest"):
            return False
        # The options have only the model's name. A model trained again has the same name.
        if self.model() != part.get("model"):
            return False
        # A file that was overwritten by its copy with scores is no longer the original input.
        if os.path.realpath(job.inputs[0]) == os.path.realpath(output):
            return True
        return bool(_digests(job) == part.get("inputs"))

    @contextlib.contextmanager
    def noting_failure(self) -> Iterator[None]:
        """Note the error of an input, and continue with the next."""
        try:
            yield
        except ConfigError:
            # A wrong option is wrong for all inputs.
            raise
        except InterlinguaError as error:
            self.failures.append(str(error))

    def report(self, label: str, lines: Iterable[str]) -> None:
        """Add the report of one input."""
        for line in lines:
            if line in self.common:
                self._found_common.add(line)
            else:
                self.lines.append(f"{label}: {line}")

    def report_all(self, count: int) -> None:
        """Add the last lines of the report."""
        self.lines += [line for line in self.common if line in self._found_common]
        self.lines += [f"not {self.word}: {failure}" for failure in self.failures]
        failed = f"{len(self.failures):,} not {self.word}"
        self.lines.append(f"{count_of(count, 'files')}, {failed}")

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the outputs, for the journal."""
        # Numbers and texts are stored unchanged, so that an error can name the difference.
        values = {
            field.name: getattr(self.options, field.name)
            for field in dataclasses.fields(self.options)
            if field.name not in self.ignored
        }
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """Return an option's value for JSON; for a function its name, which is the same in each run."""
    if value is None or isinstance(value, str | int | float):
        return value
    if inspect.isroutine(value):
        return f"{value.__module__}:{value.__qualname__}"
    return str(value)


def _digests_of_options(options: Any, ignored: Sequence[str]) -> dict[str, str]:
    """Return the digests of files that options name, such as a calibration, by option."""
    found = {}
    for field, declaration in declared(type(options)):
        path = getattr(options, field.name)
        if declaration.reads == "file" and field.name not in ignored and path is not None:
            found[field.name] = sha256_file(path)
    return found


def _digests(job: OutputJob) -> list[str]:
    return [sha256_file(path) for path in job.inputs]
