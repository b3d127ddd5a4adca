"""Embedding of files of lines to files of vectors, by this process or by workers.

Lines are read in windows, as in ``encode``, so that memory does not grow with a file. With
workers (several GPUs, or a Ray cluster) windows go out as tasks and their vectors come back in the
order of the lines. A folder of vectors keeps a record of the finished files, so that a killed run
resumes where it stopped.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.sentence_table import (
    ColumnChoice,
    is_table,
    read_column,
    refuse_column,
)
from interlingua.encoder.encode import EncodeReport, collect_vectors, windows
from interlingua.encoder.files.device_processes import on_devices
from interlingua.encoder.files.parquet_vectors import ParquetVectors, is_parquet, require_pyarrow
from interlingua.encoder.finite_vectors import check_finite
from interlingua.encoder.protocol import Encode
from interlingua.errors import ConfigError, DamagedFileError, DataError, count_of
from interlingua.runtime.progress import SILENT, Progress
from interlingua.runtime.workers import Workers, connected
from interlingua.storage.files import PathLike, count_lines, open_text, stem_and_suffix
from interlingua.storage.formats import EMBEDDED
from interlingua.storage.limits import guard_lines
from interlingua.storage.locks import exclusive
from interlingua.storage.record import RecordError, read_record, write_record
from interlingua.storage.remote import (
    check_writable,
    destination,
    exists,
    expand_pattern,
    fetch_file,
    is_remote,
    keep_inputs,
    name_of,
    size_of,
    state,
)

_STANDARD_INPUT = "-"
_RECORD = "embedded.json"
"""Record of a folder of vectors: the model, and the finished files."""


class Made(NamedTuple):
    """A written file of vectors: number and width of the vectors, and the type of their numbers."""

    rows: int
    width: int
    dtype: str

    @classmethod
    def of(cls, vectors: Float32[ndarray, "n d"]) -> Made:
        """Describe vectors that may map a file; no reference to them is kept."""
        return cls(len(vectors), vectors.shape[1], str(vectors.dtype))


class VectorOutput(NamedTuple):
    """Destination of the vectors of some files; see ``vector_output``.

    Attributes:
        path: a ``.npy`` file, one ``.parquet`` file for all texts, or a folder.
        names: the files that are read.
    """

    path: str
    names: list[str]

    @property
    def to_folder(self) -> bool:
        """True if each file that is read gets a file of vectors in a folder."""
        return not self.to_parquet and (len(self.names) > 1 or self.path.endswith("/"))

    @property
    def to_parquet(self) -> bool:
        """True if the lines of all files and their vectors go into one Parquet file."""
        return is_parquet(self.path) and not os.path.isdir(self.path)

    @property
    def bad_lines(self) -> Path:
        """The file for lines that can't be read; it is local even if the vectors are remote."""
        if is_remote(self.path):
            return Path(f"{name_of(self.path.rstrip('/'))}.bad-lines.tsv")
        if self.to_folder:
            return Path(self.path, "bad-lines.tsv")
        return Path(f"{self.path}.bad-lines.tsv")

    def targets(self) -> dict[str, str]:
        """Return the file of vectors of each file that is read.

        Raises:
            ConfigError: two files would have the same file of vectors.
        """
        if self.to_parquet:
            return dict.fromkeys(self.names, self.path)
        if not self.to_folder:
            return {self.names[0]: self.path}
        folder = self.path.rstrip("/")
        targets = {}
        for name in self.names:
            stem, _ = stem_and_suffix(name_of(name))
            targets[name] = f"{folder}/{stem}.npy"
        # a/text.txt and b/text.txt would overwrite each other.
        if len(set(targets.values())) < len(self.names):
            raise ConfigError(
                f"{len(self.names)} files: two or more have the same name, so their outputs"
                " would overwrite each other; embed them separately"
            )
        return targets


def vector_output(files: Sequence[str], path: str) -> VectorOutput:
    """Return the destination of the vectors of files.

    Args:
        files: of lines, ``.csv``, ``.xlsx``, addresses or patterns; ``-`` is standard input.
        path: see ``VectorOutput``.

    Raises:
        ConfigError: vectors cannot be written to a file with such a name.
    """
    if _STANDARD_INPUT in files and (len(files) > 1 or path.endswith("/")):
        raise ConfigError(
            "standard input cannot be combined with other files or an output folder; name one"
            " .npy or .parquet file"
        )
    suffix = Path(name_of(path)).suffix
    is_npy = suffix.lower() in ("", ".npy") or path.endswith("/") or os.path.isdir(path)
    if is_parquet(path) and not os.path.isdir(path):
        require_pyarrow()
    elif not is_npy:
        raise ConfigError(
            f"{path}: expected .npy or .parquet, found {suffix}; name OUT.npy, OUT.parquet"
            " (texts and vectors), or a folder that ends with /"
        )
    names = dict.fromkeys(name for pattern in files for name in expand_pattern(pattern))
    return VectorOutput(path, list(names))


