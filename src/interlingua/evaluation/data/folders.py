"""Helpers of tasks to find folders, files and languages of data and to recognize published data."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from interlingua.config.languages import ENGLISH as ENGLISH
from interlingua.config.languages import find_code, resolve_language
from interlingua.corpus.formats.evaluation_sets import PairFile, one_each, pair_files
from interlingua.errors import DataError, LanguageAbsentError
from interlingua.storage.files import files_in
from interlingua.storage.json_text import parse_json

FLORES = "flores200_devtest"
FLORES_FOLDERS = (FLORES, "devtest", "flores200_dataset/devtest")
"""Folders of FLORES-200: prepared ones, and those of the original archive."""
ALIGNED = "folder of line-aligned <lang>.txt, <lang>.devtest or <lang>.dev files"
"""The expected files of a set in FLORES's layout, for errors."""
PACKED = r"(?:\.gz|\.xz|\.zst)?"
"""The end of a pattern of files that may be compressed."""
PARTS_OF_CORPORA = ("heldout", "valid_text")
"""Folders that every prepared corpus has."""
_REGION_OR_SCRIPT = re.compile(r"[A-Z]{2}|[A-Z][a-z]{3}|\d{3}")


def find_folder(
    data: Path, names: Sequence[str], holds_data: Callable[[Path], object], expected: str
) -> Path:
    """Return the data set's folder: ``data`` itself, or the first of ``names`` below it.

    Raises:
        DataError: none of them holds files of the expected layout, or the first folder that seems
            to hold them is broken.
    """
    if not data.is_dir():
        raise DataError("folder not found; check the path", path=data)
    # a broken file next to the folders of data sets must not hide these, so errors are raised at
    # the end
    broken: DataError | None = None
    for folder in (data, *(data / name for name in names)):
        try:
            if holds_data(folder):
                return folder
        except DataError as error:
            broken = broken or error
    if broken is not None:
        raise broken
    raise DataError(
        f"no {expected} found, neither in this folder nor in"
        f" {' or '.join(f'{name}/' for name in names)}; check the path",
        path=data,
    )


