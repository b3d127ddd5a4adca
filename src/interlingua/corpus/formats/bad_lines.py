"""Lines of a data file that can't be used.

Either the first such line stops the work, or all such lines are left out, counted and written to a
separate file. In the second case, the content of a damaged or truncated compressed file or XML file
is kept up to the damage. Faults that make pairs wrong, or hide the next good line, always stop the
work: files of unequal length (no line is certain to be aligned), a line longer than the limit, and
a file without any readable content.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TextIO, get_args

from interlingua.errors import ConfigError, DamagedFileError, DataError, count_of
from interlingua.storage.files import PathLike, open_text_writer

log = logging.getLogger("interlingua")
OnError = Literal["stop", "skip"]
_SHOWN = 10
"""Maximum number of lines that the report shows."""
_COLUMNS = ("file", "line", "problem", "content")
_LINE_ENDS = {ord(character): " " for character in "\t\n\r"}


class BadLines:
    """Handling of unreadable lines; a context manager that closes the file of these lines on exit.

    Args:
        on_error: ``stop`` raises the error of the first such line; ``skip`` continues without it.
        path: file for the lines that are left out, with the columns file, line, problem and
            content, separated by TABs; created with the first such line.

    Attributes:
        count: lines left out.
        first: errors of the first lines that were left out.
        damages: errors of damaged files, each with the amount that was read before the damage.

    Raises:
        ConfigError: ``on_error`` is neither ``stop`` nor ``skip``.
    """

    def __init__(self, on_error: str = "stop", path: PathLike | None = None) -> None:
        if on_error not in get_args(OnError):
            raise ConfigError(f"on_error: expected stop or skip, found {on_error!r}")
        self.skips = on_error == "skip"
        self.path = path
        self.count = 0
        self.first: list[str] = []
        self.damages: list[str] = []
        self._file: TextIO | None = None
        self._stack = contextlib.ExitStack()
        # File and line of rejected lines: a file may be read more than once.
        self._seen: set[tuple[str, int]] = set()

    def __enter__(self) -> BadLines:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        self._file = None
        return self._stack.__exit__(*error)

    @property
    def errors(self) -> str:
        """The error handler for non-UTF-8 bytes, for ``files.open_text``; see ``numbered``."""
        return "surrogateescape" if self.skips else "strict"

    def reject(self, error: DataError, content: str = "") -> None:
        """Raise the error, or record the line; a line that is read again counts only once."""
        if not self.skips:
            raise error
        self.leave_out(error, content)

    def leave_out(self, error: DataError, content: str = "") -> None:
        """Record an unreadable entry in a format with independent entries.

        In such a format, as TMX or gettext, only this entry is lost, and the rest of the file is
        read, for any value of ``on_error``.
        """
        if error.line is not None:
            place = (str(error.path), error.line)
            if place in self._seen:
                return
            self._seen.add(place)
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(str(error))
        if self.path is not None:
            self._write(error, content)

    def damaged(self, error: DamagedFileError, read: str, *, is_empty: bool) -> None:
        """Raise the error, or record that a file ends where it is damaged.

        Args:
            error: what is wrong.
            read: description of the earlier content, as ``"1,200 pairs"``.
            is_empty: whether nothing was read before the damage; then the error is always raised.
        """
        if not self.skips or is_empty:
            raise error
        place = (str(error.path), -1)  # -1 is no line number, and a file has one damage only
        if place in self._seen:
            return
        self._seen.add(place)
        self.damages.append(f"{error}; kept {read} before the damage")
        if self.path is not None:
            self._write(error, "")

    def numbered(self, lines: Iterable[str], path: PathLike) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers from 1; lines that are not UTF-8 are left out."""
        for number, line in enumerate(lines, 1):
            if self.is_text(line, path, number):
                yield number, line

    def is_text(self, line: str, path: PathLike, number: int) -> bool:
        """Return whether a line is valid UTF-8, and reject a line that is not."""
        # The cheap tests come first, because most lines of most files are ASCII or valid UTF-8.
        if not self.skips or line.isascii():
            return True
        try:
            line.encode("utf-8")
        except UnicodeEncodeError:  # bytes that were read with surrogateescape
            self.reject(DataError("not UTF-8", path=path, line=number), line)
            return False
        return True

    def lines(self) -> list[str]:
        """Return the lines of the report."""
        damages = [f"warning: {damage}" for damage in self.damages]
        if not self.count:
            return damages
        were = "was" if self.count == 1 else "were"
        head = f"warning: {count_of(self.count, 'lines')} could not be read and {were} left out"
        if self.path is not None:
            head = f"{head}; they are listed in {self.path}"
        shown = list(self.first)
        if self.count > len(shown):
            shown.append(f"and {self.count - len(shown):,} more")
        return [head, *(f"  {line}" for line in shown), *damages]

    def log_report(self, path: PathLike) -> None:
        """Log the report of a file, for a reader whose caller does not report bad lines."""
        for line in self.lines():
            log.warning("%s: %s", os.fspath(path), line.strip().removeprefix("warning: "))

    def _write(self, error: DataError, content: str) -> None:
        if self._file is None:  # the first bad line makes the file
            self._file = self._stack.enter_context(open_text_writer(str(self.path)))
            self._file.write("\t".join(_COLUMNS) + "\n")
        line = "" if error.line is None else str(error.line)
        # One line of four columns, whatever the content holds.
        shown = _with_escapes(content.rstrip("\r\n").translate(_LINE_ENDS))
        self._file.write(f"{error.path}\t{line}\t{error.problem}\t{shown}\n")


def _with_escapes(text: str) -> str:
    r"""Return a text with bytes that are not UTF-8 written as ``\xe4``."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # a surrogate of JSON, which represents no byte
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