def embed_files(
    encode: Encode,
    output: VectorOutput,
    *,
    model: str,
    column: ColumnChoice = None,
    language: str | None = None,
    on_error: str = "stop",
    ray: str | None = None,
    ray_cores: int = 1,
    devices: int = 1,
    device: str | None = None,
    progress: Progress = SILENT,
) -> list[str]:
    """Embed files and write their vectors.

    Args:
        encode: see ``Encode``; also takes ``out`` and ``report``, as ``Encoder.encode`` does.
        output: the files, and where their vectors go.
        model: identity of the model and its settings; a folder with vectors of another model or
            other settings is refused.
        column: the column to read from tables; None = the one named after ``language``, or
            ``text``.
        language: of the lines, if the model needs it.
        on_error: how to handle lines that can't be read, see ``BadLines``.
        ray: address of a Ray cluster that shares the work, not used with several ``devices``; None
            = this machine.
        ray_cores: cores of each task on the cluster.
        devices: processes of this machine that share the work.
        device: of these processes, ``cpu`` or ``cuda``; None = GPUs if there are any.
        progress: counts the lines.

    Returns:
        The report, in lines.

    Raises:
        ConfigError: an output would replace a file that is read.
    """
    targets = output.targets()
    for name in targets:
        refuse_column(column, name)
    keep_inputs(set(targets.values()), output.names)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_alone(output))
        bad = stack.enter_context(BadLines(on_error, output.bad_lines))
        started = time.perf_counter()
        report = EncodeReport()
        record: _Record | None = None
        left = list(targets)
        if output.to_folder:
            record = _Record(output.path, model)
            left = [name for name in targets if not record.has(name, targets[name])]
        # Checked before hours of work; all targets are in one folder, so one check is enough.
        if left:
            check_writable(targets[left[0]])
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        workers: Workers | None
        if devices > 1:
            workers = stack.enter_context(on_devices(devices, device))
        else:
            workers = stack.enter_context(connected(ray, cores=ray_cores))
        sentences = partial(read_column, column=column, language=language, bad=bad)
        count = _Count(left, progress, sentences, skips=bad.skips)
        work = _Work(encode, Path(scratch), report, count, workers, sentences, bad)
        made: list[Made] = []
        if output.to_parquet:
            made.append(work.parquet(output.names, output.path))
        else:
            for name, vectors in work.files(left, targets):
                made.append(vectors)
                if record is not None:
                    record.add(name, targets[name])
        before = len(targets) - len(left)
        lines = _summary(output.path, made, before, report, time.perf_counter() - started)
    return [*lines, *bad.lines()]


def _alone(output: VectorOutput) -> contextlib.AbstractContextManager[None]:
    """Hold a lock on a folder of vectors against other runs; a remote store has no locks."""
    if not output.to_folder or is_remote(output.path):
        return contextlib.nullcontext()
    folder = Path(output.path.removeprefix("file://"))
    return exclusive(folder, remedy="choose another --output folder")


def _summary(
    output: str, made: Sequence[Made], before: int, report: EncodeReport, seconds: float
) -> list[str]:
    """Return the report of a run, in lines."""
    rows = sum(one.rows for one in made)
    # A part of the report is empty if it has nothing to report.
    width = 0
    dtype = "float32"
    if made:
        width = max(one.width for one in made)
        dtype = made[0].dtype
    files = ""
    if output.endswith("/") or len(made) + before > 1:
        files = f"{len(made)} files, "
    # If a function or a file gives the vectors, the number of tokens is unknown.
    rate = f"{seconds:.1f} s, {report.texts / seconds:,.0f} lines/s"
    if report.tokens:
        rate += f", {report.tokens / seconds:,.0f} tokens/s"
    skipped = f"; {before} existing files were kept" if before else ""
    lines = [f"{output}: {files}{rows:,} x {width} {dtype}, {rate}{skipped}"]
    if report.cut_rows:
        lines.append(report.cuts)
    return lines


