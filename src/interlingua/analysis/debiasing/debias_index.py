"""Mapping vectors: a matrix in a ``.npy`` file or in memory, with the language of each row.

An index of many languages can be repaired without embedding a text again: either a map is estimated
from the vectors and their languages, or one that ``debias`` has estimated for the encoder is
applied. The file is read through memory mapping and written in blocks, so it may be larger than
memory. Queries have to go through the same map.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray

from interlingua.analysis.debiasing.debias import (
    RECORD_FILE,
    DebiasOptions,
    DebiasReport,
    debias_vectors,
)
from interlingua.analysis.debiasing.debias_fit import FittedMap
from interlingua.corpus.samples.reservoir import reservoir
from interlingua.encoder.encode import collect_vectors
from interlingua.encoder.language_maps.affine_maps import LanguageMap
from interlingua.encoder.language_maps.language_map_files import MAP_FILE, read_map, write_map
from interlingua.encoder.texts import checked_texts
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.evaluation.data.folders import full_code
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.arrays import map_array, normalize_rows
from interlingua.storage.files import PathLike, atomic_directory, open_text
from interlingua.storage.formats import DEBIAS
from interlingua.storage.record import holds_record, write_record

VECTORS_FILE = "vectors.npy"
_BLOCK_ROWS = 65_536


def debias_index(
    vectors: PathLike,
    output: PathLike,
    *,
    labels: PathLike | None = None,
    language_map: PathLike | None = None,
    options: DebiasOptions | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> DebiasReport | None:
    """Map a file of vectors.

    Args:
        vectors: a ``.npy`` file of shape (N, D).
        output: the new folder, with ``vectors.npy`` and the map.
        labels: a text file with the language of each vector, one per line; needed for an estimate
            and for a map that is a shift, refused with any other map.
        language_map: a map, or the folder that ``debias`` wrote, to apply; default: estimate one
            from the vectors.
        options: of the estimate.
        overwrite: replace ``output`` if it was written by this function.
        progress: receives the vectors done.

    Returns:
        the estimate, or None if ``language_map`` is set.

    Raises:
        ConfigError: neither labels nor a map are set, or labels with a map that is not a shift.
        DataError: a file is missing or damaged, or the numbers of lines and vectors differ.
        CheckpointError: the map is missing or damaged.
    """
    options = options or DebiasOptions()
    table = _table(Path(vectors))
    languages: list[str] | None = None
    if labels is not None:
        languages = _labels(Path(labels), len(table))
    found, fitted = _map_of(table, languages, language_map, options, path=vectors)
    report: DebiasReport | None = None
    if fitted is not None:
        report = DebiasReport(output=Path(output), fitted=fitted, languages=found.languages)
    # Write in blocks, so that memory never holds all of the original or of the mapped vectors.
    with atomic_directory(output, overwrite=overwrite, ours=_is_ours) as folder:
        collect_vectors(
            _mapped(table, found, languages, progress), table.shape[1], folder / VECTORS_FILE
        )
        write_map(found, folder / MAP_FILE)
        record: dict[str, Any] = {"vectors": str(vectors), "map": None}
        if language_map is not None:
            record["map"] = str(language_map)
        if report is not None:
            record |= report.record()
        write_record(folder / RECORD_FILE, DEBIAS, record)
    return report


class DebiasedVectors:
    """Vectors in memory after a map.

    Args:
        vectors: of length 1, in the order of the input.
        language_map: the map, which has to be applied to questions as well.
        fitted: the estimate and its measures; None if ``language_map`` was set.
    """

    def __init__(
        self,
        vectors: Float32[ndarray, "n d"],
        language_map: LanguageMap,
        fitted: FittedMap | None,
    ) -> None:
        self.vectors = vectors
        self.language_map = language_map
        self.fitted = fitted

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the vectors, so that numpy can use this object as an array."""
        return np.array(self.vectors, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        """Return a description on one line."""
        count = count_of(len(self.vectors), "vectors")
        kind = f"{self.language_map.method}, rank {self.language_map.rank}"
        return f"<DebiasedVectors: {count} of {self.vectors.shape[1]} dimensions ({kind})>"


def debias_arrays(
    vectors: Float[ndarray, "n d"],
    *,
    labels: PathLike | Iterable[str] | None = None,
    language_map: PathLike | None = None,
    options: DebiasOptions | None = None,
    progress: Progress = SILENT,
) -> DebiasedVectors:
    """Map vectors in memory, as ``debias_index`` maps those of a file, and write nothing.

    Args:
        vectors: of shape (N, D).
        labels: the language of each vector, or a text file with one language per line.
        language_map: see ``debias_index``.
        options: of the estimate.
        progress: receives the vectors done.

    Raises:
        ConfigError: see ``debias_index``.
        DataError: the array does not hold vectors, or the numbers of vectors and labels differ.
    """
    table = np.asarray(vectors)
    _check_table(table, None)
    languages: list[str] | None = None
    if isinstance(labels, str | os.PathLike):
        languages = _labels(Path(labels), len(table))
    elif labels is not None:
        languages = _codes(checked_texts(labels, "labels"))
        if len(languages) != len(table):
            raise DataError(
                f"found {count_of(len(languages), 'labels')} for"
                f" {count_of(len(table), 'vectors')}; pass the language of each vector"
            )
    found, fitted = _map_of(table, languages, language_map, options or DebiasOptions())
    mapped = np.concatenate(list(_mapped(table, found, languages, progress)))
    return DebiasedVectors(mapped, found, fitted)


def _map_of(
    table: Float[ndarray, "n d"],
    languages: list[str] | None,
    language_map: PathLike | None,
    options: DebiasOptions,
    *,
    path: PathLike | None = None,
) -> tuple[LanguageMap, FittedMap | None]:
    """Return the user's map, or estimate one from these vectors."""
    if language_map is not None:
        found = read_map(language_map)
        if len(found.bias) != table.shape[1]:
            raise DataError(
                f"the vectors have {table.shape[1]} dimensions, but the map has"
                f" {len(found.bias)}; use vectors and a map of one model",
                path=path,
            )
        if found.shifts is not None and languages is None:
            raise ConfigError(
                "this map is a shift and requires --labels (the language of each vector)"
            )
        # Someone who gives labels expects that each language is treated on its own.
        if found.shifts is None and languages is not None:
            raise ConfigError(
                "--labels: the map is the same for every language and uses no labels; remove"
                " --labels, or remove --map to estimate a map from these vectors"
            )
        return found, None
    if languages is None:
        raise ConfigError(
            "the languages of the vectors are unknown; pass --labels (the language of each"
            " vector) or --map (a map to apply)"
        )
    # A sample is enough for the estimate, and all of a file may not fit into memory.
    rows = _drawn(languages, options)
    drawn = [languages[row] for row in rows]
    # Rows in the order of the file, which is read through memory mapping.
    fitted = debias_vectors(np.asarray(table[rows], dtype=np.float32), drawn, options=options)
    return fitted.language_map, fitted


def _mapped(
    table: Float32[ndarray, "n d"],
    language_map: LanguageMap,
    languages: Sequence[str] | None,
    progress: Progress,
) -> Iterator[Float32[ndarray, "b d"]]:
    """Yield the mapped vectors in blocks of ``_BLOCK_ROWS``, of length 1."""
    progress.start(len(table), "vectors", "mapping vectors")
    for start in range(0, len(table), _BLOCK_ROWS):
        block = np.asarray(table[start : start + _BLOCK_ROWS], dtype=np.float32)
        # The map would pass NaN on without an error.
        if not np.isfinite(block).all():
            row = int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise DataError(
                f"vector {start + row + 1:,} contains NaN or infinity; embed its text again"
            )
        codes = None
        if languages is not None:
            codes = languages[start : start + _BLOCK_ROWS]
        yield language_map.apply(normalize_rows(block), codes)
        progress.advance(len(block))


def _table(path: Path) -> Float32[ndarray, "n d"]:
    table = map_array(path)
    _check_table(table, path)
    return table


def _check_table(table: ndarray, path: Path | None) -> None:
    if table.ndim != 2 or table.dtype.kind != "f" or not table.size:
        raise DataError(
            f"expected floats of shape (N, D), found an array of shape {table.shape} and type"
            f" {table.dtype}",
            path=path,
        )


def _labels(path: Path, count: int) -> list[str]:
    """Read the language of each vector; an unknown language is a label of its own."""
    with open_text(path) as lines:
        labels = _codes(line.strip() for line in lines)
    if len(labels) != count:
        raise DataError(
            f"found {count_of(len(labels), 'lines')} for {count_of(count, 'vectors')}; expected"
            " one line per vector with its language",
            path=path,
        )
    return labels


def _codes(names: Iterable[str]) -> list[str]:
    # Resolve each name once: there may be millions of names, but they are of few languages.
    codes: dict[str, str] = {}
    labels = []
    for name in names:
        if name not in codes:
            codes[name] = _code(name)
        labels.append(codes[name])
    return labels


def _code(name: str) -> str:
    try:
        return full_code(name)
    except DataError:
        return name


def _drawn(languages: Sequence[str], options: DebiasOptions) -> list[int]:
    """Draw rows of each language, at most as many as the options allow.

    Raises:
        DataError: there are no vectors of a language that is named.
    """
    chosen = set(languages)
    if options.languages is not None:
        chosen = {_code(language) for language in options.languages}
    by_language: dict[str, list[int]] = {}
    for row, language in enumerate(languages):
        if language in chosen:
            by_language.setdefault(language, []).append(row)
    missing = sorted(chosen - by_language.keys())
    if missing:
        raise DataError(
            f"no vectors in {', '.join(missing)}; use one or more of:"
            f" {', '.join(sorted(set(languages)))}"
        )
    drawn = [
        reservoir(rows, options.sentences, seed=options.seed)
        for _, rows in sorted(by_language.items())
    ]
    return sorted(row for rows in drawn for row in rows)


def _is_ours(folder: Path) -> bool:
    return holds_record(folder / RECORD_FILE, DEBIAS)
