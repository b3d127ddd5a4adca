"""The two files of a pair: named by both with a comma, by one, or by the start of their names.

Files of one text in several languages differ in one place, a part of the name (``film.de.srt``,
``de.json``) or a folder (``values-de/strings.xml``, ``de.lproj/Localizable.strings``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.config import languages
from interlingua.config.languages import LanguageCode, choose_code
from interlingua.corpus.formats.bitext import uncompressed_name
from interlingua.corpus.formats.localization.language_places import (
    LanguagePlace,
    is_base_folder,
    language_of_folder,
    language_of_path,
    language_place,
)
from interlingua.errors import DataError


class TwoFiles(NamedTuple):
    """The files of both sides and their languages."""

    paths: tuple[Path, Path]
    languages: tuple[str, str]


def find_two_files(path: str, source: str | None, target: str | None) -> TwoFiles:
    """Find the files of a pair.

    Args:
        path: both files with a comma, the source first; one of the files, by whose name the other
            is found; or the start of their names, before the language.
        source: a code, if it is known.
        target: code of the target's language, or None.

    Raises:
        DataError: there are no two such files, or their languages are unknown.
    """
    if "," in path and not Path(path).exists():
        first, second = (Path(part.strip()) for part in path.split(",", 1))
        one = source or language_of_path(first)
        other = target or language_of_path(second)
        if not one or not other:
            raise DataError(
                "the languages are unknown, because the file names do not contain them; pass"
                " --source-language and --target-language",
                path=path,
            )
        return TwoFiles((first, second), (one, other))
    found = files_of_languages(path)
    codes = list(found)
    order = _order(codes, path, source, target)
    if order is None:
        known = ", ".join(str(file) for file in found.values()) or "none"
        raise DataError(
            f"expected the files of two languages, found {known}; pass both files as a,b, or"
            " --source-language and --target-language",
            path=path,
        )
    chosen = [codes[place] for place in order]
    return TwoFiles((found[chosen[0]], found[chosen[1]]), (chosen[0], chosen[1]))


def files_of_languages(path: str) -> dict[LanguageCode, Path]:
    """Return the file of each language, found by a prefix of names or next to one of the files."""
    file = Path(path)
    found: dict[LanguageCode, Path] = {}
    # A path that is no file is a prefix of names.
    if not file.is_file():
        return _files_behind(file)
    place = language_place(file)
    if place is None:
        return found
    for other in sorted(_candidates(file, place)):
        own = language_place(other)
        if own is not None and _shape(other, own) == _shape(file, place):
            found.setdefault(own.code, other)
    return found


def _files_behind(prefix: Path) -> dict[LanguageCode, Path]:
    """Return the files ``prefix.<language>.<suffix>``."""
    found: dict[LanguageCode, Path] = {}
    if not prefix.parent.is_dir():
        return found
    for file in sorted(prefix.parent.iterdir()):
        parts = uncompressed_name(file.name).removeprefix(f"{prefix.name}.").split(".")
        if file.name.startswith(f"{prefix.name}.") and len(parts) == 2:
            code = languages.find_in_name(parts[0])
            if code is not None:
                found.setdefault(code, file)
    return found


def _candidates(file: Path, place: LanguagePlace) -> list[Path]:
    """Return the files that may be the same text in another language."""
    if place.folder is None:
        return [other for other in file.parent.iterdir() if other.is_file()]
    # The folders of other languages are next to this one's: values, values-de, values-fr.
    parts = file.parts
    above = Path(*parts[: place.folder])
    rest = Path(*parts[place.folder + 1 :])
    found = []
    for folder in above.iterdir():
        other = folder / rest
        is_language = is_base_folder(folder.name) or language_of_folder(folder.name) is not None
        if is_language and other.is_file():
            found.append(other)
    return found


def _shape(file: Path, place: LanguagePlace) -> tuple[str, ...]:
    """Return the parts of a path without its language."""
    parts = list(file.parts)
    if place.folder is not None:
        parts[place.folder] = ""
    else:
        parts[-1] = file.name[: place.span[0]] + "*" + file.name[place.span[1] :]
    return tuple(parts)


def _order(
    codes: Sequence[LanguageCode], path: str, source: str | None, target: str | None
) -> tuple[int, int] | None:
    """Return which language is the source and which the target; None if that is not clear.

    The passed languages decide. Without them, English is the source, and the language of the named
    file is the target.
    """
    first = choose_code(source or languages.ENGLISH, codes)
    wanted = target or language_of_path(path)
    second = None
    if wanted:  # by default the named file is the target
        second = choose_code(wanted, codes)
    # Of two languages, the one that is not chosen takes the missing side.
    if first == second and not target:
        second = None
    if first == second and not source:
        first = None
    if len(codes) == 2 and first is None and not source:
        first = int(second == 0)
    if len(codes) == 2 and second is None and not target:
        second = int(first == 0)
    if first is None or second is None or first == second:
        return None
    return first, second
