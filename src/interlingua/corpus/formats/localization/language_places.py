"""Languages in the names of folders and files: ``de/``, ``values-de``, ``de.lproj``, ``app.de.ts``.

The last part of a file's name that is a code counts, then the folders, the nearest one first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from interlingua.config import languages
from interlingua.config.languages import NamedCode
from interlingua.corpus.formats.bitext import uncompressed_name
from interlingua.storage.files import PathLike

_RESOURCES = re.compile(
    r"values-(?P<code>[a-z]{2,3}(?:-r[A-Z]{2})?|b\+[A-Za-z0-9+]+)(?:-[a-z0-9].*)?"
)
"""Folders of Android: ``values-de``, ``values-pt-rBR``, ``values-b+sr+Latn``."""
_LPROJ = re.compile(r"(?P<code>[\w-]+)\.lproj", re.IGNORECASE)
_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*(?:@[a-z]+)?")
_SCRIPTS = {"latin": "Latn", "cyrillic": "Cyrl"}
_BASE = ("values", "Base.lproj")
"""Folders of the texts that others are translated from, mostly English."""


class LanguagePlace(NamedTuple):
    """The place of a path that names its language."""

    code: NamedCode
    folder: int | None
    """Number of the part of the path; None = in the file's name."""
    span: tuple[int, int] = (0, 0)
    """In the file's name: start and end of the language."""


def is_base_folder(name: str) -> bool:
    """Return whether a folder holds the texts that others are translated from."""
    return name in _BASE


def language_of_folder(name: str) -> NamedCode | None:
    """Return the language of a folder's name, None if it names none."""
    for pattern in (_RESOURCES, _LPROJ):
        if (found := pattern.fullmatch(name)) and not is_base_folder(name):
            return _code(found["code"])
    if is_base_folder(name):
        return languages.as_named(languages.find_code(languages.ENGLISH))
    if _CODE.fullmatch(name):
        return _code(name)
    return None


def language_of_path(path: PathLike) -> NamedCode | None:
    """Return the language that a path names: by a part of the file's name, else by a folder."""
    place = language_place(Path(path))
    if place is None:
        return None
    return place.code


def language_place(path: Path) -> LanguagePlace | None:
    """Return where a path names its language, or None."""
    # The name takes precedence over a folder: "shared/en/app.de.json" is German.
    name = uncompressed_name(path.name)
    stem = name.rpartition(".")[0] or name
    if found := _place_in_name(stem):
        return found
    # The folder before LC_MESSAGES is the language, others only if they are codes.
    for number in reversed(range(len(path.parts) - 1)):
        if code := language_of_folder(path.parts[number]):
            return LanguagePlace(code, number)
    return None


def _place_in_name(stem: str) -> LanguagePlace | None:
    """Return the last part of a name that is a language: ``de``, ``app.pt_BR``, ``app_de``."""
    end = len(stem)
    for part in reversed(stem.split(".")):
        start = end - len(part)
        # The longest end comes first: "app_pt_BR" is "pt_BR", not "BR"; "messages" is no code.
        for found in re.finditer(r"(?:^|[-_])(?=(.+)$)", part):
            if _CODE.fullmatch(found[1]) and (code := _code(found[1])):
                return LanguagePlace(code, None, (start + found.start(1), end))
        end = start - 1
    return None


def _code(name: str) -> NamedCode | None:
    # Android writes BCP 47 as "b+sr+Latn", and regions as "pt-rBR".
    if name.startswith("b+"):
        name = name[2:].replace("+", "-")
    name = re.sub(r"-r([A-Z]{2})$", r"-\1", name)
    base, _, script = name.partition("@")  # "sr@latin" names a script
    if script in _SCRIPTS:
        base = f"{base}-{_SCRIPTS[script]}"
    return languages.as_named(languages.find_in_name(base.replace("_", "-")))
