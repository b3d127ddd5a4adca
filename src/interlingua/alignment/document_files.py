"""The documents of two languages: their files, languages and texts.

The files of both sides come from two folders, two lists, or one folder with the languages in names
(``guide.de.md`` and ``guide.fr.md``, ``de/guide.md`` and ``fr/guide.md``). Each file is read once
by ``corpus.documents``. The language of a document is, in this order, the one from the options, the
one that the file declares, the one in its name, or the one identified from its text. Each side
keeps the documents of one language; every other file is left out with its reason.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.config.languages import find_in_name, resolve_language
from interlingua.corpus.cleaning.language_evidence import is_meant
from interlingua.corpus.cleaning.named_languages import is_word
from interlingua.corpus.documents import (
    Document,
    LeftOut,
    Unit,
    find_documents,
    read_document,
)
from interlingua.corpus.inspection.languages_found import guess_language
from interlingua.errors import ConfigError, DataError, InterlinguaError
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.storage.json_text import parse_json
from interlingua.storage.remote import WILD

Paths = PathLike | Sequence[PathLike]
"""A folder, a file, a pattern, several of these separated by commas, or a list of these."""
_SEPARATORS = re.compile(r"[._\-]")
_SAMPLED_UNITS = 50
"""Units per place (start, middle and end) of a document by which its language is identified."""


class DocumentFile(NamedTuple):
    """A file to read.

    Attributes:
        path: of the file.
        name: path below the folder that was named, with ``/``.
        side: 0 source, 1 target, -1 if the language decides.
        folder: name of the folder to which ``name`` is relative.
    """

    path: Path
    name: str
    side: int
    folder: str = ""


class StoredDocument(NamedTuple):
    """A document as the work folder holds it.

    Attributes:
        path: of its file.
        name: see ``DocumentFile``.
        language: a code, or empty.
        title: may be empty.
        units: blocks in reading order.
        side: see ``DocumentFile``.
    """

    path: str
    name: str
    language: str
    title: str
    units: list[Unit]
    side: int


def list_sides(source: Paths, target: Paths | None) -> tuple[list[DocumentFile], list[LeftOut]]:
    """List the files of both sides, and the files that are left out with their reasons.

    Args:
        source: documents of the source, or of both languages if there is no target.
        target: documents of the target.

    Raises:
        DataError: a side has no document.
    """
    files: list[DocumentFile] = []
    left_out: list[LeftOut] = []
    sides = [(source, -1)] if target is None else [(source, 0), (target, 1)]
    for paths, side in sides:
        roots = path_list(paths)
        found, left = find_documents(roots)
        left_out += left
        if not found:
            raise DataError(
                f"no document found{_first_reason(left)}; pass a folder or files of documents",
                path=", ".join(map(os.fspath, roots))[:200],
            )
        for path in found:
            name = _name_below(path, roots)
            # The name of the folder to which ``name`` is relative.
            depth = name.count("/") + 1
            above = path.absolute().parents[depth - 1].name
            files.append(DocumentFile(path, name, side, above))
    seen: dict[str, int] = {}
    for file in files:
        before = seen.setdefault(os.path.realpath(file.path), file.side)
        if before != file.side:
            raise ConfigError(
                f"{file.path} is in both SOURCE and TARGET; pass different files for each side,"
                " or one folder with both languages"
            )
    return files, left_out


def path_list(paths: Paths) -> list[Path]:
    """Return the paths of a side, which commas may separate; patterns are not expanded.

    Raises:
        DataError: a path is missing.
    """
    if not isinstance(paths, str | os.PathLike):
        return [path for one in paths for path in path_list(one)]
    name = os.fspath(paths)
    if Path(name).exists() or any(mark in name for mark in WILD):
        return [Path(name)]
    if "," in name:
        return [path for part in name.split(",") for path in path_list(part.strip())]
    raise DataError("file or folder not found; check the path", path=name)


def _first_reason(left: Sequence[LeftOut]) -> str:
    if not left:
        return ""
    return f" ({len(left)} left out; the first is {left[0].path}, because: {left[0].reason})"


def _name_below(path: Path, roots: Sequence[Path]) -> str:
    """Return the path of a file below the folder that contains it, or the file's name.

    For a pattern, the folder is the part of the path before the first wildcard.
    """
    for root in roots:
        folder = root
        while any(mark in folder.as_posix() for mark in WILD):
            folder = folder.parent
        if path != folder and path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name


def find_named_languages(name: str) -> list[str]:
    """Return the languages that a path may name, the most specific first.

    These are parts of the file's name (``guide.de.md``, ``guide_pt-BR.md``, ``de-guide.md``), then
    its folders (``de/guide.md``), the innermost first.
    """
    *folders, file = name.split("/")
    stem = file.rpartition(".")[0] or file
    found = []
    for part in (stem, *reversed(folders)):
        found += _languages_of_part(part)
    return list(dict.fromkeys(found))


def _languages_of_part(part: str) -> list[str]:
    """Return the languages at the start or end of the name of a file or folder."""
    whole = find_in_name(part)
    if whole:
        return [str(whole)]
    tokens = _SEPARATORS.split(part)
    found = []
    # Look for a locale before its parts: the "BR" of "pt-BR" is not the code of Breton.
    for ends in ((tokens[-2:], tokens[-1:]), (tokens[:2], tokens[:1])):
        for end in ends:
            code = find_in_name("-".join(end)) if len(end[-1]) > 1 else None
            if code and len(end) < len(tokens):
                found.append(str(code))
                break
    return found


def read_documents(
    files: Sequence[DocumentFile],
    languages: tuple[str | None, str | None],
    path: Path,
    progress: Progress = SILENT,
) -> tuple[list[LeftOut], list[str]]:
    """Read all files and write their units to a file of JSON lines, one file after the other.

    Args:
        files: see ``list_sides``.
        languages: of source and target from the options, resolved codes or None.
        path: of the file to write.
        progress: counts the files.

    Returns:
        Files that can't be read, with the reasons, and doubts about the other files.
    """
    left_out: list[LeftOut] = []
    notes: list[str] = []
    progress.start(len(files), "documents", "reading")
    with open(path, "w", encoding="utf-8") as lines:
        for file in files:
            try:
                document = read_document(file.path, _wanted_language(file, languages))
                line = as_stored(file, document, languages)
                lines.write(json.dumps(line, ensure_ascii=False) + "\n")
                notes += [f"{file.path}: {note}" for note in document.notes]
            except (InterlinguaError, UnicodeError) as error:
                reason = str(error).removeprefix(f"{file.path}: ")
                left_out.append(LeftOut(os.fspath(file.path), reason))
            progress.advance()
    return left_out, notes


def _wanted_language(file: DocumentFile, languages: tuple[str | None, str | None]) -> str | None:
    """Return the language of the side that a file belongs to, if it is known beforehand."""
    return languages[file.side] if file.side >= 0 else None


def as_stored(
    file: DocumentFile, document: Document, languages: tuple[str | None, str | None]
) -> StoredDocument:
    """Return a document with its language.

    Args:
        file: of the document.
        document: its content.
        languages: of source and target from the options, or None.
    """
    if not document.units:
        raise DataError("the document contains no text", path=file.path)
    language = document_language(file, document, languages)
    return StoredDocument(
        os.fspath(file.path), file.name, language, document.title, document.units, file.side
    )


def document_language(
    file: DocumentFile, document: Document, languages: tuple[str | None, str | None]
) -> str:
    """Return the language of a document: declared, in its name, or identified; else empty.

    If the options specify both languages, a name is searched only for these two.
    """
    if document.language:
        return document.language
    sample = _sample(document.units)
    named = find_named_languages(f"{file.folder}/{file.name}")
    if all(languages):
        named = [code for code in named if _is_one_of(code, languages)]
    for code in named:
        # A word of a name may be a code ("is", "to"): then the text decides.
        if not is_word(code) or is_meant(sample, code):
            return code
    return guess_language(sample) or ""


def _sample(units: Sequence[Unit]) -> list[str]:
    """Return texts from the start, the middle and the end of a document."""
    texts = [unit.text for unit in units if unit.kind != "code"] or [unit.text for unit in units]
    if len(texts) <= 3 * _SAMPLED_UNITS:
        return texts
    middle = len(texts) // 2
    return [
        *texts[:_SAMPLED_UNITS],
        *texts[middle : middle + _SAMPLED_UNITS],
        *texts[-_SAMPLED_UNITS:],
    ]


def _is_one_of(code: str, languages: Iterable[str | None]) -> bool:
    """Return whether a code is of any of the given languages, whatever the region."""
    return any(_is_same(code, language) for language in languages)


def _is_same(code: str, other: str | None) -> bool:
    """Return whether two codes are of one language, whatever the region."""
    return bool(other) and code[:3] == str(other)[:3]


def stored_documents(path: Path) -> Iterator[StoredDocument]:
    """Yield the documents that ``read_documents`` wrote."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            path_of_file, name, language, title, units, side = parse_json(line)
            kept = [Unit(*unit) for unit in units]
            yield StoredDocument(path_of_file, name, language, title, kept, side)


