"""Finds a source's files and reads them in chunks of one language pair."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from interlingua.corpus.formats import TextPair, guess_format, read_pairs
from interlingua.corpus.manifest import SourceFile
from interlingua.errors import DataError
from interlingua.files import sha256_file
from interlingua.prepare.config import SourceConfig

CHUNK_PAIRS = 10_000
ENGLISH = "eng_Latn"
LanguagePair = tuple[str, str]


class Chunk(NamedTuple):
    """Pairs of one source and one language pair."""

    source_index: int
    language_pair: LanguagePair
    sources: list[str]
    targets: list[str]

    def pairs(self) -> list[TextPair]:
        """The chunk as pairs."""
        source, target = self.language_pair
        return [TextPair(a, b, source, target) for a, b in zip(self.sources, self.targets, strict=True)]


def find_files(source: SourceConfig) -> list[str]:
    """The files of a source, globs expanded and sorted; a Moses pair is named once.

    Raises:
        DataError: a glob matches nothing.
    """
    found: dict[str, None] = {}
    for path in map(os.fspath, source.paths):
        if not glob.has_magic(path) or path.startswith("hf:"):
            found[path] = None
            continue
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise DataError("no file matches; check the path", path=path)
        for match in matches:
            found[_identity(match, source)] = None
    return list(found)


def describe_file(path: str, source: SourceConfig) -> SourceFile:
    """Size and digest of a file for the manifest; of data read from a hub only the name."""
    files = _files_of(path, source)
    digests = [sha256_file(file) for file in files]
    return SourceFile(path=path, bytes=sum(file.stat().st_size for file in files), sha256="+".join(digests))


def read_chunks(
    path: str, source: SourceConfig, index: int, *, skipped: Counter[str], wanted: frozenset[str] = frozenset()
) -> Iterator[Chunk]:
    """Streams a file in chunks, every pair turned so that English is the target (else in the order of the codes).

    Args:
        path: one of ``find_files``.
        source: where the format and the languages may be given.
        index: of the source, passed on.
        skipped: counts what the reader left out.
        wanted: language codes to keep; empty = all. What is left out counts as ``"other language"``.
    """
    languages = source.languages or (None, None)
    open_chunks: dict[LanguagePair, Chunk] = {}
    stream = read_pairs(
        path, format=source.format, source_language=languages[0], target_language=languages[1], skipped=skipped
    )
    for source_text, target_text, source_language, target_language, _ in stream:
        if is_turned(source_language, target_language):
            source_text, target_text = target_text, source_text
            language_pair = (target_language, source_language)
        else:
            language_pair = (source_language, target_language)
        chunk = open_chunks.get(language_pair)
        if chunk is None:
            if wanted and not wanted.issuperset(language_pair):
                skipped["other language"] += 1
                continue
            chunk = open_chunks[language_pair] = Chunk(index, language_pair, [], [])
        chunk.sources.append(source_text)
        chunk.targets.append(target_text)
        if len(chunk.sources) == CHUNK_PAIRS:
            yield open_chunks.pop(language_pair)
    yield from open_chunks.values()


def is_turned(source_language: str, target_language: str) -> bool:
    """Whether a pair is stored the other way round: English is always the target, other languages are in code order."""
    if target_language == ENGLISH:
        return False
    return source_language == ENGLISH or source_language > target_language


def _identity(path: str, source: SourceConfig) -> str:
    if (source.format or guess_format(path)) != "moses":
        return path
    from interlingua.corpus.moses import moses_files

    return ",".join(map(str, moses_files(path, *(source.languages or (None, None))).paths))


def _files_of(path: str, source: SourceConfig) -> list[Path]:
    if path.startswith("hf:"):
        return []
    if (source.format or guess_format(path)) == "moses":
        from interlingua.corpus.moses import moses_files

        return list(moses_files(path, *(source.languages or (None, None))).paths)
    if Path(path).is_dir():
        return sorted(file for file in Path(path).rglob("*") if file.is_file())
    return [Path(path)]
