"""Limits on untrusted files: characters of a line, growth when unpacked, size of a document.

A streamed file needs memory for its longest line, and a compressed file may unpack to a thousand
times its size. So bytes pass a guard between the disk and the reader. The guard counts them, and
refuses the file before too much of it is in memory.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import IO, Any, TypeVar

from interlingua.errors import ConfigError, DataError

MAX_LINE_CHARACTERS = 10_000_000
"""Maximum number of characters of a line of text, or of one entry of a list or a translation
memory."""
MAX_DOCUMENT_BYTES = 1 << 28
"""Maximum number of bytes of a file that is parsed as a whole: JSON, a gettext catalogue."""
MAX_CONFIG_BYTES = 1 << 24
"""Maximum number of bytes of a file of settings: TOML, a model's ``config.json``."""
MAX_EXPANSION = 300
"""Maximum ratio of unpacked to compressed size beyond ``FREE_EXPANSION_BYTES``; that of text is 3
to 30."""
FREE_EXPANSION_BYTES = 1 << 26
MAX_MEMBERS = 10_000
"""Maximum number of files in an archive."""
LINE_VARIABLE = "INTERLINGUA_MAX_LINE"
"""Environment variable with another limit for lines; processes that this one starts inherit it."""
EXPANSION_VARIABLE = "INTERLINGUA_MAX_EXPANSION"
_CONTINUATION = bytes(range(0x80, 0xC0))
"""Continuation bytes of UTF-8; the number of all other bytes is the number of characters."""
T = TypeVar("T")


def max_line_characters() -> int:
    """Return the current limit for lines.

    Raises:
        ConfigError: the environment variable holds no positive whole number.
    """
    return _from_environment(LINE_VARIABLE, MAX_LINE_CHARACTERS)


def max_expansion() -> int:
    """Return the current limit for the growth of compressed files.

    Raises:
        ConfigError: see ``max_line_characters``.
    """
    return _from_environment(EXPANSION_VARIABLE, MAX_EXPANSION)


@contextlib.contextmanager
def line_limit(characters: int) -> Iterator[None]:
    """Set another limit for lines in this block, and in the processes that the block starts.

    The default changes nothing.
    """
    before = os.environ.get(LINE_VARIABLE)
    # The default means "not set"; then the user's own variable stays valid.
    if characters != MAX_LINE_CHARACTERS:
        os.environ[LINE_VARIABLE] = str(characters)
    try:
        yield
    finally:
        os.environ.pop(LINE_VARIABLE, None)
        if before is not None:
            os.environ[LINE_VARIABLE] = before


def in_line_limit(items: Iterator[T], characters: int) -> Iterator[T]:
    """Yield the items of a stream, each of which is read with another limit for lines.

    The limit does not apply between two items, when the code of the caller runs.
    """
    while True:
        with line_limit(characters):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


def _from_environment(variable: str, default: int) -> int:
    text = os.environ.get(variable)
    if text is None:
        return default
    # isdigit by itself accepts digits of all scripts; numbers of 19 digits may not fit into 63
    # bits.
    if not text.isascii() or not text.isdigit() or not 0 < len(text) < 19 or int(text) < 1:
        raise ConfigError(
            f"{variable}: expected a positive whole number, found {text[:40]!r}; set it to"
            " such a number, or unset it"
        )
    return int(text)


def refuse_long(characters: int, what: str, *, path: Any, line: int | None = None) -> None:
    """Refuse an entry that is longer than a line may be.

    Raises:
        DataError: the entry is longer.
    """
    if characters > (limit := max_line_characters()):
        raise DataError(
            f"{what} has more than {limit:,} characters; shorten it, or raise the limit:"
            f" --max-line or {LINE_VARIABLE}",
            path=path,
            line=line,
        )