@dataclass(frozen=True, slots=True)
class _Work:
    """Task that embeds files, one or several at a time, and writes their vectors."""

    encode: Encode
    scratch: Path
    report: EncodeReport
    count: _Count
    workers: Workers | None
    sentences: Callable[[PathLike], Iterator[str]]
    bad: BadLines

    def files(self, names: Sequence[str], targets: dict[str, str]) -> Iterator[tuple[str, Made]]:
        """Yield each file after its vectors are written."""
        if self.workers is None:
            for name in names:
                with self._lines(name) as lines, destination(targets[name], self.scratch) as path:
                    # No variable holds the vectors, since the file that they map is moved after
                    # the block.
                    made = Made.of(
                        self.encode(
                            lines, out=path, report=self.report, show_progress_bar=self.count
                        )
                    )
                yield name, made
            return
        # Windows come back in the order of sending, so that the windows of a file are neighbors.
        for name, parts in itertools.groupby(self._embedded(names), key=lambda part: part[0]):
            with destination(targets[name], self.scratch) as path:
                made = Made.of(collect_vectors((vectors for _, _, vectors in parts), 0, path))
            yield name, made

    def parquet(self, names: Sequence[str], target: str) -> Made:
        """Write all files, one after the other, to one Parquet file of lines and vectors."""
        with destination(target, self.scratch) as path, ParquetVectors(path) as table:
            for name, parts in itertools.groupby(self._embedded(names), key=lambda part: part[0]):
                row = 0
                for _, texts, vectors in parts:
                    # The error names the file and the line, counted from 1.
                    check_finite(vectors, lambda at, name=name, row=row: f"{name}:{row + at + 1}")  # type: ignore[misc]
                    table.write(texts, vectors)
                    row += len(texts)
        return Made(table.rows, table.width, table.dtype)

    def _embedded(
        self, names: Sequence[str]
    ) -> Iterator[tuple[str, list[str], Float32[ndarray, "n d"]]]:
        """Yield the lines of the files with their vectors, a window at a time."""
        portions = ((name, texts) for name in names for texts in self._windows(name))
        if self.workers is None:
            for name, texts in portions:
                vectors = self.encode(texts, report=self.report, show_progress_bar=self.count)
                yield name, texts, vectors
            return
        # One copy of the windows goes to the workers, which are some windows ahead and return
        # vectors in the same order.
        sent, kept = itertools.tee(portions)
        tasks = ((self.encode, texts) for _, texts in sent)
        found = self.workers.run(embed_window, tasks, encodes=True)
        for (vectors, report), (name, texts) in zip(found, kept, strict=True):
            self.report.max_tokens = report.max_tokens
            # Added before the texts are counted: until then `texts` is the number of the first row.
            self.report.cut_rows.extend(self.report.texts + row for row in report.cut_rows)
            self.report.texts += report.texts
            self.report.tokens += report.tokens
            self.count.advance(len(vectors))
            yield name, texts, vectors

    def _windows(self, name: str) -> Iterator[list[str]]:
        """Yield the lines of a file in windows; if it has no lines, yield one empty window.

        Without that window an empty file would have no task, and so no file of vectors.
        """
        is_empty = True
        with self._lines(name) as lines:
            for texts in windows(lines):
                is_empty = False
                yield texts
        if is_empty:
            yield []

    @contextlib.contextmanager
    def _lines(self, name: str) -> Iterator[Iterator[str]]:
        """Open a file until the block ends, and provide its lines without line ends.

        Blank lines stay, so that row i is line i.
        """
        if name == _STANDARD_INPUT:
            try:
                stream = guard_lines(sys.stdin.buffer, name)
                decoded = io.TextIOWrapper(stream, encoding="utf-8", errors=self.bad.errors)
                yield self._read(decoded, name)
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                raise DataError(
                    f"not UTF-8 (byte 0x{byte:02x}); convert it to UTF-8", path="-"
                ) from error
            return
        path = fetch_file(name, self.scratch / "fetched")
        self.count.open(name, path)
        if is_table(path):
            yield self.sentences(path)
        else:
            yield self._text(path)
        # Fetched files are removed as soon as they are read: the scratch folder holds one file at a
        # time.
        if is_remote(name):
            path.unlink()

    def _read(self, lines: Iterable[str], path: PathLike) -> Iterator[str]:
        """Yield the lines; an unreadable one is yielded as blank, so that row i is line i."""
        for number, line in enumerate(lines, 1):
            yield line.rstrip("\r\n") if self.bad.is_text(line, path, number) else ""

    def _text(self, path: PathLike) -> Iterator[str]:
        """Yield the lines of a text file, or those before the position where it is damaged."""
        count = 0
        try:
            with open_text(path, errors=self.bad.errors) as text:
                for line in self._read(text, path):
                    count += 1
                    yield line
        except DamagedFileError as error:
            self.bad.damaged(error, f"{count_of(count, 'lines')}", is_empty=not count)


