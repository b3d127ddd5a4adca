"""The objects of a JSON list one at a time, for files too large to be read whole.

A window moves over the file. One item at a time is parsed from the start of the window; if the
window ends within the item, more text is added to the window, and the item is parsed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

from interlingua.errors import DataError
from interlingua.storage.files import PathLike, open_text
from interlingua.storage.json_text import parse_json_value
from interlingua.storage.limits import refuse_long

CHUNK_CHARACTERS = 1 << 20
_DELIMITERS = (",", "]", " ", "\t", "\r", "\n")


def json_array_items(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the items of a file that is a JSON list, each with the number of its first line.

    Memory holds one item.

    Raises:
        DataError: it is not a list, or not JSON.
    """
    with open_text(path, in_lines=False, is_json=True) as file:
        window = _Window(file, path)
        window.expect("[", "a list")
        if window.next_character() == "]":
            return
        while True:
            line = window.line
            yield line, window.value()
            if window.next_character() == "]":
                return
            window.expect(",", "a comma or the end of the list")


def is_json_array(path: PathLike) -> bool:
    """Return whether a file starts like a list of JSON."""
    # Not by lines: the list may be a single line that is longer than the limit.
    with open_text(path, in_lines=False, is_json=True) as file:
        while chunk := file.read(4096):
            if stripped := chunk.lstrip():
                return stripped.startswith("[")
    return False


class _Window:
    """The part of a file that is being parsed.

    ``_text[_at:]`` has been read and not parsed yet; ``_newlines`` counts the lines before
    ``_text``.
    """

    def __init__(self, file: TextIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._text = ""
        self._at = 0
        self._newlines = 0

    @property
    def line(self) -> int:
        """Line of the next character that is not a space, from 1."""
        self.next_character()
        return 1 + self._newlines + self._text.count("\n", 0, self._at)

    def next_character(self) -> str:
        """Return the next character that is not a space, without consuming it.

        The end of the file is an error.
        """
        while True:
            while self._at < len(self._text) and self._text[self._at].isspace():
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                self._fail("is incomplete, because it ends inside the list; fetch it again")

    def expect(self, character: str, what: str) -> None:
        """Consume one character, which must be the expected one."""
        if (found := self.next_character()) != character:
            self._fail(f"expected {what}, found {found!r}; correct the file")
        self._at += 1

    def value(self) -> Any:
        """Parse one value, reading as much as it needs.

        Each try has twice as much text as the one before, so that all tries together cost about
        twice the last one.
        """
        self.next_character()
        while True:
            try:
                value, end = parse_json_value(self._text, self._at)
            except json.JSONDecodeError as error:
                # The item may be cut off at the window's end, or be invalid; only the file's end
                # shows which is the case.
                length = len(self._text) - self._at
                refuse_long(length, "this entry", path=self._path, line=self.line)
                if self._read(length):
                    continue
                self._at = min(error.pos, len(self._text))
                self._fail(f"is not valid JSON ({error.msg}); correct the file")
            except ValueError as error:
                self._fail(f"contains JSON that cannot be used ({error})")
            # The digits of a number at the window's end may continue behind it.
            is_whole = isinstance(value, dict | list | str)
            is_whole = is_whole or self._text[end : end + 1] in _DELIMITERS
            if not is_whole and self._read():
                continue
            self._at = end
            return value

    def _read(self, at_least: int = 0) -> bool:
        """Add text to the window and drop the parsed part; false at the file's end."""
        more = self._file.read(max(CHUNK_CHARACTERS, at_least))
        self._newlines += self._text.count("\n", 0, self._at)
        self._text = self._text[self._at :] + more
        self._at = 0
        return bool(more)

    def _fail(self, message: str) -> NoReturn:
        line = 1 + self._newlines + self._text.count("\n", 0, self._at)
        raise DataError(message, path=self._path, line=line)
