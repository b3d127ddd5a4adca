"""Zstandard, which Python's own library does not read: frames as a stream of bytes."""

from __future__ import annotations

import io
import os
from typing import Any

from interlingua.errors import MissingExtraError


def zstandard_library() -> Any:
    """The package ``zstandard``.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", "zst") from error
    return zstandard


class ZstandardReader(io.RawIOBase):
    """Decompresses Zstandard frames.

    Unlike the library's own stream it notices when the last one is cut short.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._library = zstandard_library()
        self._raw = open(path, "rb")  # noqa: SIM115
        self._frame: Any = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer as far as the bytes unpacked now go."""
        while not self._ready:
            rest = self._frame.unused_data if self._frame is not None and self._frame.eof else b""
            # Small blocks: each may grow thirty thousand times before its size is known.
            packed = rest or self._raw.read(1 << 11)
            if not packed:
                if self._frame is not None and not self._frame.eof:
                    raise EOFError("the last Zstandard frame has no end")
                return 0
            if self._frame is None or self._frame.eof:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(packed))
            except self._library.ZstdError as error:
                raise EOFError(str(error)) from error
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        """Closes the file, too."""
        self._raw.close()
        super().close()
