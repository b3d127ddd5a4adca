"""A result and the larger files that belong to it appear together, whatever moment the process is killed at.

The larger files are written first, under a name that ends with ``.next``. The result names the digest of each, and with
its own file all of them count. Then they get their names. A reader looks under both names for the digest that the
result names, so scores never stand without their items, or with those of another run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from interlingua.errors import DataError
from interlingua.files import atomic_write, sha256_file
from interlingua.locks import exclusive

Write = Callable[[Path], None]
"""Makes a file of that name, whole."""


def write_together(path: Path, render: Callable[[dict[str, str]], str], sidecars: Mapping[Path, Write | None]) -> None:
    """Writes a result and all that belongs to it.

    Args:
        path: of the result.
        render: gives the content of the result from the digests of its files, by the end of their names.
        sidecars: how to write each; none where there is nothing to write, and what is there is removed.
    """
    with exclusive(path.parent, remedy="name another --output", name=f".{path.stem}.lock", wait=True):
        digests = {}
        for sidecar, write in sidecars.items():
            if write is not None:
                write(_next(sidecar))
                digests[_key(path, sidecar)] = sha256_file(_next(sidecar))
        with atomic_write(path) as file:
            file.write(render(digests))
        for sidecar, write in sidecars.items():
            if write is None:
                sidecar.unlink(missing_ok=True)
                _next(sidecar).unlink(missing_ok=True)
            else:
                _next(sidecar).replace(sidecar)


def find_sidecar(path: Path, sidecar: Path, digests: Any) -> Path | None:
    """The file that belongs to a result; none where there is none.

    Args:
        path: of the result.
        sidecar: the usual name of the file.
        digests: what the result names; empty in results of earlier versions, which have the file under its usual name.

    Raises:
        DataError: there is a file, but another than the result was written with.
    """
    if not isinstance(digests, Mapping):
        return sidecar if sidecar.exists() else None
    expected = digests.get(_key(path, sidecar))
    there = [place for place in (sidecar, _next(sidecar)) if place.exists()]
    if expected is None or not there:
        return None
    for place in there:
        if sha256_file(place) == expected:
            return place
    raise DataError("changed since the result was written, or of another one; evaluate again", path=sidecar)


def _next(sidecar: Path) -> Path:
    return sidecar.with_name(f"{sidecar.name}.next")


def _key(path: Path, sidecar: Path) -> str:
    return sidecar.name.removeprefix(f"{path.stem}.")
