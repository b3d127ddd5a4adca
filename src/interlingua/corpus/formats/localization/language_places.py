"""Languages in the names of folders and files: ``de/``, ``values-de``, ``de.lproj``, ``app.de.ts``.

A name such as ``main`` or ``app`` may be a code of some language as well; only folders and parts of
names that tools give to languages count, the nearest one first.
"""

from __future__ import annotations

import re
from pathlib import Path

from interlingua.config import languages
from interlingua.config.languages import NamedCode
from interlingua.corpus.formats.bitext import uncompressed_name
from interlingua.storage.files import PathLike

_RESOURCES = re.compile(r"(?:values|raw|xml)-(?P<code>[a-z]{2,3}(?:-r[A-Z]{2})?|b\+[\w+]+)(?:-.*)?")
"""Folders of Android: ``values-de``, ``values-pt-rBR``, ``values-b+sr+Latn``."""
_LPROJ = re.compile(r"(?P<code>[\w-]+)\.lproj", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*(?:@[a-z]+)?")
_BASE = ("values", "Base.lproj")
"""Folders of the texts in the language that others are translated from, mostly English."""


def language_of_folder(name: str) -> NamedCode | None:
    """Return the language of a folder's name, None if it names none."""
    for pattern in (_RESOURCES, _LPROJ):
        if found := pattern.fullmatch(name):
            return _code(found["code"])
    if name in _BASE:
        return languages.as_named(languages.find_code(languages.ENGLISH))
    if _PLAIN.fullmatch(name):
        return _code(name)
    return None


def language_of_path(path: PathLike) -> NamedCode | None:
    """Return the language that a path names: by a part of the file's name, else by a folder."""
    place = Path(uncompressed_name(path))
    # The last part that is a language: "app.de.ts", "app_de.ts", "messages-de.json", "de.json".
    stem = place.name.rpartition(".")[0] or place.name
    for part in reversed(stem.split(".")):
        if found := _language_of_part(part):
            return found
    for folder in reversed(place.parent.parts):
        # The folder before LC_MESSAGES is certain, others only if they are codes.
        if found := language_of_folder(folder):
            return found
    return None


def _language_of_part(part: str) -> NamedCode | None:
    """Return the language at the end of a part of a name: ``de``, ``pt_BR``, ``app_pt_BR``."""
    pieces = re.split(r"[-_]", part)
    # The longest end first, so that "app_pt_BR" is no "BR"; "messages" alone is no code.
    for start in range(max(0, len(pieces) - 3), len(pieces)):
        end = "-".join(pieces[start:])
        is_code = _PLAIN.fullmatch(end) and pieces[start].islower()
        if is_code and (found := _code(end)):
            return found
    return None


def _code(name: str) -> NamedCode | None:
    if name.startswith("b+"):
        name = name[2:].replace("+", "-")
    name = re.sub(r"-r([A-Z]{2})$", r"-\1", name)
    # "sr@latin" names a script.
    base, _, script = name.partition("@")
    if script in ("latin", "cyrillic"):
        base = f"{base}-{ {'latin': 'Latn', 'cyrillic': 'Cyrl'}[script] }"
    return languages.as_named(languages.find_in_name(base.replace("_", "-")))