def folders_in(folder: Path) -> list[Path]:
    """Return the subfolders of a folder by name; none if the folder does not exist."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir())


def matching_files(
    folder: Path, pattern: str | re.Pattern[str]
) -> list[tuple[re.Match[str], Path]]:
    """Return the files with a fully matching name, in order, each with its match."""
    found = ((re.fullmatch(pattern, path.name), path) for path in files_in(folder))
    return [(match, path) for match, path in found if match]


def choose_languages(
    wanted: Sequence[str] | None,
    available: Mapping[str, str],
    groups: Mapping[str, Sequence[str]],
    folder: Path,
    *,
    names: Mapping[str, str] | None = None,
    pivots: Collection[str] = (),
) -> list[str]:
    """Return the keys of the files to evaluate, in the files' order.

    Args:
        wanted: language codes or names of any kind, groups' names, or pairs of languages
            (``de-en``); None for all files.
        available: a file's key -> its source language; the key is the language if that
            distinguishes files.
        groups: group name -> codes; of a group, the languages that have a file are taken.
        folder: named in errors.
        names: a file's key -> its pair of languages, ``deu-eng``; by default the key.
        pivots: languages on the other side of the files; if they are requested together with other
            languages, they select nothing.

    Raises:
        DataError: something wanted is not a language.
        LanguageAbsentError: something wanted has no file here.
    """
    if wanted is None:
        return list(available)
    chosen: set[str] = set()
    by_code: dict[str, list[str]] = {}
    for key, language in available.items():
        by_code.setdefault(full_code(language), []).append(key)
    for item in wanted:
        # look for names of groups and of files first, as they need not be languages, such as "muse"
        if item in groups:
            found = [code for code in groups[item] if code in available]
        elif item in available:
            found = [item]
        elif pair := language_pair(item):
            found = [key for key in available if language_pair((names or {}).get(key, key)) == pair]
        else:
            found = by_code.get(full_code(item), [])
        # if English is the other side of all files, "deu eng" selects only German; "eng" by itself
        # would select nothing, which is an error
        if not found and not (len(wanted) > 1 and full_code(item) in set(map(full_code, pivots))):
            known = ", ".join([*available][:12]) + (", ..." if len(available) > 12 else "")
            raise LanguageAbsentError(
                f"no file for the language {item!r}; use one of: {known}",
                item=item,
                path=folder,
            )
        chosen |= set(found)
    return [key for key in available if key in chosen]


def check_enough(
    chosen: Sequence[str], least: int, wanted: Sequence[str] | None, folder: Path
) -> None:
    """Refuse to pool fewer languages than needed.

    Args:
        chosen: those to pool.
        least: the number needed.
        wanted: the requested languages; a suite continues without a task that has too few.
        folder: named in errors.

    Raises:
        LanguageAbsentError: there are too few of the requested ones.
        DataError: the folder has too few.
    """
    if len(chosen) >= least:
        return
    found = (
        f"{least} languages are required, found {len(chosen)} language{'s' * (len(chosen) != 1)}"
    )
    if wanted is None:
        raise DataError(f"{found}; add files of other languages", path=folder)
    raise LanguageAbsentError(f"{found}; add more with --languages", item=wanted[0], path=folder)


def full_code(code: str) -> str:
    """Return the full code of a language: ``deu`` -> ``deu_Latn``."""
    return resolve_language(code).code


def language_pair(item: str) -> tuple[str, str] | None:
    """Return the full codes of ``de-fr``, or None for a single language.

    The second part is a region or script if it has capitals or digits (``pt-BR``, ``zh-Hans``) or
    changes how the language is written (``zh-tw``). ``en-de`` is therefore a pair, not the English
    of Germany.
    """
    first, dash, second = item.partition("-")
    if not dash or _REGION_OR_SCRIPT.fullmatch(second):
        return None
    source = find_code(first)
    target = find_code(second)
    if source is None or target is None:
        return None
    # zh-tw as a whole resolves to another code than zh, so it is a single language; en-de resolves
    # to the same code as en, so it is a pair
    if find_code(item) not in (None, source):
        return None
    return source, target


def pair_files_by_key(folder: Path) -> dict[str, PairFile]:
    """Return the pair files of a folder by name; ``deu-eng`` as ``deu``, ``deu-fra`` unchanged.

    Raises:
        DataError: two are of one pair of languages, or a file's name holds an unknown
            language code.
    """
    files = pair_files(folder)
    pairs = []
    for file in files:
        codes = (full_code(file.source_language), full_code(file.target_language))
        pairs.append(("-".join(codes), file.source_path))
    # refuses de-en.tsv next to deu-eng.tsv
    one_each(pairs, "pair of languages")
    return {file.name.removesuffix("-eng"): file for file in files}


def content_sha256(texts: Iterable[Sequence[str]]) -> str:
    """Return the hex SHA-256 of texts, one per line, whatever files they were read from."""
    digest = hashlib.sha256()
    for side in texts:
        for text in side:
            digest.update(f"{text}\n".encode())
        # after each side, so that a line moved from one side to the next changes the digest
        digest.update(b"\0")
    return digest.hexdigest()


@functools.cache
def published_digests(dataset: str) -> tuple[str, Mapping[str, str]]:
    """Return the revision of a published data set and a digest for each language.

    The digests are the first 12 hex digits of ``content_sha256``.
    """
    file = resources.files("interlingua") / "data" / "evaluation_sets.json"
    table = parse_json(file.read_text("utf-8"))
    return table[dataset]["revision"], table[dataset]["sha256"]


def recognize(dataset: str, digests: Mapping[str, str]) -> str | None:
    """Return the published revision of these contents, or None if any language differs.

    Args:
        dataset: a key of ``data/evaluation_sets.json``.
        digests: language -> ``content_sha256``.
    """
    revision, published = published_digests(dataset)
    # some of the languages are enough, as long as none differs
    for code, digest in digests.items():
        if published.get(code) != digest[:12]:
            return None
    return revision


def set_name(folder: Path) -> str:
    """Return the name of a set's folder; for a part of a corpus, ``prepared/heldout``."""
    whole = folder.resolve()
    if whole.name in PARTS_OF_CORPORA:
        return f"{whole.parent.name}/{whole.name}"
    return whole.name
