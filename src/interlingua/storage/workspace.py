"""A folder in which an interrupted run resumes: its lock, its record, and its finished steps.

The record holds the settings and the digests of the inputs with which the run started. For each
finished step it holds either a small value or the size and SHA-256 of the step's files. A step's
folder is written under a temporary name. Its digests are recorded first, then it is renamed. If the
process is killed in between, the record has digests of files that do not exist, so the step is done
again. The files of a finished step are compared with their digests before they are used. If they
are damaged, the step is done again; if its result differs, the steps after it are done again too.

Parts are folders that are written in small pieces, by writers that resume by their own journals.
The record does not list the files of parts; they are recognized by name.

Only files that the record names, and those of parts, are replaced or removed. A folder that is not
empty and has no record is refused, unless the workspace has parts: then a user may keep other files
in it, under other names. A user's own files in the folder of a step or a part stay there.

Shards of one job, which may be processes on several machines, share a folder. They make the steps
one at a time (``Workspace.alone``), and each writes files of its own in the parts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from interlingua.errors import ConfigError
from interlingua.storage import locks
from interlingua.storage.digests import are_digests, file_digests, find_damage
from interlingua.storage.files import (
    PathLike,
    atomic_directory,
    remove_entries,
    sha256_file,
    sha256_tree,
)
from interlingua.storage.formats import Format
from interlingua.storage.json_text import as_json
from interlingua.storage.record import RecordError, read_record, write_record
from interlingua.storage.temporary import sweep

log = logging.getLogger("interlingua")
WORKSPACE_RECORD = "workspace.json"
Resume = Literal["auto", "never", "only"]
_KEYS = {"settings", "inputs", "steps"}
NO_PARTS: Mapping[str, str] = {}


class Workspace:
    """An open workspace; see ``open_workspace``.

    Args:
        path: the folder.
        format: format of its record.
        content: content of its record.
        remedy: how to use another folder, in the imperative.
        parts: see ``open_workspace``.
        is_shared: whether shards share it.
    """

    def __init__(
        self,
        path: Path,
        format: Format,
        content: dict[str, Any],
        *,
        remedy: str,
        parts: Mapping[str, str] = NO_PARTS,
        is_shared: bool = False,
    ) -> None:
        self.path = path
        self.format = format
        self.remedy = remedy
        self._content = content
        self._parts = parts
        self._is_shared = is_shared
        self._steps: dict[str, dict[str, Any]] = content["steps"]
        self._verified: set[str] = set()

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of finished steps, in the order in which they were finished."""
        return tuple(name for name, entry in self._steps.items() if "begun" not in entry)

    def key(self, name: str) -> Any:
        """Return the key that a step was made with, or None."""
        return self._steps.get(name, {}).get("key")

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a step's record: equal files have equal digests."""
        text = json.dumps(self._steps[name].get("files"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def is_done(self, name: str, key: Any = None) -> bool:
        """Return whether a step is finished and its files are unchanged.

        Args:
            name: name of the step.
            key: settings of this step only; with another key the step counts as not finished.
        """
        entry = self._steps.get(name)
        if entry is None or "begun" in entry or entry.get("key") != key:
            return False
        if "files" in entry and name not in self._verified:
            fault = find_damage(self.path / name, entry["files"])
            if fault:
                log.warning("%s: %s; the step is run again", self.path / name, fault)
                return False
            self._verified.add(name)
        return True

    def get(self, name: str) -> Any:
        """Return the value of a finished step, or None."""
        return self._steps.get(name, {}).get("value")

    def put(self, name: str, value: Any) -> None:
        """Finish a step whose result is a value and not files.

        Args:
            name: name of the step.
            value: any value that JSON can hold, except None.
        """
        self._finish(name, {"value": as_json(value)})

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Admit one shard at a time to the block, and read the finished steps of the others."""
        # A run that is not a shard has the folder to itself.
        if not self._is_shared:
            yield
            return
        with locks.exclusive(self.path, remedy=self.remedy, name=".shared.lock", wait=True):
            found = _read(self.path, self.format, self.remedy, self._parts)
            self._steps.update(found["steps"] if found else {})
            yield

    @contextlib.contextmanager
    def step(self, name: str, key: Any = None) -> Iterator[Path]:
        """Yield a temporary folder, which becomes that of the step if the block raises no error.

        Args:
            name: name of the step.
            key: settings of only this step, kept with it.

        Raises:
            ConfigError: there is a folder of that name which this workspace did not make.
            DataError: the disk is full.
        """
        self._refuse_foreign(name)
        own = self._steps.get(name, {}).get("files", {})
        with atomic_directory(
            self.path / name, overwrite=True, ours=lambda _: True, entries=_pattern(own)
        ) as folder:
            yield folder
            # Record it before the rename, as a folder without a record would count as a user's.
            entry = {"files": file_digests(folder)}
            if key is not None:
                entry["key"] = key
            self._finish(name, entry)

    def clear(self) -> None:
        """Remove the files of all steps and parts, and the record last."""
        _remove(self.path, self._content, self._parts)

    def begin(self, name: str) -> Path:
        """Return the folder of a step whose writer itself resumes after an interruption.

        Call ``finish`` when the folder is complete.

        Raises:
            ConfigError: there is a folder of that name which this workspace did not make.
        """
        self._refuse_foreign(name)
        entry = self._steps.setdefault(name, {"begun": True})
        # Remove damaged files of an earlier result; a user's own files stay.
        remove_entries(self.path / name, _pattern(entry.get("files", {})))
        self._write()
        return self.path / name

    def finish(self, name: str) -> None:
        """Record the files of a step that ``begin`` started."""
        self._finish(name, {"files": file_digests(self.path / name)})

    def _finish(self, name: str, entry: dict[str, Any]) -> None:
        """Record a finished step; if it differs from before, later steps are no longer finished."""
        # If the result of a step is as before, everything that was made from it stays valid.
        before = self._steps.get(name)
        if before is not None and "begun" not in before and before != entry:
            names = list(self._steps)
            for later in names[names.index(name) + 1 :]:
                # The folder still belongs to this run, and may be replaced.
                self._steps[later] = {"begun": True, "files": self._steps[later].get("files", {})}
        if before is not None and "begun" in before:
            del self._steps[name]  # its place is after the steps that are finished by now
        self._steps[name] = entry
        self._verified.add(name)
        self._write()

    def _refuse_foreign(self, name: str) -> None:
        place = self.path / name
        # If the place is a link, its target would be overwritten.
        if place.is_symlink() or (os.path.lexists(place) and name not in self._steps):
            raise ConfigError(
                f"{place} does not belong to this run; move it elsewhere, or {self.remedy}"
            )

    def _write(self) -> None:
        write_record(self.path / WORKSPACE_RECORD, self.format, self._content)


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
    parts: Mapping[str, str] = NO_PARTS,
    shard: tuple[int, int] | None = None,
    is_private: bool = False,
) -> Iterator[Workspace]:
    """Lock a folder, and start or resume a run in it.

    Args:
        path: the folder, made if it is missing.
        format: format of its record.
        settings: settings that decide the result, as JSON has them.
        inputs: files and folders that are read; those that are missing are left out.
        may_change: settings that may differ when a run resumes.
        resume: ``auto`` resumes an existing run and otherwise starts one; ``never`` starts anew and
            removes the files of the existing run; ``only`` refuses to start a new run.
        remedy: how to use another folder, in the imperative: ``name another --output``.
        parts: folders that are written in small pieces, and the names of their files; both are
            regular expressions. An empty expression for files matches no file.
        shard: the part of the job that this run does, ``(2, 8)`` the second of eight.
        is_private: only its owner can enter the folder, if it is made here.

    Raises:
        ConfigError: another process works in the folder, or the folder holds other files, a run
            with other settings or inputs, or links in parts.
        RecordError: the record is damaged or of another version.
    """
    place = Path(path)
    if place.exists() and not place.is_dir():
        raise ConfigError(f"{place} is a file, expected a folder; {remedy}")
    with contextlib.ExitStack() as stack:
        is_shared = shard is not None
        stack.enter_context(
            locks.exclusive(place, remedy=remedy, shared=is_shared, private=is_private)
        )
        # Shards work side by side, but the same shard must not run twice.
        if shard is not None:
            name = f".shard-{shard[0]}of{shard[1]}.lock"
            stack.enter_context(locks.exclusive(place, remedy=remedy, name=name))
        beginning = stack.enter_context(contextlib.ExitStack())
        if shard is not None:
            beginning.enter_context(
                locks.exclusive(place, remedy=remedy, name=".shared.lock", wait=True)
            )
        # Compute the digests under the lock: for large inputs they take so long that another run
        # could start meanwhile.
        begun = {"settings": as_json(settings), "inputs": _fingerprints(inputs), "steps": {}}
        sweep(place)
        _refuse_links(place, parts, remedy)
        content = _read(place, format, remedy, parts)
        if content is None and resume == "only":
            raise ConfigError(
                f"{place}: the folder contains no run to resume; remove the resume option"
            )
        if content is not None and resume == "never":
            _remove(place, content, parts)
            content = None
        if content is not None:
            _compare(place, content, begun, may_change, remedy)
            # Settings that may change are kept as they are now.
            content["settings"] = begun["settings"]
        workspace = Workspace(
            place, format, content or begun, remedy=remedy, parts=parts, is_shared=is_shared
        )
        # This is the first file of the folder: by it a later run recognizes the others as ours.
        if content is None:
            workspace._write()
        beginning.close()
        yield workspace


def _read(
    place: Path, format: Format, remedy: str, parts: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the content of a workspace's record; None if the folder is empty."""
    try:
        content = read_record(place / WORKSPACE_RECORD, format, remedy=f"start over: {remedy}")
    except RecordError as error:
        if not error.is_missing:
            raise
        others = [path.name for path in sorted(place.iterdir()) if path.name != locks.LOCK_FILE]
        if parts:
            # Empty folders with names of parts do no harm, and a user may keep files with other
            # names.
            found = _parts_in(place, parts)
            others = [path.name for path in found if path.parent == place and _is_filled(path)]
        if others:
            raise ConfigError(
                f"{place}: the folder contains other files ({', '.join(sorted(others)[:5])}),"
                f" which this version of interlingua did not write; {remedy}"
            ) from None
        return None
    # The checksum does not authenticate the writer of the record.
    if content.keys() != _KEYS or not all(isinstance(content[key], dict) for key in _KEYS):
        raise RecordError(
            "is damaged or incomplete (keys are missing)",
            f"start over: {remedy}",
            path=place / WORKSPACE_RECORD,
        )
    for name, entry in content["steps"].items():
        if not re.fullmatch(r"[\w-]+", name) or not _is_entry(entry):
            raise RecordError(
                f"is damaged or incomplete (step {name[:60]!r})",
                f"start over: {remedy}",
                path=place / WORKSPACE_RECORD,
            )
    return content


def _is_entry(entry: Any) -> bool:
    """Return whether a step's entry has the types that this library writes."""
    if not isinstance(entry, dict) or entry.keys() - {"begun", "files", "key", "value"}:
        return False
    return are_digests(entry.get("files", {}))


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
            difference = f"{key} (then {before}, now {after})"
            if kind == "inputs":
                difference = f"{key} has changed since the run began"
            raise ConfigError(
                f"{place}: the folder contains a run with other {what}: {difference}; use the"
                f" earlier ones again to resume, or {remedy}"
            )


def _remove(place: Path, content: Mapping[str, Any], parts: Mapping[str, str]) -> None:
    """Remove the files of all steps and parts, and the record last."""
    # Descending order of the paths: a folder inside another one is emptied and removed first.
    for part in sorted(_parts_in(place, parts), reverse=True):
        if part.is_symlink() or not part.is_dir():
            continue
        sweep(part)
        for path in _files_in(place, part, parts):
            path.unlink()
        # A folder that holds other files is not removed.
        with contextlib.suppress(OSError):
            part.rmdir()
    for name, entry in content["steps"].items():
        remove_entries(place / name, _pattern(entry.get("files", {})))
    (place / WORKSPACE_RECORD).unlink()


def _refuse_links(place: Path, parts: Mapping[str, str], remedy: str) -> None:
    """Refuse links that have the name of a part, or of one of its files.

    Raises:
        ConfigError: there is such a link; its target would be overwritten.
    """
    for part in _parts_in(place, parts):
        inner = [] if part.is_symlink() or not part.is_dir() else _files_in(place, part, parts)
        for path in [part, *inner]:
            if path.is_symlink():
                raise ConfigError(
                    f"{path} is a link: its target would be overwritten; remove it, or {remedy}"
                )


def _parts_in(place: Path, parts: Mapping[str, str]) -> list[Path]:
    """Return all paths that have the name of a part; links are not followed."""
    found = []
    for folder, folders, files in os.walk(place):
        for name in [*folders, *files]:
            path = Path(folder) / name
            if _files_of(path.relative_to(place).as_posix(), parts) is not None:
                found.append(path)
        # ``os.walk`` descends only into the folders in this list, so not into a user's folders.
        folders[:] = [name for name in folders if Path(folder) / name in found]
    return found


def _files_in(place: Path, part: Path, parts: Mapping[str, str]) -> list[Path]:
    """Return the files with the name of a part's file."""
    pattern = _files_of(part.relative_to(place).as_posix(), parts) or ""
    found = [path for path in part.iterdir() if re.fullmatch(pattern, path.name)]
    return [path for path in found if path.is_symlink() or not path.is_dir()]


def _files_of(name: str, parts: Mapping[str, str]) -> str | None:
    """Return the name pattern of the files of a part; None if the folder is not a part."""
    return next((files for own, files in parts.items() if re.fullmatch(own, name)), None)


def _is_filled(path: Path) -> bool:
    """Return whether a path is not an empty folder."""
    return path.is_symlink() or not path.is_dir() or any(path.iterdir())


def _fingerprints(inputs: Iterable[PathLike]) -> dict[str, str]:
    """Return the SHA-256 of each file and folder."""
    found = {}
    for path in map(Path, inputs):
        if path.is_file():
            found[os.fspath(path)] = sha256_file(path)
        elif path.is_dir():
            found[os.fspath(path)] = sha256_tree(path)
    return found


def _pattern(files: Iterable[str]) -> str:
    """Return a regular expression of some paths; one that matches nothing if there are none."""
    return "|".join(map(re.escape, files)) or r"(?!)"
