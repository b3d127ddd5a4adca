"""Detection of evaluation sentences in training data, to keep them out of training.

The keys of all sentences in the evaluation folders are compared with those of the training data.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from jaxtyping import Bool, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.dedup import is_in
from interlingua.corpus.cleaning.keys import EMPTY_KEY, text_keys
from interlingua.corpus.cleaning.normalize import Markup, normalize_texts
from interlingua.errors import DataError
from interlingua.runtime.portions import portions
from interlingua.runtime.workers import Workers
from interlingua.storage.files import open_text, stem_and_suffix
from interlingua.storage.json_text import json_values, load_json

_NOTES = frozenset((".md", ".rst", ".py", ".toml", ".yaml", ".yml"))
_NO_TEXT = _NOTES | {".npy", ".bin", ".safetensors", ".model", ".zip"}
# A broken file of these kinds is an error; any other file that can't be read counts as no text.
_TEXT = frozenset((".txt", ".tsv", ".csv", ".json", ".jsonl"))
_CHUNK = 50_000  # strings hashed at a time


class EvaluationKeys:
    """The sentences of evaluation sets, as sorted 64-bit keys: 8 bytes a sentence, 1 us a look-up.

    Two texts are the same sentence if their `interlingua.corpus.cleaning.keys.text_key` is equal:
    case, punctuation, white space and compatibility forms do not count, the signs of numbers do.

    Args:
        sets: name of an evaluation set -> keys of its sentences.

    Attributes:
        counts: name -> training pairs (or texts) found in that set so far; one that is in two sets
            counts in both.
        skipped: files of the folders that were not read, as they hold no UTF-8 text.
    """

    def __init__(self, sets: dict[str, UInt64[ndarray, " k"]]) -> None:
        self.names = tuple(sets)
        self.counts = dict.fromkeys(sets, 0)
        self.skipped: list[Path] = []
        self._sets = [np.setdiff1d(keys, [EMPTY_KEY]) for keys in sets.values()]

    @classmethod
    def from_folders(
        cls,
        folders: Iterable[str | os.PathLike[str]],
        *,
        markup: Markup = "keep",
        workers: Workers | None = None,
    ) -> EvaluationKeys:
        """Read all text files of each folder, at any depth; the folder's name becomes the set's.

        ``.csv`` and ``.json``/``.jsonl`` files are parsed (every string of a JSON document counts,
        keys too). Other files are read line by line, and each line is split at tabs. So the
        original layouts of Tatoeba, FLORES, BUCC or xsim++ need no preparation. Strings without a
        letter (ids, scores) are left out.

        Args:
            folders: evaluation folders, or single files.
            markup: how cleaning treats markup in the training text; sentences are looked for in
                that form as well.
            workers: the processes that read; default: this one.

        Raises:
            DataError: a folder is missing or holds no sentence, or a file of text is broken.
            InterlinguaError: a file of text is broken, and another process read it.
        """
        places = list(dict.fromkeys(map(Path, folders)))
        for folder in places:
            if not folder.exists():
                raise DataError("evaluation folder not found; check the path", path=folder)
        files = [(folder, path) for folder in places for path in _files_of(folder)]
        tasks = ((folder, path, markup) for folder, path in files)
        keys: dict[Path, list[UInt64[ndarray, " k"]]] = {folder: [] for folder in places}
        skipped: list[Path] = []
        found_keys = (workers or Workers()).run(_keys_of_file, tasks)
        for (folder, path), (of_file, is_whole) in zip(files, found_keys, strict=True):
            keys[folder].append(of_file)
            if not is_whole:
                skipped.append(path)
        sets: dict[str, UInt64[ndarray, " k"]] = {}
        for folder, parts in keys.items():
            name = folder.name
            if name in sets:  # two sets may both have a folder "test"
                name = str(folder)
            sets[name] = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
            if not len(sets[name]):
                raise DataError(
                    "no sentence found; expected text, TSV, CSV or JSON files", path=folder
                )
        found = cls(sets)
        found.skipped = skipped
        return found

    def __len__(self) -> int:
        """Return the number of distinct sentences over all sets.

        A sentence that is in two sets counts twice.
        """
        return sum(map(len, self._sets))

    def contaminated_keys(self, *sides: UInt64[ndarray, " n"]) -> Bool[ndarray, " n"]:
        """Mark the rows in which at least one side has a text key of an evaluation set.

        Each row counts once per set.
        """
        found = np.zeros(len(sides[0]), dtype=bool)
        for name, known in zip(self.names, self._sets, strict=True):
            is_known = np.any([is_in(known, keys) for keys in sides], axis=0)
            self.counts[name] += int(np.count_nonzero(is_known))
            found |= is_known
        return np.asarray(found)


def _files_of(folder: Path) -> list[Path]:
    """Return the files of a folder at any depth, or the file itself."""
    if not folder.is_dir():
        return [folder]
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _keys_of_file(folder: Path, path: Path, markup: Markup) -> tuple[UInt64[ndarray, " k"], bool]:
    """Return the sorted keys of a file's sentences, and whether all of the file was read.

    Nothing is read if the file is hidden or of a kind without sentences. If a file of an unknown
    kind is not UTF-8 text throughout, the sentences before the first other byte count.

    Args:
        folder: the set; a file is hidden if the name of it or of a folder below this one is.
        path: the file.
        markup: see ``from_folders``.

    Raises:
        DataError: a file of text is broken.
    """
    suffix = stem_and_suffix(path)[1]
    is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    keys = np.zeros(0, np.uint64)
    if suffix in _NO_TEXT or is_hidden:
        return keys, False
    is_whole = True

    def sentences() -> Iterator[str]:
        nonlocal is_whole
        try:
            yield from (text for text in _strings(path, suffix) if any(map(str.isalpha, text)))
        except DataError:
            if suffix in _TEXT:
                raise
            is_whole = False  # not UTF-8: an archive, an image, an index

    for chunk in portions(sentences(), _CHUNK):
        parts = [keys, text_keys(chunk)]
        if markup != "keep":
            # Training texts are compared after cleaning, so evaluation texts need that form, too.
            parts.append(text_keys(normalize_texts(chunk, markup=markup)))
        # Merged at each chunk, so that memory holds every distinct key of the file once.
        keys = np.unique(np.concatenate(parts))
    return np.setdiff1d(keys, [EMPTY_KEY], assume_unique=True), is_whole


def _strings(path: Path, suffix: str) -> Iterator[str]:
    if suffix == ".json":
        yield from _json_strings(load_json(path))
        return
    if suffix == ".jsonl":
        for _, value in json_values(path):
            yield from _json_strings(value)
        return
    with open_text(path) as file:
        if suffix == ".csv":
            yield from _csv_cells(file, path)
        else:
            for line in file:
                yield from line.rstrip("\r\n").split("\t")


def _csv_cells(file: TextIO, path: Path) -> Iterator[str]:
    rows = csv.reader(file)
    try:
        for row in rows:
            yield from row
    except csv.Error as error:
        raise DataError(
            f"cannot be read as CSV ({error}); correct or remove the file",
            path=path,
            line=rows.line_num,
        ) from error


def _json_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():  # the files of xsim++ have sentences as keys
            yield str(key)
            yield from _json_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _json_strings(inner)
