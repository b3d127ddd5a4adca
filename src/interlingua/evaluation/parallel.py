"""Line-aligned texts in many languages, and their vectors in a file instead of in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import parse
from interlingua.corpus.formats.evaluation_sets import (
    aligned_files,
    one_each,
    read_evaluation_lines,
)
from interlingua.errors import DataError, count_of
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import (
    ALIGNED,
    ENGLISH,
    FLORES_FOLDERS,
    choose_languages,
    content_sha256,
    find_folder,
    full_code,
    recognize,
)
from interlingua.evaluation.data.named_files import find_named_files, suffixed_files
from interlingua.evaluation.data.ntrex import ntrex_files as ntrex_language_files
from interlingua.evaluation.tasks.groups import FLORES_GROUPS
from interlingua.evaluation.tasks.translation.flores import LANGUAGE_GROUPS, FloresP1
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.arrays import normalize_rows

_GROUPS: dict[str, tuple[str, ...]] = {
    name: (*codes, ENGLISH) for name, codes in {**LANGUAGE_GROUPS, **FLORES_GROUPS}.items()
}
"""The groups of the evaluation, each with English; their sizes are 15 (``muse``), 17
(``low_resource``) and 81 (``mexma``)."""
DEFAULT_GROUP = "muse"


class ParallelTexts(NamedTuple):
    """The same sentences in several languages.

    Attributes:
        folder: of the files.
        lines: code (``eng_Latn``, or ``fra_CA`` if the region distinguishes two files) -> lines;
            all languages have the same number of lines.
        sha256: of languages and lines.
        revision: the published revision they were recognized as.
    """

    folder: Path
    lines: Mapping[str, list[str]]
    sha256: str
    revision: str | None

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages' codes, in order."""
        return tuple(self.lines)

    @property
    def sentences(self) -> int:
        """The number of lines of each language."""
        return len(next(iter(self.lines.values())))

    def named(self, name: str) -> str:
        """Return an analysis's name, with the folder's name if the set is not published."""
        if self.revision:
            return name
        return f"{name}_{self.folder.name}"


def language_files(folder: Path) -> dict[str, Path]:
    """Return the line-aligned files of a folder by language; nothing if it has none.

    The files may be those of NTREX-128, ``<lang>.txt`` (FLORES), or the user's own files that are
    named after a language in another way: ``German.txt``, ``corpus.de`` or, if there are no text
    files, tables such as ``German.csv``.

    Raises:
        DataError: two files are of one language, or the files are of several texts.
    """
    # the most specific way of naming files first
    if ntrex := ntrex_language_files(folder):
        return ntrex
    files = max(aligned_files(folder), find_named_files(folder), key=len)
    # a single file is not parallel text, so other ways of naming are tried
    if len(files) < 2:
        files = suffixed_files(folder) or find_named_files(folder, tables=True) or files
    return one_each((full_code(spelled), path) for spelled, path in files.items())


def choose_files(
    data: Path, languages: Sequence[str] | None = None, *, also: Sequence[str] = ()
) -> dict[str, Path]:
    """Return the files of the requested languages, in the order of their codes.

    Args:
        data: the folder of the files, or a folder that holds FLORES-200 devtest under its usual
            name.
        languages: codes or names of languages, or names of groups (``_GROUPS``); by default the
            group ``muse`` if all of its files are present, otherwise all languages.
        also: codes that are read too.

    Raises:
        DataError: there are no such files, two files are of one language, or a requested language
            has no file.
    """
    folder = find_folder(data, FLORES_FOLDERS, language_files, ALIGNED).resolve()
    files = language_files(folder)
    # the default is a group only if it is complete; otherwise, the mean of a part would look like
    # that of the whole group
    if languages is None and set(_GROUPS[DEFAULT_GROUP]) <= set(files):
        languages = [DEFAULT_GROUP]
    available = {code: parse(code).language.code for code in files}
    chosen = choose_languages([*(languages or available), *also], available, _GROUPS, folder)
    return {code: files[code] for code in sorted(chosen)}


def read_parallel(
    data: Path,
    languages: Sequence[str] | None = None,
    *,
    also: Sequence[str] = (),
    at_least: int = 2,
) -> ParallelTexts:
    """Read a folder of line-aligned files, one per language: FLORES-200, NTREX-128 or any other.

    Args:
        data: see ``choose_files``.
        languages: see ``choose_files``.
        also: see ``choose_files``.
        at_least: minimum number of languages.

    Raises:
        DataError: files are missing or broken, have unequal numbers of lines, or are too few; two
            files are of one language; or a requested language has no file.
    """
    files = choose_files(data, languages, also=also)
    folder = next(iter(files.values())).parent
    if len(files) < at_least:
        raise DataError(
            f"{at_least} languages are required, found {len(files)}"
            f" language{'s' * (len(files) != 1)}; add more with --languages",
            path=folder,
        )
    lines = {code: read_evaluation_lines(path) for code, path in files.items()}
    first = next(iter(lines))
    for code, texts in lines.items():
        if len(texts) != len(lines[first]):
            there = f"{files[first].name} in the same folder has {len(lines[first])}"
            raise DataError(
                f"{count_of(len(texts), 'lines')}, but {there}; aligned files require equal"
                " numbers of lines",
                path=files[code],
            )
    # a published set is recognized by the digests of its languages, of which some may be absent
    digests = {code: content_sha256([texts]) for code, texts in lines.items()}
    sha256 = content_sha256([list(digests), list(digests.values())])
    return ParallelTexts(folder, lines, sha256, recognize(FloresP1.name, digests))


def unit_vectors(
    encoder: CachedEncoder,
    texts: ParallelTexts,
    *,
    progress: Progress = SILENT,
) -> Float32[ndarray, "l n d"]:
    """Return the vectors of all sentences, scaled to length 1, mapped from a temporary file.

    Args:
        encoder: embeds the sentences.
        texts: the sentences.
        progress: counts the sentences.
    """
    count = len(texts.languages)
    n = texts.sentences
    table: Float32[ndarray, "l n d"] | None = None
    progress.start(count * n, "sentences", "embedding")
    for number, (code, lines) in enumerate(texts.lines.items()):
        vectors = normalize_rows(encoder.encode(lines, language=parse(code).language.code))
        if table is None:
            # created with the first vectors, which determine the width; the map outlives the closed
            # file
            with tempfile.TemporaryFile(prefix="interlingua-") as file:
                # otherwise, a full disk ends the process with a bus error and no message
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, 4 * count * vectors.size)
                table = np.memmap(file, np.float32, "w+", shape=(count, *vectors.shape))
        table[number] = vectors
        progress.note(code)
        progress.advance(n)
    assert table is not None
    return table
