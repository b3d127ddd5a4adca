"""A folder in which an interrupted run resumes: its lock, its record, and its finished steps.

The record holds the settings and the digests of the inputs that the run began with, and of each
finished step either a small value or the size and SHA-256 of its files. A step's folder is written
under a temporary name. Its digests are recorded first, then it is renamed. A process that is
killed in between leaves digests of files that are not there, so the step is done again. A finished
step is compared with its digests before it is used. If it is damaged, it is done again; if its
result differs, the steps after it are done again too.

Only files that the record names are replaced or removed. A folder that holds anything and has no
record is refused, and a user's own files in a step's folder stay there.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from interlingua import locks
from interlingua.errors import ConfigError
from interlingua.files import (
    PathLike,
    atomic_directory,
    remove_entries,
    sha256_file,
    sha256_tree,
)
from interlingua.storage.formats import Format
from interlingua.storage.record import RecordError, read_record, write_record
from interlingua.temporary import sweep

log = logging.getLogger("interlingua")
RECORD = "workspace.json"
Resume = Literal["auto", "never", "only"]
_KEYS = {"settings", "inputs", "steps"}


class Workspace:
    """An open workspace; see ``open_workspace``.

    Args:
        path: the folder.
        format: of its record.
        content: of its record.
        remedy: how to use another folder, in the imperative.
    """

    def __init__(self, path: Path, format: Format, content: dict[str, Any], *, remedy: str) -> None:
        self.path = path
        self.format = format
        self.remedy = remedy
        self._content = content
        self._steps: dict[str, dict[str, Any]] = content["steps"]
        self._verified: set[str] = set()

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of finished steps, in the order in which they were finished."""
        return tuple(name for name, entry in self._steps.items() if "begun" not in entry)

    def is_done(self, name: str) -> bool:
        """Return whether a step is finished and its files are as they were written."""
        entry = self._steps.get(name)
        if entry is None or "begun" in entry:
            return False
        if "files" in entry and name not in self._verified:
            fault = _damage(self.path / name, entry["files"])
            if fault:
                log.warning("%s: %s; this step is done again", self.path / name, fault)
                return False
            self._verified.add(name)
        return True

    def get(self, name: str) -> Any:
        """Return the value of a finished step, or None."""
        return self._steps.get(name, {}).get("value")

    def put(self, name: str, value: Any) -> None:
        """Finish a step that has a value in place of files.

        Args:
            name: of the step.
            value: anything that JSON has, but None.
        """
        self._finish(name, {"value": _plain(value)})

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Path]:
        """Yield a temporary folder, which becomes the step's folder when the block ends well.

        Raises:
            ConfigError: a folder of that name is there that this workspace did not make.
            DataError: the disk is full.
        """
        self._refuse_foreign(name)
        own = self._steps.get(name, {}).get("files", {})
        with atomic_directory(
            self.path / name, overwrite=True, ours=lambda _: True, entries=_pattern(own)
        ) as folder:
            yield folder
            # Before the rename: a folder that is there without a record would be a user's.
            self._finish(name, {"files": _digests(folder)})

    def begin(self, name: str) -> Path:
        """Return the folder of a step that is made by a writer which resumes by itself.

        Call ``finish`` when it is whole.

        Raises:
            ConfigError: a folder of that name is there that this workspace did not make.
        """
        self._refuse_foreign(name)
        entry = self._steps.setdefault(name, {"begun": True})
        # Damaged files of an earlier result; a user's own ones stay.
        remove_entries(self.path / name, _pattern(entry.get("files", {})))
        self._write()
        return self.path / name

    def finish(self, name: str) -> None:
        """Record the files of a step that ``begin`` began."""
        self._finish(name, {"files": _digests(self.path / name)})

    def _finish(self, name: str, entry: dict[str, Any]) -> None:
        """Record a finished step; if it differs from before, later steps are no longer finished."""
        # A step that comes out as before leaves all that was made of it valid.
        before = self._steps.get(name)
        if before is not None and "begun" not in before and before != entry:
            names = list(self._steps)
            for later in names[names.index(name) + 1 :]:
                # The folder is still this run's, and may be replaced.
                self._steps[later] = {"begun": True, "files": self._steps[later].get("files", {})}
        if before is not None and "begun" in before:
            del self._steps[name]  # its place is after the steps that are finished by now
        self._steps[name] = entry
        self._verified.add(name)
        self._write()

    def _refuse_foreign(self, name: str) -> None:
        place = self.path / name
        if os.path.lexists(place) and name not in self._steps:
            raise ConfigError(
                f"{place} was not made by this run; move it elsewhere, or {self.remedy}"
            )

    def _write(self) -> None:
        write_record(self.path / RECORD, self.format, self._content)


