"""C code for what torch has no operation for: compiled at installation where a compiler is there, else left out.

All of it has a path in plain torch beside it (the same neighbours, the same vectors to rounding), which
``INTERLINGUA_KERNELS=0`` takes.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import zlib
from pathlib import Path

SOURCES = ("layers", "neighbours", "training")


@functools.cache
def library(name: str) -> ctypes.CDLL | None:
    """The compiled ``name.c``.

    None where it was not built, or of an older source; where this processor can't run it, or it is switched off.
    """
    if os.environ.get("INTERLINGUA_KERNELS", "1") == "0":
        return None
    source = Path(__file__).with_name(f"{name}.c")
    path = source.with_suffix(".so")
    if not path.is_file():
        return None
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:  # built for another machine
        return None
    loaded.digest.restype = ctypes.c_uint32
    return loaded if loaded.digest() == digest(source) and loaded.supported() else None


def digest(source: Path) -> int:
    """Of a source and the headers that it includes, so that a library of older ones is noticed."""
    headers = re.findall(r'^#include "(.+)"$', source.read_text(encoding="utf-8"), re.MULTILINE)
    return zlib.crc32(b"".join(path.read_bytes() for path in (source, *map(source.parent.joinpath, headers))))