def _is_stream(name: str) -> bool:
    """Return whether a file can be read only once: standard input, a pipe, a device."""
    return name == _STANDARD_INPUT or (os.path.exists(name) and not os.path.isfile(name))


class _Count(Progress):
    """Number of lines that are done, and of all lines.

    Until a remote file is fetched, it is assumed to have the average number of lines of the others.
    """

    def __init__(
        self,
        names: Sequence[str],
        progress: Progress,
        sentences: Callable[[PathLike], Iterator[str]],
        *,
        skips: bool = False,
    ) -> None:
        self.sentences = sentences
        self.skips = skips
        self.progress = progress
        self.files = len(names)
        self.done = 0.0
        # Counting the lines of a pipe would leave nothing to embed.
        self.has_total = all(is_remote(name) or not _is_stream(name) for name in names)
        self.lines: dict[str, int] = {}
        if self.has_total:
            self.lines = {name: self._count(name) for name in names if not is_remote(name)}
        else:
            self._start()

    def open(self, name: str, path: Path) -> None:
        """Register a file that is read now."""
        if name not in self.lines and self.has_total:
            self.lines[name] = self._count(path)
        self._start()

    def _count(self, path: PathLike) -> int:
        if is_table(path):
            return sum(1 for _ in self.sentences(path))
        try:
            return count_lines(path)
        except DamagedFileError:
            if not self.skips:
                raise
            # Where bad lines are skipped, the damage is reported when the file is read.
            return 0

    def _start(self) -> None:
        """Start the progress with the number of lines, estimated from the files counted so far."""
        total: float | None = None
        if self.has_total:
            total = sum(self.lines.values()) * self.files // max(1, len(self.lines))
        self.progress.start(total, "lines", "embedding", done=self.done)

    def advance(self, count: float = 1) -> None:
        """Count lines."""
        self.done += count
        self.progress.advance(count)


class _Record:
    """Finished files of a folder; the record in the folder is updated after each file.

    Args:
        folder: of vectors.
        model: identifier of the model.

    Raises:
        ConfigError: the folder holds vectors of another model.
    """

    def __init__(self, folder: str, model: str) -> None:
        self.path = f"{folder.rstrip('/')}/{_RECORD}"
        self.model = model
        self.files: dict[str, list[Any]] = {}
        if not exists(self.path):
            return
        with tempfile.TemporaryDirectory() as scratch:
            try:
                found = read_record(fetch_file(self.path, Path(scratch)), EMBEDDED)
                recorded_model = found["model"]
                self.files = dict(found["files"])
            except RecordError as error:
                # The message names the path that the user knows, which may be on another machine.
                raise RecordError(error.fault, EMBEDDED.remedy, path=self.path) from error
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(
                    "is damaged or incomplete; remove the file, or choose another folder",
                    path=self.path,
                ) from error
        # Vectors of two models in one folder could not be compared.
        if recorded_model != model:
            raise ConfigError(
                f"{folder}: the folder contains vectors of another model, prompt or settings;"
                " choose another folder"
            )

    def has(self, name: str, target: str) -> bool:
        """Return whether all vectors of a file exist and the file has not changed since."""
        # A size is known at once, also on another machine; a digest would read all vectors.
        return name in self.files and exists(target) and self.files[name] == _entry(name, target)

    def add(self, name: str, target: str) -> None:
        """Record one more file."""
        self.files[name] = _entry(name, target)
        with (
            tempfile.TemporaryDirectory() as scratch,
            destination(self.path, Path(scratch)) as path,
        ):
            write_record(path, EMBEDDED, {"model": self.model, "files": self.files})


def _entry(name: str, target: str) -> list[Any]:
    """Return the properties that change when a file does, and the size of its vectors in bytes."""
    return [state(name), size_of(target)]


def embed_window(encode: Encode, texts: list[str]) -> tuple[Float32[ndarray, "n d"], EncodeReport]:
    """Encode some lines of a file; return the vectors and a report."""
    report = EncodeReport()
    return encode(texts, report=report), report
