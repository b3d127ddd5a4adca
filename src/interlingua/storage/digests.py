"""Sizes and SHA-256 digests of the files of a folder, by which damage is detected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from interlingua.storage.files import sha256_file

FileDigests = dict[str, list[int | str]]
"""Size and SHA-256 of each file, by its path below the folder."""


def file_digests(folder: Path) -> FileDigests:
    """Return the digests of all files below a folder; links are left out."""
    return {
        path.relative_to(folder).as_posix(): [path.stat().st_size, sha256_file(path)]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def are_digests(found: Any) -> TypeGuard[FileDigests]:
    """Return whether a value has the right types, which a record's checksum does not guarantee."""
    return isinstance(found, dict) and all(map(_is_digest, found.values()))


def _is_digest(found: Any) -> bool:
    return isinstance(found, list) and list(map(type, found)) == [int, str]


def find_damage(folder: Path, files: Mapping[str, list[int | str]]) -> str:
    """Return a text on the first file that is missing or has changed; empty if none has."""
    for name, (size, digest) in files.items():
        path = folder / name
        if not path.is_file():
            return f"{name} not found"
        if path.stat().st_size != size or sha256_file(path) != digest:
            return f"{name} was truncated or changed after it was written"
    return ""