@contextlib.contextmanager
def open_workspace(
    path: PathLike,
    format: Format,
    *,
    settings: Mapping[str, Any],
    inputs: Iterable[PathLike] = (),
    may_change: Collection[str] = (),
    resume: Resume = "auto",
    remedy: str,
) -> Iterator[Workspace]:
    """Lock a folder, and begin or resume a run in it.

    Args:
        path: the folder, made if it is missing.
        format: of its record.
        settings: that decide the result, as JSON has them.
        inputs: files and folders that are read; those that are missing are left out.
        may_change: settings that a run may resume with otherwise than it began.
        resume: ``auto`` resumes a run that is there and otherwise begins; ``never`` begins anew
            and removes what the run there has made; ``only`` refuses to begin.
        remedy: how to use another folder, in the imperative: ``name another --output``.

    Raises:
        ConfigError: another process works there, the folder holds other files, or a run with other
            settings or inputs.
        RecordError: the record is damaged or of another version.
    """
    place = Path(path)
    if place.exists() and not place.is_dir():
        raise ConfigError(f"{place} is a file; {remedy}")
    with locks.exclusive(place, remedy=remedy):
        # Under the lock, as digests of large inputs take time in which another run could begin.
        begun = {"settings": _plain(settings), "inputs": _fingerprints(inputs), "steps": {}}
        sweep(place)
        content = _read(place, format, remedy)
        if content is None and resume == "only":
            raise ConfigError(f"{place} holds no run to resume; leave the resume option out")
        if content is not None and resume == "never":
            _remove(place, content)
            content = None
        if content is not None:
            _compare(place, content, begun, may_change, remedy)
            # Settings that may change are kept as they are now.
            content["settings"] = begun["settings"]
        workspace = Workspace(place, format, content or begun, remedy=remedy)
        # The first file of the folder: by it a later run knows that the others are ours.
        if content is None:
            workspace._write()
        yield workspace


def _read(place: Path, format: Format, remedy: str) -> dict[str, Any] | None:
    """Return the content of a workspace's record; None if the folder is empty."""
    try:
        content = read_record(place / RECORD, format, remedy=f"start over: {remedy}")
    except RecordError as error:
        if not error.is_missing:
            raise
        if any(entry.name != locks.NAME for entry in place.iterdir()):
            raise ConfigError(f"{place} holds other files; {remedy}") from None
        return None
    # The checksum does not tell who wrote the record.
    if content.keys() != _KEYS or not all(isinstance(content[key], dict) for key in _KEYS):
        raise RecordError("damaged: keys are missing", f"start over: {remedy}", path=place / RECORD)
    for name, entry in content["steps"].items():
        if not re.fullmatch(r"[\w-]+", name) or not _is_entry(entry):
            raise RecordError(
                f"damaged: step {name[:60]!r}", f"start over: {remedy}", path=place / RECORD
            )
    return content


def _is_entry(entry: Any) -> bool:
    """Return whether a step's entry has the types that are written."""
    if not isinstance(entry, dict) or entry.keys() - {"begun", "files", "value"}:
        return False
    files = entry.get("files", {})
    return isinstance(files, dict) and all(map(_is_digest, files.values()))


def _is_digest(found: Any) -> bool:
    """Return whether a file's entry is its size and its SHA-256."""
    return isinstance(found, list) and list(map(type, found)) == [int, str]


def _compare(
    place: Path,
    content: Mapping[str, Any],
    now: Mapping[str, Any],
    may_change: Collection[str],
    remedy: str,
) -> None:
    """Refuse to resume a run with other settings or inputs; name the first one that differs."""
    for kind, what in (("settings", "settings"), ("inputs", "inputs")):
        then = content[kind]
        for key in sorted(then.keys() | now[kind].keys()):
            before = then.get(key)
            after = now[kind].get(key)
            if key in may_change or before == after:
                continue
            difference = f"{key} ({before}, {after}) (then, now)"
            if kind == "inputs":
                difference = f"{key} has changed since it began"
            raise ConfigError(
                f"{place} holds a run of other {what}: {difference}; resume with the same ones, or"
                f" {remedy}"
            )


def _remove(place: Path, content: Mapping[str, Any]) -> None:
    """Remove the files of all steps, and the record last."""
    for name, entry in content["steps"].items():
        remove_entries(place / name, _pattern(entry.get("files", {})))
    (place / RECORD).unlink()


def _fingerprints(inputs: Iterable[PathLike]) -> dict[str, str]:
    """Return the SHA-256 of each file and folder."""
    found = {}
    for path in map(Path, inputs):
        if path.is_file():
            found[os.fspath(path)] = sha256_file(path)
        elif path.is_dir():
            found[os.fspath(path)] = sha256_tree(path)
    return found


def _digests(folder: Path) -> dict[str, list[int | str]]:
    """Return size and SHA-256 of each file below a folder, by its path there."""
    return {
        path.relative_to(folder).as_posix(): [path.stat().st_size, sha256_file(path)]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _damage(folder: Path, files: Mapping[str, list[int | str]]) -> str:
    """Return which file is not as it was written; empty if all are."""
    for name, (size, digest) in files.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != size or sha256_file(path) != digest:
            return f"{name} was cut or changed since it was written"
    return ""


def _pattern(files: Iterable[str]) -> str:
    """Return a regular expression of some paths; one that matches nothing if there are none."""
    return "|".join(map(re.escape, files)) or r"(?!)"


def _plain(value: Any) -> Any:
    """Return a value as JSON gives it back, so that it can be compared with one that was read."""
    return json.loads(json.dumps(value, default=os.fspath))