class SideLanguages(NamedTuple):
    """The languages of both sides, and which documents do not fit.

    Attributes:
        codes: of source and target.
        sides: of each document in order: 0, 1, or -1 if it is left out.
        left_out: documents in other languages.
    """

    codes: tuple[str, str]
    sides: list[int]
    left_out: list[LeftOut]


def assign_sides(
    documents: Iterable[StoredDocument],
    given: tuple[str | None, str | None],
    left_out: Sequence[LeftOut] = (),
) -> SideLanguages:
    """Return the languages of source and target, and the side of each document.

    Args:
        documents: all that were read.
        given: languages as the user names them, resolved codes or None.
        left_out: files that could not be read, for errors.

    Raises:
        DataError: a side has no document, a language can't be found, both sides have the same one,
            or one folder holds more or fewer than two languages and none are specified.
    """
    facts = [(one.path, one.language, one.side) for one in documents]
    sides_read = {side for _, _, side in facts}
    for side, name in enumerate(("source", "target")):
        if not sides_read & {side, -1}:
            raise DataError(f"no {name} document can be read{_first_reason(left_out)}")
    if any(side < 0 for _, _, side in facts):
        codes = _codes_of_folder(Counter(language for _, language, _ in facts), given)
    else:
        codes = (_code_of_side(facts, 0, given[0]), _code_of_side(facts, 1, given[1]))
    if codes[0] == codes[1]:
        raise DataError(
            f"both sides are in {_name_of(codes[0])} ({codes[0]}); pass --source-language and"
            " --target-language, or check the folders"
        )
    sides = []
    misplaced = []
    for path, language, side in facts:
        place = _place_of(language, side, codes, given)
        sides.append(place)
        if place < 0:
            found = f"its language is {_name_of(language)}" if language else "language not found"
            wanted = " or ".join(codes) if side < 0 else codes[side]
            misplaced.append(LeftOut(path, f"{found}, expected {wanted}"))
    for side, name in enumerate(("source", "target")):
        if side not in sides:
            raise DataError(
                f"no {name} document is in {_name_of(codes[side])} ({codes[side]}); pass"
                " --source-language and --target-language"
            )
    return SideLanguages(codes, sides, misplaced)


