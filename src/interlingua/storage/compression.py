"""Reading of Zstandard frames as a stream of bytes, which Python's own library can't do."""

from __future__ import annotations

import io
import os
from typing import Any

from interlingua.errors import import_extra


def zstandard_library() -> Any:
    """Return the package ``zstandard``.

    Raises:
        MissingExtraError: it is not installed.
    """
    return import_extra("zstandard", extra="zst")


class ZstandardReader(io.RawIOBase):
    """Reader that decompresses a file of Zstandard frames, one after the other.

    Unlike the library's own stream it detects a last frame that is cut off.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._library = zstandard_library()
        self._raw = open(path, "rb")  # noqa: SIM115
        self._frame: Any = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with as many unpacked bytes as are available."""
        # A block, such as a header, may unpack to 0 bytes, which a caller would interpret as the
        # end of the file. So continue until there are some bytes.
        while not self._ready:
            is_between_frames = self._frame is None or self._frame.eof
            packed = self._next_packed()
            if not packed:
                if not is_between_frames:
                    raise EOFError("the last Zstandard frame is incomplete")
                return 0
            if is_between_frames:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(packed))
            except self._library.ZstdError as error:
                raise EOFError(str(error)) from error
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _next_packed(self) -> bytes:
        """Return the bytes that were already read beyond a frame's end, or else read new ones."""
        if self._frame is not None and self._frame.eof:
            rest: bytes = self._frame.unused_data
            if rest:
                return rest
        # Blocks are small, because each may grow thirty thousand times before its size is known.
        return self._raw.read(1 << 11)

    def close(self) -> None:
        """Close the file, too."""
        self._raw.close()
        super().close()
