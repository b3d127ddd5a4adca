"""Journals: a line for each finished part of a long step, so that a killed run can resume.

The first line is the head: the settings that define the parts. Parts with another head are never
used in this run.

The output of a part is written to the disk before its line is added. A line is the CRC-32 of a JSON
value, followed by this value. A line that a kill has cut, or that has changed since, is ignored:
its part is done again, and doing a part twice must not change the result. Only one process at a
time appends to a journal; this is safe on network disks too, unlike SQLite or LMDB.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from interlingua.errors import ConfigError
from interlingua.storage.files import PathLike, atomic_write
from interlingua.storage.json_text import as_json, parse_json

_MARK_BYTES = 9
"""Bytes of the CRC-32 and the space at the start of a line."""


class Journal:
    """A file of finished parts.

    Args:
        path: path of the file, which does not exist before the first part.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)

    def read(self) -> list[Any]:
        """Return the values of all complete lines; tuples are returned as lists."""
        try:
            content = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        # After the last line feed there is nothing, or a line that was cut.
        lines = content.split("\n")[:-1]
        return [found[0] for found in map(_parse, lines) if found]

    def head(self) -> Any:
        """Return the first value, or None."""
        return next(iter(self.read()), None)

    def parts(self, head: Mapping[str, Any], *, remedy: str) -> list[Any]:
        """Return the finished parts of a journal with a head; none if it was not started.

        Args:
            head: settings that determine the parts, as JSON has them.
            remedy: how to use another file, in the imperative.

        Raises:
            ConfigError: the file has parts of another head, or is not a journal.
        """
        if self.is_foreign():
            raise ConfigError(
                f"{self.path}: is damaged, or was written by another program; {remedy}"
            )
        values = self.read()
        # If there is no part yet, nothing is lost by starting again.
        if len(values) < 2 and (not values or isinstance(values[0], dict)):
            return []
        begun, *parts = values
        now = as_json(head)
        if begun == now:
            return parts
        if not isinstance(begun, dict):
            raise ConfigError(f"{self.path}: is damaged or incomplete (the first line); {remedy}")
        key = min(key for key in begun.keys() | now.keys() if begun.get(key) != now.get(key))
        raise ConfigError(
            f"{self.path}: the file was begun with another {key} (then {str(begun.get(key))[:80]},"
            f" now {str(now.get(key))[:80]}); {remedy}"
        )

    def resume(self, head: Mapping[str, Any], *, remedy: str) -> list[Any]:
        """Start a journal, or resume one of the same head; see ``parts``."""
        parts = self.parts(head, remedy=remedy)
        # Write the journal again, without lines that were cut or changed.
        self.write([head, *parts])
        return parts

    def is_foreign(self) -> bool:
        """Return whether a file of this name holds something else; a cut line does not count."""
        if not self.path.is_file():
            return False
        with open(self.path, "rb") as file:
            head = file.read(_MARK_BYTES)
        return re.fullmatch(rb"[0-9a-f]{0,8}|[0-9a-f]{8} ", head) is None

    def add(self, value: Any) -> None:
        """Add a value and write it to the disk at once; remove a line before it that was cut."""
        with open(self.path, "a+b") as file:
            # The new line must not be appended to a line that was cut.
            end = file.tell()
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":
                    self._drop_cut_line()
            file.write(_line(value).encode())
            file.flush()
            os.fsync(file.fileno())

    def write(self, values: Iterable[Any]) -> None:
        """Replace all values."""
        with atomic_write(self.path) as file:
            file.writelines(map(_line, values))

    def _drop_cut_line(self) -> None:
        content = self.path.read_bytes()
        os.truncate(self.path, content.rfind(b"\n") + 1)


def _line(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


def _parse(line: str) -> tuple[Any] | None:
    """Return the value of a line in a tuple; None if the line is damaged."""
    mark, _, text = line.partition(" ")
    if f"{zlib.crc32(text.encode(errors='replace')):08x}" != mark:
        return None
    try:
        return (parse_json(text),)
    except ValueError:
        return None
