"""Reading of a source's files in chunks of one language pair."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from interlingua.config.languages import ENGLISH as ENGLISH
from interlingua.config.languages import LanguagePair as LanguagePair
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import TextPair, guess_format, read_pairs, resolved_code
from interlingua.corpus.formats.localization.bitext_folders import (
    is_bitext_folder,
    several_bitexts,
    with_its_source,
)
from interlingua.corpus.formats.moses import moses_files
from interlingua.corpus.manifest import SourceFile
from interlingua.errors import DataError
from interlingua.preparation.config import PrepareConfig, SourceConfig
from interlingua.storage.files import PathLike, sha256_file

CHUNK_PAIRS = 10_000
NO_SCORE = (
    "a pair has no score, which min_score and max_pairs_by require; score the file with"
    " `interlingua score`"
)


@dataclasses.dataclass(slots=True)
class Chunk:
    """Pairs of one source and one language pair."""

    source_index: int
    language_pair: LanguagePair
    sources: list[str] = dataclasses.field(default_factory=list)
    targets: list[str] = dataclasses.field(default_factory=list)
    scores: list[float | None] = dataclasses.field(default_factory=list)
    below: int = 0
    """Pairs that were read, and left out because of their score."""

    def pairs(self) -> list[TextPair]:
        """Return the chunk as pairs."""
        source, target = self.language_pair
        rows = zip(self.sources, self.targets, self.scores, strict=True)
        return [TextPair(a, b, source, target, score) for a, b, score in rows]

    @property
    def read(self) -> int:
        """Pairs that were read."""
        return len(self.sources) + self.below


def find_files(source: SourceConfig) -> list[str]:
    """Return the files of a source, globs expanded and sorted; a Moses pair is listed once.

    Raises:
        DataError: a glob matches nothing.
    """
    found: dict[str, None] = {}  # an ordered set; the order is that of preference
    for path in map(os.fspath, source.paths):
        if source.format is None and is_bitext_folder(path):
            bitexts = several_bitexts(path, *(source.languages or (None, None)))
            if bitexts is not None:
                found |= dict.fromkeys(own.path for own in bitexts.found)
            continue
        if not glob.has_magic(path) or path.startswith("hf:"):
            found[path] = None
            continue
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise DataError("no file matches; check the path", path=path)
        for match in matches:
            # A glob finds both files of a Moses pair, which get one name. It also finds catalogs of
            # the source language, each of which belongs to the catalogs of all other languages.
            paths = _moses_paths(match, source)
            name: str | None = ",".join(map(str, paths)) or match
            if not paths and source.format is None:
                codes = source.languages or (None, None)
                name = with_its_source(
                    Path(match), (resolved_code(codes[0]), resolved_code(codes[1]))
                )
            if name is not None:
                found[name] = None
    return list(found)


def describe_file(path: str, source: SourceConfig) -> SourceFile:
    """Return size and digest of a file for the manifest.

    Data read from a hub have only a name.
    """
    files = _files_of(path, source)
    digests = [sha256_file(file) for file in files]
    return SourceFile(
        path=path, bytes=sum(file.stat().st_size for file in files), sha256="+".join(digests)
    )


def check_sources(config: PrepareConfig) -> None:
    """Check before any work that every file can be read.

    A file must exist, be of a known format and be in known languages. The first pair of each file
    is read. Data of a hub are skipped, because they would be downloaded. Pipes are skipped,
    because they give their pairs only once.

    Raises:
        DataError: a file can't be read, or has no scores although they are needed.
    """
    for source in config.sources:
        with read_errors(source.label):
            paths = find_files(source)
        for path in paths:
            with read_errors(path):
                if path.startswith("hf:") or Path(path).is_fifo():
                    continue
                first = next(_pairs(path, source, BadLines(config.on_error)), None)
            if first is not None and first.score is None and source.needs_scores:
                raise DataError(NO_SCORE, path=path)
    for folder in config.decontaminate:
        with read_errors(folder):
            is_there = folder.exists()
        if not is_there:
            raise DataError("evaluation folder not found; check the path", path=folder)


@contextlib.contextmanager
def read_errors(path: PathLike) -> Iterator[None]:
    """Convert an error of the disk to a one-line error that names the file."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path",
            path=error.filename or path,
        ) from error


def read_chunks(
    path: str,
    source: SourceConfig,
    index: int,
    *,
    skipped: Counter[str],
    wanted: frozenset[str] = frozenset(),
    bad: BadLines | None = None,
) -> Iterator[Chunk]:
    """Yield the pairs of a file in chunks of one language pair.

    Every pair is turned so that English is the target; other languages are in code order.

    Args:
        path: a result of ``find_files``.
        source: may specify the format and the languages.
        index: number of the source, which each chunk gets.
        skipped: counts the pairs that the reader left out.
        wanted: language codes to keep; empty = all. Other pairs count as ``"other language"``.
        bad: how to handle unreadable lines; by default the first one stops the work.
    """
    open_chunks: dict[LanguagePair, Chunk] = {}
    bad = bad or BadLines()
    stream = _pairs(path, source, bad, skipped)
    for source_text, target_text, source_language, target_language, score in stream:
        if is_turned(source_language, target_language):
            source_text, target_text = target_text, source_text
            language_pair = (target_language, source_language)
        else:
            language_pair = (source_language, target_language)
        chunk = open_chunks.get(language_pair)
        if chunk is None:
            # Looked up once a chunk and not for every pair.
            if wanted and not wanted.issuperset(language_pair):
                skipped["other language"] += 1
                continue
            chunk = open_chunks[language_pair] = Chunk(index, language_pair)
        # A pair without a score is a bad line; a pair with a low score is dropped by a rule.
        if score is None and source.needs_scores:
            bad.reject(DataError(NO_SCORE, path=path), f"{source_text}\t{target_text}")
            continue
        if source.min_score is not None and score is not None and score < source.min_score:
            chunk.below += 1
            continue
        chunk.scores.append(score)
        chunk.sources.append(source_text)
        chunk.targets.append(target_text)
        if len(chunk.sources) == CHUNK_PAIRS:
            yield open_chunks.pop(language_pair)
    yield from open_chunks.values()


def is_turned(source_language: str, target_language: str) -> bool:
    """Return whether the sides of a pair have to be exchanged.

    English is always the target, and other languages are in code order. So both orders in
    the files give the same language pair.
    """
    if target_language == ENGLISH:
        return False
    return source_language == ENGLISH or source_language > target_language


def _pairs(
    path: str, source: SourceConfig, bad: BadLines, skipped: Counter[str] | None = None
) -> Iterator[TextPair]:
    languages = source.languages or (None, None)
    return read_pairs(
        path,
        format=source.format,
        source_language=languages[0],
        target_language=languages[1],
        columns=source.columns,
        sheet=source.sheet,
        header_row=source.header_row,
        skipped=skipped,
        bad=bad,
    )


def _moses_paths(path: str, source: SourceConfig) -> tuple[Path, ...]:
    """Return the two files of a Moses pair; none for other formats."""
    if (source.format or guess_format(path)) != "moses":
        return ()
    return moses_files(path, *(source.languages or (None, None))).paths


def _files_of(path: str, source: SourceConfig) -> list[Path]:
    if path.startswith("hf:"):
        return []
    if paths := _moses_paths(path, source):
        return list(paths)
    if not Path(path).exists() and "," in path:
        return [Path(part) for part in path.split(",")]
    if Path(path).is_dir():
        return sorted(file for file in Path(path).rglob("*") if file.is_file())
    return [Path(path)]
