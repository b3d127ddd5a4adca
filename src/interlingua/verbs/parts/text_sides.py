"""Texts of two languages in folders or patterns: the files of each side, and their pairs by name.

A side is a folder with all folders in it, or a pattern; ``mine`` and ``align`` read the same files.
The name of a file (``news.de.txt``, ``news.de``) or of a folder (``de/news.txt``) contains the
language of the file. Each side has one language: the one of the options, otherwise the one that
most of its files name. Without a target, one folder has both sides, and the languages in the names
determine the side of each file.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.alignment.document_files import find_named_languages
from interlingua.alignment.document_pairing import name_without_language
from interlingua.config import languages
from interlingua.config.languages import choose_code, find_in_name
from interlingua.corpus.cleaning.named_languages import is_word
from interlingua.corpus.documents.finding import LeftOut, list_files
from interlingua.corpus.documents.kinds import (
    OTHER_DOCUMENTS,
    TEXT_SUFFIXES,
    is_document,
)
from interlingua.corpus.documents.reading import remedy_of
from interlingua.corpus.formats.bitext import FORMAT_OF_SUFFIX, guess_format, resolved_code
from interlingua.corpus.formats.localization.language_places import language_of_folder
from interlingua.corpus.formats.monolingual import find_language
from interlingua.corpus.formats.sentence_table import is_table
from interlingua.errors import ConfigError, DataError
from interlingua.mining.documents import language_pattern
from interlingua.storage.files import PathLike, open_text, stem_and_suffix
from interlingua.storage.remote import WILD, is_remote

_NAMES = ("source", "target")
_OPTIONS = "--source-language and --target-language"
_LOOKED_AT = 50
"""Number of lines that are read to recognize a table of pairs."""


class SideFile(NamedTuple):
    """A text file of a side.

    Attributes:
        path: of the file.
        name: path below the folder or the fixed part of the pattern, with ``/``.
        languages: those in the names of the file and its folders, the most specific first.
    """

    path: Path
    name: str
    languages: tuple[str, ...]


class TextSide(NamedTuple):
    """The text files of one language.

    Attributes:
        files: in the order of their paths.
        language: a code; empty if neither a name nor an option has one.
    """

    files: list[SideFile]
    language: str


class FilePair(NamedTuple):
    """Two text files that belong together by their names.

    Attributes:
        source: path of the source file.
        target: path of the target file.
        label: path of the target below its folder.
        languages: languages of both files; empty if unknown.
    """

    source: str
    target: str
    label: str
    languages: tuple[str, str]


def refuse_pairs(path: PathLike, *, split: bool) -> None:
    """Refuse a file of pairs if a text of one language is expected.

    Raises:
        DataError: it is a bitext or a catalog.
    """
    if not is_remote(path) and (reason := _reason_against_pairs(Path(path), split=split)):
        raise DataError(reason, path=path)


def list_sides_of_text(
    source: PathLike,
    target: PathLike | None,
    given: tuple[str | None, str | None] = (None, None),
    *,
    split: bool = False,
) -> tuple[TextSide, list[TextSide], list[LeftOut]]:
    """List the text files of both sides.

    Args:
        source: a folder, a pattern or a file; it has both languages if there is no target.
        target: a folder, a pattern or a file of the other language, or None.
        given: languages in any code, or None.
        split: the files may be documents that are to be split into sentences.

    Returns:
        The source, the targets (several only if one folder has more than two languages), and the
        files that are left out with their reasons.

    Raises:
        DataError: a side has no file, or its language is not clear.
        ConfigError: a file belongs to both sides.
    """
    codes = (resolved_code(given[0]), resolved_code(given[1]))
    roots = [source] if target is None else [source, target]
    left_out: list[LeftOut] = []
    # The names of folders that contain both sides are not used as languages.
    common = os.path.commonpath([os.path.abspath(_fixed_folder(root)) for root in roots])
    found = [_side_files(root, common, split, left_out) for root in roots]
    if target is None:
        one, others = _sides_of_one_folder(found[0], codes, source, left_out)
        return one, others, left_out
    # One folder may be inside of the other one.
    shared = {os.path.realpath(file.path) for file in found[0]}
    for file in found[1]:
        if os.path.realpath(file.path) in shared:
            raise ConfigError(
                f"{file.path}: is in both SOURCE and TARGET; name a folder for each language, or"
                " one folder with both"
            )
    named = (_language_of_side(found[0], codes[0], 0), _language_of_side(found[1], codes[1], 1))
    if named[0] and named[0] == named[1]:
        raise DataError(f"both sides are {named[0]}; name the languages with {_OPTIONS}")
    sides = [
        TextSide(_fitting(files, named[side], named[1 - side], codes[side], left_out), named[side])
        for side, files in enumerate(found)
    ]
    return sides[0], sides[1:], left_out


def list_side_of_text(
    root: PathLike, given: str | None = None, *, split: bool = False
) -> tuple[TextSide, list[LeftOut]]:
    """List the text files of one side, if the other is not in files; see ``list_sides_of_text``."""
    left_out: list[LeftOut] = []
    above = os.path.dirname(os.path.abspath(_fixed_folder(root)))
    files = _side_files(root, above, split, left_out)
    return TextSide(files, _language_of_side(files, resolved_code(given), 0)), left_out


def left_out_reasons(left_out: Iterable[LeftOut]) -> list[str]:
    """Return a text for each file that was left out."""
    return [f"{left.path}: {left.reason}" for left in sorted(left_out)]


def pair_files_by_name(
    source: TextSide, targets: Sequence[TextSide], left_out: list[LeftOut]
) -> list[FilePair]:
    """Return the files of both sides that belong together by their names.

    Files with equal paths below the two folders are paired first, then those whose paths differ in
    the language, then those whose paths also differ in the ending.

    Args:
        source: the files of one language.
        targets: the files of each other language.
        left_out: gets the files without a partner.

    Raises:
        DataError: two files of a side have the same name, or no file has a partner.
    """
    pairs = []
    paired = set()
    # A source file has a partner in each language.
    for target in targets:
        own = _pairs_of_sides(source, target)
        pairs += own
        paired |= {path for pair in own for path in (pair.source, pair.target)}
    for number, side in enumerate([source, *targets]):
        other = _NAMES[number == 0]
        for file in side.files:
            if str(file.path) not in paired:
                left_out.append(LeftOut(str(file.path), f"no {other} file has this name"))
    if not pairs:
        first = [side.files[0].path for side in (source, targets[0])]
        raise DataError(
            f"no two files have matching names, for example {first[0]} and {first[1]}; rename"
            " them so that only the language differs, or list the pairs with align --list"
        )
    return sorted(pairs, key=lambda pair: (pair.label, pair.source))


def _pairs_of_sides(source: TextSide, target: TextSide) -> list[FilePair]:
    """Return the pairs of one language pair; see ``pair_files_by_name``."""
    sides = (source, target)
    patterns = [language_pattern(side.language) if side.language else None for side in sides]
    left = [list(side.files) for side in sides]
    pairs = []
    # The strictest rule comes first, so that a looser rule never separates equal names.
    for step in range(3):
        by_key = []
        for files, pattern in zip(left, patterns, strict=True):
            groups: dict[str, list[SideFile]] = {}
            for file in files:
                key = file.name
                # Without languages only the ending may differ.
                if step and pattern is not None:
                    key = name_without_language(file.name, pattern, ending=step == 1)
                elif step:
                    key = file.name[: len(file.name) - len(stem_and_suffix(file.name)[1])]
                groups.setdefault(key, []).append(file)
            by_key.append(groups)
        # Files are paired if their key is unique on both sides; the others are left to the next
        # step, which may separate them.
        # A key that only one side has may have any number of files.
        for key in by_key[0].keys() & by_key[1].keys():
            own, other = by_key[0][key], by_key[1][key]
            if len(own) == len(other) == 1:
                codes = (source.language, target.language)
                pairs.append(FilePair(str(own[0].path), str(other[0].path), other[0].name, codes))
                left[0].remove(own[0])
                left[1].remove(other[0])
            elif step == 2:
                two = own if len(own) > 1 else other
                raise DataError(
                    f"{two[0].path} and {two[1].path} have the same name except for language and"
                    f" ending, and both match {(other if two is own else own)[0].path}; rename one"
                )
    return pairs


def _is_pattern(root: PathLike) -> bool:
    return not os.path.exists(root)


def _fixed_folder(root: PathLike) -> Path:
    """Return a folder, the folder of a file, or that of a pattern before its first wildcard."""
    path = Path(root)
    # The name of a folder may contain a wildcard character.
    if path.is_dir():
        return path
    while path.name and (not path.is_dir() or any(mark in str(path) for mark in WILD)):
        path = path.parent
    return path


def _side_files(
    root: PathLike, common: str, split: bool, left_out: list[LeftOut]
) -> list[SideFile]:
    """List the files of a folder or a pattern.

    Args:
        root: the folder or pattern.
        common: parent folder, whose own name is not used as a language.
        split: documents are split into sentences.
        left_out: gets the other files.

    Raises:
        DataError: there is no text file.
    """
    is_pattern = _is_pattern(root)
    files, left = list_files(root, lambda file: _unfit(file, split, is_any=is_pattern))
    left_out += left
    if not files:
        raise DataError(
            f"expected text files, found none{_first_of(left)}; check the path", path=root
        )
    return [_side_file(file, root, common) for file in files]


def _side_file(path: Path, root: PathLike, common: str) -> SideFile:
    """Return a file of a side, with the languages that its name and folders name."""
    full = Path(os.path.relpath(os.path.abspath(path), common)).as_posix()
    found: list[str] = []
    # A word in a file's name counts as a language only if the text confirms it; a word that is a
    # folder's name always counts.
    if (code := find_language(path)) is not None:
        found.append(code)
    *folders, _ = full.split("/")
    found += [code for part in reversed(folders) if (code := language_of_folder(part))]
    found += [code for code in find_named_languages(full) if not is_word(code)]
    name = os.path.relpath(path, _fixed_folder(root))
    return SideFile(path, Path(name).as_posix(), tuple(dict.fromkeys(found)))


def _unfit(file: Path, split: bool, *, is_any: bool) -> str:
    """Return why a file is not read as text; empty if it is.

    Args:
        file: path of the file.
        split: documents are split into sentences.
        is_any: it was chosen by a pattern, and so may have any ending.
    """
    if reason := _reason_against_pairs(file, split=split):
        return reason
    suffix = stem_and_suffix(file)[1]
    if suffix in (*TEXT_SUFFIXES, ".tsv") or is_table(file):
        return ""
    if is_document(file):
        return "" if split else "a document of paragraphs; pass --split"
    if suffix in OTHER_DOCUMENTS:
        return remedy_of(suffix)
    # The ending of "news.de" is a language.
    if is_any or not suffix or find_in_name(suffix[1:]):
        return ""
    return f"of unknown kind ({suffix})"


def _reason_against_pairs(file: Path, *, split: bool) -> str:
    """Return why a file of pairs is not read as text; empty if it is no file of pairs."""
    suffix = stem_and_suffix(file)[1]
    # Texts and tables may be of one language.
    if suffix in TEXT_SUFFIXES or is_table(file) or not suffix:
        return ""
    if suffix not in (*FORMAT_OF_SUFFIX, ".xml", ".ts"):
        return ""
    try:
        format = guess_format(file)
    except DataError:
        return ""
    if format == "tsv":
        return _reason_against_columns(file)
    if format == "moses" or (is_document(file) and split):
        return ""
    expected = "expected a text in one language, found"
    if format == "catalog":
        return f"{expected} a catalog of keys; run interlingua score, which pairs texts by keys"
    remedy = "run interlingua score"
    if is_document(file):
        remedy += ", or pass --split to read its texts"
    return f"{expected} pairs of texts ({format}); {remedy}"


def _reason_against_columns(file: Path) -> str:
    """Return why a table with tabs is not read as text; empty unless its lines have two texts."""
    try:
        with open_text(file, errors="surrogateescape") as lines:
            rows = [line.split("\t") for line in itertools.islice(lines, _LOOKED_AT)]
    except DataError:
        return ""  # reported when the file is read
    # An id or a document before a text is one word.
    texts = [row for row in rows if len(row) > 1 and len(row[-2].split()) > 1]
    if not rows or min(map(len, rows)) < 2 or 2 * len(texts) < len(rows):
        return ""
    return "expected a text in one language, found two texts in a line; run interlingua score"


def _first_of(left: Sequence[LeftOut]) -> str:
    if not left:
        return ""
    return f" ({len(left):,} left out, the first: {left[0].path}: {left[0].reason})"


def _same(code: str, other: str | None) -> bool:
    """Return whether two codes are of one language, whatever the region."""
    return bool(other) and code[:3] == str(other)[:3]


def _named_by_most(files: Iterable[SideFile]) -> list[str]:
    """Return the languages that most files name; several if they are named equally often."""
    # The first language of a name counts more than later ones: news.de-en/de.txt.
    every = Counter(code for file in files for code in file.languages)
    first = Counter(file.languages[0] for file in files if file.languages)
    best = max(((every[code], first[code]) for code in every), default=None)
    return [code for code in every if (every[code], first[code]) == best]


def _language_of_side(files: list[SideFile], given: str | None, side: int) -> str:
    """Return the language of a side; empty if no name has one.

    Raises:
        DataError: two languages are named equally often.
    """
    if given:
        return given
    found = _named_by_most(files)
    if len(found) > 1:
        one, other = (_first_in(files, code) for code in found[:2])
        raise DataError(
            f"the {_NAMES[side]} files are in several languages, such as {one} ({found[0]}) and"
            f" {other} ({found[1]}); pass --{_NAMES[side]}-language"
        )
    return found[0] if found else ""


def _first_in(files: Iterable[SideFile], code: str) -> Path:
    """Return the first file that names a language."""
    return next(file.path for file in files if code in file.languages)


def _fitting(
    files: list[SideFile], own: str, other: str, given: str | None, left_out: list[LeftOut]
) -> list[SideFile]:
    """Return the files that are in the language of their side; the others are left out.

    Raises:
        DataError: no file is left.
    """
    kept = []
    for file in files:
        named = file.languages
        is_own = not named or any(_same(code, own) for code in named)
        # The user's language is trusted, except for a file in the other side's language.
        is_other = any(_same(code, other) for code in named)
        if is_own or (given and not is_other):
            kept.append(file)
        else:
            left_out.append(LeftOut(str(file.path), f"its name says {named[0]}, not {own}"))
    if not kept:
        raise DataError(
            f"no file is in {own} by its name; check the path and {_OPTIONS}", path=files[0].path
        )
    return kept


def _sides_of_one_folder(
    files: list[SideFile],
    codes: tuple[str | None, str | None],
    root: PathLike,
    left_out: list[LeftOut],
) -> tuple[TextSide, list[TextSide]]:
    """Return the sides of one folder, which are separated by the languages in names.

    The source language is that of the options, otherwise English, otherwise the first of two codes.

    Raises:
        DataError: its names have fewer than two languages, or the source is not clear.
    """
    by_code: dict[str, list[SideFile]] = {}
    for file in files:
        # If a name has several languages, one that the options name is preferred.
        wanted = {str(one)[:3] for one in codes if one}
        named = [code for code in file.languages if code[:3] in wanted]
        code = next(iter(named or file.languages), None)
        if code is None:
            left_out.append(LeftOut(str(file.path), "no language in its name"))
        else:
            by_code.setdefault(str(code), []).append(file)
    # Sorted, so that the source of two languages does not depend on the order of files.
    found = [code for code in map(languages.find_code, sorted(by_code)) if code is not None]
    place = choose_code(codes[0] or languages.ENGLISH, found)
    if place is None and codes[0] is None and len(found) == 2:
        other = choose_code(codes[1], found) if codes[1] else None
        place = 0 if other is None else 1 - other
    targets = [
        code
        for number, code in enumerate(found)
        if number != place and (codes[1] is None or languages.accepts(codes[1], code))
    ]
    if place is None or not targets:
        counts = ", ".join(f"{code} ({len(by_code[code])})" for code in found[:8]) or "none"
        raise DataError(
            f"expected files of two languages by their names, found {counts}; pass {_OPTIONS}, or"
            " name a folder for each language",
            path=root,
        )
    chosen = [found[place], *targets]
    # Files in other languages are also reported as left out.
    for code in found:
        if code not in chosen:
            reason = f"its name says {code}, not {' or '.join(chosen[:8])}"
            left_out += [LeftOut(str(file.path), reason) for file in by_code[code]]
    sides = [TextSide(by_code[code], str(code)) for code in chosen]
    return sides[0], sides[1:]