def _place_of(
    language: str, side: int, codes: tuple[str, str], given: tuple[str | None, str | None]
) -> int:
    """Return the side of a document, -1 if it is in another language."""
    fits = [_is_same(language, code) for code in codes]
    if side >= 0:
        # The user's language is trusted, because short texts are hard to identify. But a
        # document in the language of the other side is misplaced.
        is_other = fits[1 - side] and not fits[side]
        is_wrong = bool(language) and not fits[side] and not given[side]
        return -1 if is_wrong or is_other else side
    if fits[0] and fits[1]:
        # Source and target are the same language of two regions.
        return 0 if language == codes[0] else 1
    return fits.index(True) if any(fits) else -1


def _code_of_side(facts: Sequence[tuple[str, str, int]], side: int, given: str | None) -> str:
    """Return the language of a side: the user's, or that of most documents."""
    if given:
        return given
    name = ("source", "target")[side]
    counts = Counter(language for _, language, own in facts if own == side and language)
    if not counts:
        raise DataError(
            f"the language of the {name} documents cannot be identified; pass --{name}-language"
        )
    return counts.most_common(1)[0][0]


def _codes_of_folder(counts: Counter[str], given: tuple[str | None, str | None]) -> tuple[str, str]:
    """Return the two languages of one folder.

    The source is the language from the options, or the first in the order of codes.
    """
    found = sorted(code for code in counts if code)
    source, target = given
    if source and target:
        return source, target
    if source or target:
        others = [code for code in found if not _is_same(code, source or target)]
        if len(others) == 1:
            return (source or others[0], target or others[0])
    elif len(found) == 2:
        return found[0], found[1]
    listed = ", ".join(f"{code} ({counts[code]})" for code in found[:8]) or "none"
    raise DataError(
        f"a single folder must contain documents in two languages, found {listed}; pass"
        " --source-language and --target-language, or two folders"
    )


def _name_of(code: str) -> str:
    return resolve_language(code).name
