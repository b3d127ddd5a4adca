"""The whole of ``interlingua embed``: files of lines to files of vectors, here or by many workers."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.sentence_table import is_table, read_column, refuse_column
from interlingua.encoder.encode import EncodeReport, collect, windows
from interlingua.errors import ConfigError, DataError
from interlingua.files import PathLike, atomic_write, open_text, stem_and_suffix
from interlingua.json_text import parse_json
from interlingua.limits import guard_lines
from interlingua.locks import exclusive
from interlingua.mining.texts import count_lines
from interlingua.mining.workers import OnRay, connected
from interlingua.remote import (
    check_writable,
    destination,
    exists,
    expand,
    fetch,
    is_remote,
    keep_inputs,
    name_of,
    state,
)

STANDARD_INPUT = "-"
RECORD = "embedded.json"
"""In a folder of vectors: the model, and the files that are done."""
Encode = Callable[..., Float32[ndarray, "n d"]]
"""Lines -> vectors; takes ``out``, ``report`` and ``advance``, see ``interlingua.encoder.encode.encode``."""
Told = Callable[[float, int | None], None]
"""Is given the lines that are done, and all where that is known."""


class Made(NamedTuple):
    """A file of vectors.

    Attributes:
        rows: vectors.
        width: columns of one.
        dtype: of its numbers.
    """

    rows: int
    width: int
    dtype: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbedJob:
    """What ``interlingua embed --help`` says of the options of these names."""

    files: Sequence[str]
    output: str
    ray: str | None = None
    ray_cores: int = 1
    column: str | None = None
    language: str | None = None

    def __post_init__(self) -> None:
        if STANDARD_INPUT in self.files and (len(self.files) > 1 or self.output.endswith("/")):
            raise ConfigError("standard input is one text by itself; name one .npy file for it")
        suffix = Path(name_of(self.output)).suffix
        if suffix.lower() not in ("", ".npy") and not self.output.endswith("/") and not os.path.isdir(self.output):
            raise ConfigError(
                f"{self.output}: vectors are written as .npy, not {suffix}; name OUT.npy (numpy.load reads it), or a"
                " folder with / at its end"
            )

    def run(self, encode: Encode, *, model: str, progress: Told = lambda done, total: None) -> list[str]:
        """Does it.

        Args:
            encode: see ``Encode``.
            model: what tells the model and its settings: a folder with vectors of another is refused.
            progress: told the lines that are done.

        Returns:
            What there is to tell, in lines.
        """
        started, report = time.perf_counter(), EncodeReport()
        targets = self._targets()
        for name in targets:
            refuse_column(self.column, name)
        keep_inputs(targets.values(), self.names)
        with self._alone():
            return self._embed(encode, model, targets, report, started, progress)

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        """Keeps other runs out of a folder of vectors; a store elsewhere has no locks."""
        if not self.to_folder or is_remote(self.output):
            return contextlib.nullcontext()
        return exclusive(Path(self.output.removeprefix("file://")), remedy="choose another --output folder")

    def _embed(
        self,
        encode: Encode,
        model: str,
        targets: dict[str, str],
        report: EncodeReport,
        started: float,
        progress: Told,
    ) -> list[str]:
        record = _Record(self.output, model) if self.to_folder else None
        names = list(targets)
        left = [name for name in names if record is None or not record.has(name, targets[name])]
        for name in left[:1]:
            check_writable(targets[name])
        made: list[Made] = []
        with tempfile.TemporaryDirectory() as scratch, connected(self.ray, cores=self.ray_cores) as workers:
            count = _Count(left, progress, self._sentences)
            work = _Work(encode, Path(scratch), report, count, workers, self._sentences)
            for name, vectors in work.files(left, targets):
                made.append(vectors)
                if record is not None:
                    record.add(name)
        return self._told(made, len(names) - len(left), report, time.perf_counter() - started)

    def _sentences(self, path: PathLike) -> Iterator[str]:
        """Of a table."""
        return read_column(path, column=self.column, language=self.language)

    @property
    def names(self) -> list[str]:
        """The files, patterns filled in."""
        return list(dict.fromkeys(name for pattern in self.files for name in expand(pattern)))

    @property
    def to_folder(self) -> bool:
        """Whether there is a file of vectors for each of several."""
        return len(self.names) > 1 or self.output.endswith("/")

    def _targets(self) -> dict[str, str]:
        names = self.names
        if not self.to_folder:
            return {names[0]: self.output}
        targets = {name: f"{self.output.rstrip('/')}/{stem_and_suffix(name_of(name))[0]}.npy" for name in names}
        if len(set(targets.values())) < len(names):
            raise ConfigError(f"several of the {len(names)} files would go to one of the same name; embed them apart")
        return targets

    def _told(self, made: Sequence[Made], before: int, report: EncodeReport, seconds: float) -> list[str]:
        rows, width = sum(one.rows for one in made), max((one.width for one in made), default=0)
        tokens = f", {report.tokens / seconds:,.0f} tokens/s" if report.tokens else ""
        files = f"{len(made)} files, " if self.output.endswith("/") or len(made) + before > 1 else ""
        there = f"; {before} files were there" if before else ""
        rate = f"{seconds:.1f} s, {report.texts / seconds:,.0f} lines/s{tokens}"
        dtype = made[0].dtype if made else "float32"
        lines = [f"{self.output}: {files}{rows:,} x {width} {dtype}, {rate}{there}"]
        return [*lines, report.cuts] if report.cut_rows else lines


class _Work:
    """Embeds files, one after the other or several at once, and puts the vectors where they belong."""

    def __init__(
        self,
        encode: Encode,
        scratch: Path,
        report: EncodeReport,
        count: _Count,
        workers: OnRay | None,
        sentences: Callable[[PathLike], Iterator[str]],
    ) -> None:
        self.sentences = sentences
        self.encode, self.scratch, self.report, self.count, self.workers = encode, scratch, report, count, workers

    def files(self, names: Sequence[str], targets: dict[str, str]) -> Iterator[tuple[str, Made]]:
        """Every file when its vectors are there."""
        if self.workers is None:
            for name in names:
                with self._lines(name) as lines, destination(targets[name], self.scratch) as path:
                    made = self.encode(lines, out=path, report=self.report, advance=self.count.advance)
                    done = Made(len(made), made.shape[1], str(made.dtype))
                    del made
                yield name, done
            return
        tasks = ((self.encode, name, texts) for name in names for texts in self._windows(name))
        found = self.workers.run(embed_window, tasks, encodes=True)
        for name, parts in itertools.groupby(found, key=lambda part: part[0]):
            with destination(targets[name], self.scratch) as path:
                made = collect(self._noted(parts), 0, path)
                done = Made(len(made), made.shape[1], str(made.dtype))
                del made
            yield name, done

    def _windows(self, name: str) -> Iterator[list[str]]:
        empty = True
        with self._lines(name) as lines:
            for texts in windows(lines):
                empty = False
                yield texts
        if empty:
            yield []

    def _noted(
        self, parts: Iterable[tuple[str, Float32[ndarray, "n d"], EncodeReport]]
    ) -> Iterator[Float32[ndarray, "n d"]]:
        for _, vectors, report in parts:
            self.report.max_tokens = report.max_tokens
            self.report.cut_rows.extend(self.report.texts + row for row in report.cut_rows)
            self.report.texts += report.texts
            self.report.tokens += report.tokens
            self.count.advance(len(vectors))
            yield vectors

    @contextlib.contextmanager
    def _lines(self, name: str) -> Iterator[Iterator[str]]:
        """The lines without their ends; blank ones stay, so that row i is line i."""
        if name == STANDARD_INPUT:
            try:
                yield (
                    line.rstrip("\r\n")
                    for line in io.TextIOWrapper(guard_lines(sys.stdin.buffer, "-"), encoding="utf-8")
                )
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                raise DataError(f"not UTF-8 (byte 0x{byte:02x}); convert it first", path="-") from error
            return
        path = fetch(name, self.scratch / "fetched")
        self.count.open(name, path)
        if is_table(path):
            yield self.sentences(path)
        else:
            with open_text(path) as text:
                yield (line.rstrip("\r\n") for line in text)
        if is_remote(name):
            path.unlink()


def _is_stream(name: str) -> bool:
    """Whether a file can be read but once: standard input, a pipe, a device."""
    return name == STANDARD_INPUT or (os.path.exists(name) and not os.path.isfile(name))


class _Count:
    """Lines that are done, and all; a file elsewhere is taken to have as many as the others until it is here."""

    def __init__(self, names: Sequence[str], progress: Told, sentences: Callable[[PathLike], Iterator[str]]) -> None:
        self.sentences = sentences
        self.progress, self.files, self.done = progress, len(names), 0
        # Counting what is in a pipe would leave nothing to embed.
        self.known = all(is_remote(name) or not _is_stream(name) for name in names)
        self.lines = {name: self._count(name) for name in names if self.known and not is_remote(name)}

    def open(self, name: str, path: Path) -> None:
        """Takes note of a file that is read now."""
        if name not in self.lines and self.known:
            self.lines[name] = self._count(path)
        self.advance(0)

    def _count(self, path: PathLike) -> int:
        return sum(1 for _ in self.sentences(path)) if is_table(path) else count_lines(path)

    def advance(self, texts: int) -> None:
        """So many more are done."""
        self.done += texts
        total = sum(self.lines.values()) * self.files // max(1, len(self.lines))
        self.progress(self.done, max(self.done, total) if self.known else None)


class _Record:
    """Which files of a folder are done, kept in it after each.

    Args:
        folder: of vectors.
        model: what tells the model.

    Raises:
        ConfigError: the folder holds vectors of another model.
    """

    def __init__(self, folder: str, model: str) -> None:
        self.path, self.model = f"{folder.rstrip('/')}/{RECORD}", model
        self.files: dict[str, str] = {}
        if not exists(self.path):
            return
        with tempfile.TemporaryDirectory() as scratch:
            try:
                found = parse_json(fetch(self.path, Path(scratch)).read_text(encoding="utf-8"))
                there, self.files = found["model"], dict(found["files"])
            except (ValueError, KeyError, TypeError) as error:
                raise DataError("can't be read; choose another folder or remove it", path=self.path) from error
        if there != model:
            raise ConfigError(f"{folder} holds vectors of another model, prompt or settings; choose another folder")

    def has(self, name: str, target: str) -> bool:
        """Whether a file's vectors are there and the file has not changed since."""
        return name in self.files and self.files[name] == state(name) and exists(target)

    def add(self, name: str) -> None:
        """Takes note of one more."""
        self.files[name] = state(name)
        with (
            tempfile.TemporaryDirectory() as scratch,
            destination(self.path, Path(scratch)) as path,
            atomic_write(path) as file,
        ):
            json.dump({"model": self.model, "files": self.files}, file, indent=1)


def embed_window(encode: Encode, name: str, texts: list[str]) -> tuple[str, Float32[ndarray, "n d"], EncodeReport]:
    """Vectors of some lines of a file, and what happened to them."""
    report = EncodeReport()
    return name, encode(texts, report=report), report
