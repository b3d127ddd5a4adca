"""Several bitexts in one run: the files of a folder or of a pattern, of any formats.

If a bitext is two files, as catalogs of keys are, the file of each language forms one bitext with
the file of the source.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from interlingua.config import languages
from interlingua.config.languages import LanguageCode, choose_code
from interlingua.corpus.formats.bitext import (
    FORMAT_OF_SUFFIX,
    IN_TWO_FILES,
    guess_format,
    resolved_code,
)
from interlingua.corpus.formats.localization.language_places import language_place
from interlingua.corpus.formats.localization.two_files import files_of_languages
from interlingua.corpus.formats.moses import moses_files
from interlingua.errors import DataError
from interlingua.storage.files import PathLike, stem_and_suffix
from interlingua.storage.remote import WILD, is_remote

_OF_TRANSLATORS = ("tmx", "gettext", "xliff", "qt", "catalog", "subtitles")
"""Formats whose files, in a folder, are separate bitexts. A folder of tables, in contrast, is read
as Hugging Face data."""
_OF_OTHERS = ("config.json", "modules.json", "dataset_info.json", "state.json")
"""Files of models and of Hugging Face data."""
_LOOKED_AT = 5_000
"""Maximum number of files that are examined to recognize the kind of a folder."""


class Bitext(NamedTuple):
    """One of several bitexts."""

    path: str
    """A file, or two with a comma."""
    label: str
    """Path below the folder, of the target if there are two files."""


class Bitexts(NamedTuple):
    """Several bitexts, and the number of files that are no bitext."""

    found: list[Bitext]
    others: int


def is_bitext_folder(path: PathLike) -> bool:
    """Return whether a folder holds files of translators, and no model or data set."""
    folder = Path(path)
    if not folder.is_dir() or any((folder / name).is_file() for name in _OF_OTHERS):
        return False
    files = itertools.islice(_files_below(folder), _LOOKED_AT)
    return any(_format_of(file) in _OF_TRANSLATORS for file in files)


def several_bitexts(
    path: PathLike, source_language: str | None = None, target_language: str | None = None
) -> Bitexts | None:
    """Return the bitexts of a folder or a pattern; None if the name is that of one bitext.

    Args:
        path: a folder with files of translators, or a name with ``*``, ``?``, ``[`` or ``**``.
        source_language: language of the source, if a bitext is two files; English by default.
        target_language: language of the target, if a bitext is two files; all by default.

    Raises:
        DataError: no file matches the pattern, or the folder holds no bitext.
    """
    name = os.fspath(path)
    # Two files with a comma, standard input, or a file of another machine is one bitext.
    if is_remote(name) or name == "-" or ("," in name and not os.path.exists(name)):
        return None
    is_pattern = any(mark in name for mark in WILD) and not os.path.exists(name)
    if is_pattern:
        files = [Path(own) for own in sorted(glob.glob(name, recursive=True))]
        files = [file for file in files if file.is_file()]
        root = _fixed_part(name)
        if not files:
            raise DataError("no file matches this pattern; check the path", path=name)
        # Parts of one data set are read as one.
        if all(_format_of(file) == "huggingface" for file in files):
            return None
    elif is_bitext_folder(name):
        root = Path(name)
        files = sorted(_files_below(root))
    else:
        return None
    codes = (resolved_code(source_language), resolved_code(target_language))
    found, others = _bitexts(files, root, codes, is_chosen=is_pattern)
    if not found:
        raise DataError("the folder contains no bitext; pass the files instead", path=name)
    return Bitexts(found, others)


def _files_below(folder: Path) -> Iterable[Path]:
    """Yield the files below a folder; hidden files and folders are left out."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(place, name)


def _fixed_part(pattern: str) -> Path:
    """Return the part of a pattern before the first folder or file with a wildcard."""
    parts = Path(pattern).parts
    fixed = itertools.takewhile(lambda part: not any(mark in part for mark in WILD), parts)
    return Path(*fixed)


def _format_of(file: Path) -> str | None:
    """Return the format of a file; None if it is no bitext by its name and start."""
    suffix = stem_and_suffix(file)[1]
    if suffix not in (*FORMAT_OF_SUFFIX, ".xml", ".ts") or suffix == ".txt":
        return None
    try:
        found = guess_format(file)
    except DataError:
        return None
    if found == "moses":  # by its name only, so it may be any other file
        return None
    return found


def _bitexts(
    files: list[Path], root: Path, codes: tuple[str | None, str | None], *, is_chosen: bool
) -> tuple[list[Bitext], int]:
    """Return the bitexts of some files, and the number of files that are no bitext.

    Files that a pattern chose are bitexts, even if they can't be read.
    """
    found: dict[str, Bitext] = {}
    others = 0
    for file in files:
        label = os.path.relpath(file, root)
        name = _format_of(file)
        if name is None and not is_chosen:
            others += 1
            continue
        # Several files of one catalog lead to the same pair, which is taken once.
        path: str | None = str(file)
        if name is None or name in IN_TWO_FILES:
            path = with_its_source(file, codes)
        if path is not None:
            found.setdefault(path, Bitext(path, label))
    return list(found.values()), others


def with_its_source(file: Path, codes: tuple[str | None, str | None]) -> str | None:
    """Return the file of the source and this file, with a comma; None if this is not a target.

    A file without a file of the source is returned as it is: the reader's error names what is
    missing.
    """
    try:
        name = guess_format(file)
        if name == "moses":
            pair = moses_files(str(file), *codes).paths
            return ",".join(map(str, pair))
    except DataError:
        return str(file)
    if name not in IN_TWO_FILES:
        return str(file)
    by_code = files_of_languages(str(file))
    own = next((code for code, other in by_code.items() if other == file), None)
    # Of two regions of a language, such as ``de`` and ``de-CH``, ``by_code`` has only one.
    if own is None:
        place = language_place(file)
        own = place.code if place is not None else None
    source = _source_of(list(by_code), codes[0])
    if own is None or source is None or len(by_code) < 2:
        return str(file)
    # The file of the source is no target: it is in a pair with each of the other files.
    if own == source or (codes[1] is not None and not languages.accepts(codes[1], own)):
        return None
    return f"{by_code[source]},{file}"


def _source_of(found: list[LanguageCode], requested: str | None) -> LanguageCode | None:
    """Return the language of the source: the requested one, English, or the first of two."""
    place = choose_code(requested or languages.ENGLISH, found)
    if place is None and requested is None and len(found) == 2:
        place = 0
    if place is None:
        return None
    return found[place]