class _Guard(io.RawIOBase):
    """A stream that inspects the bytes of another stream and forwards them."""

    def __init__(self, stream: IO[bytes], path: Any) -> None:
        self._stream: Any = stream
        self._path = path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # read1 returns the result of a single read, so that data of a pipe is forwarded at once.
        data: bytes = self._stream.read1(len(buffer))
        self._look(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()

    def _look(self, data: bytes) -> None:
        raise NotImplementedError


class _LineGuard(_Guard):
    """Guard that refuses a line that is too long before all of it is in memory."""

    def __init__(self, stream: IO[bytes], path: Any) -> None:
        super().__init__(stream, path)
        self._limit = max_line_characters()
        self._line = 1
        self._characters = 0

    def _look(self, data: bytes) -> None:
        first = data.find(b"\n")
        last = data.rfind(b"\n")
        if first < 0:
            self._add(data)
            return
        # The end of the line that earlier blocks started.
        self._add(data[:first])
        # A line that is completely inside this block can only be too long if the block is longer
        # than the limit.
        if len(data) > self._limit and last > first:
            for line in data[first + 1 : last].split(b"\n"):
                self._line += 1
                self._characters = 0
                self._add(line)
            self._line += 1
        else:
            self._line += data.count(b"\n")
        # The start of a line that continues in the next block.
        self._characters = 0
        self._add(data[last + 1 :])

    def _add(self, part: bytes) -> None:
        """Count the characters of a part of a line, without decoding it."""
        if not part.isascii():
            part = part.translate(None, _CONTINUATION)
        self._characters += len(part)
        if self._characters > self._limit:
            refuse_long(self._characters, "this line", path=self._path, line=self._line)


class _ExpansionGuard(_Guard):
    """Guard that refuses a compressed file that grows without end."""

    def __init__(self, stream: IO[bytes], path: Any, packed_bytes: int) -> None:
        super().__init__(stream, path)
        self._times = max_expansion()
        self._packed = packed_bytes
        self._bytes = 0

    def _look(self, data: bytes) -> None:
        self._bytes += len(data)
        # A tiny file may grow by a large factor and still be small, hence the free bytes.
        if self._bytes > max(FREE_EXPANSION_BYTES, self._times * self._packed):
            raise DataError(
                f"the file of {self._packed:,} bytes expands by a factor of more than"
                f" {self._bytes // max(self._packed, 1):,}; if you trust it, unpack it yourself"
                f" or raise the limit: {EXPANSION_VARIABLE}",
                path=self._path,
            )


def guard_lines(stream: IO[bytes], path: Any) -> io.BufferedReader:
    """Return a stream that refuses lines beyond the limit.

    Args:
        stream: of bytes.
        path: named in errors.
    """
    return io.BufferedReader(_LineGuard(stream, path), 1 << 16)


def guard_expansion(stream: IO[bytes], path: Any, packed_bytes: int) -> io.BufferedReader:
    """Return a stream that refuses to expand far beyond its compressed size.

    Args:
        stream: of unpacked bytes.
        path: named in errors.
        packed_bytes: compressed size of the file, or of the member of an archive.
    """
    return io.BufferedReader(_ExpansionGuard(stream, path, packed_bytes), 1 << 17)


def read_limited(stream: IO[bytes], path: Any, limit: int | None = None) -> bytes:
    """Read the whole of a stream that is parsed at once.

    Args:
        stream: of bytes.
        path: named in errors.
        limit: maximum number of bytes; default ``MAX_DOCUMENT_BYTES``.

    Raises:
        DataError: it is larger.
    """
    # Look up the default at each call, so that tests and programs may change it.
    most = MAX_DOCUMENT_BYTES if limit is None else limit
    parts: list[bytes] = []
    size = 0
    # Read in blocks: a device such as /dev/zero has neither a size nor an end.
    while block := stream.read(1 << 20):
        parts.append(block)
        size += len(block)
        if size > most:
            raise DataError(
                f"the file is larger than {most >> 20} MiB, the limit for files that are read"
                " into memory; split it",
                path=path,
            )
    return b"".join(parts)
