"""Operations in C that torch does not have.

The C code is compiled at installation if there is a compiler, and left out otherwise. Plain torch
can do all of it too (the same neighbors, the same vectors up to rounding);
``INTERLINGUA_KERNELS=0`` selects torch. Each source is compiled once per variant, that is, for the
instructions of one kind of processor, into its own library. The best variant that this processor
supports is used, or the one that ``INTERLINGUA_KERNELS`` names.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

from interlingua.config.registry import did_you_mean
from interlingua.errors import ConfigError, pip_line

KERNELS_VARIABLE = "INTERLINGUA_KERNELS"
KERNEL_VARIANTS = ("amx", "avx512", "avx512vnni", "avxvnni", "avx2", "i8mm", "dotprod", "neon")
"""Best first. For x86-64: AVX-512 with VNNI and BF16, with AMX's tiles and without; AVX-512 with
VNNI only; AVX2 with AVX-VNNI; AVX2 only. For AArch64: NEON with products of small matrices of bytes
and of bfloats; with the dot product of bytes; NEON only."""
ELF_HEAD_BYTES = 64
ELF_CLASS = b"\x02\x01"
"""64 bits, the lowest byte first."""
UNMEASURED = {"layers": ("i8mm",), "neighbors": ("amx", "i8mm"), "training": ("i8mm",)}
"""By source: variants that were not timed on any processor yet. ``find_library`` takes one only if
``INTERLINGUA_KERNELS`` names it."""
SOURCES = ("layers", "neighbors", "training")


class Kernel(NamedTuple):
    """A compiled source."""

    variant: str
    library: ctypes.CDLL


def library(name: str) -> ctypes.CDLL | None:
    """Return the compiled ``name.c``, or None, see ``find_library``."""
    kernel = find_library(name)
    if kernel is None:
        return None
    return kernel.library


def variant(name: str) -> str | None:
    """Return the variant of the compiled ``name.c`` in use, or None, see ``find_library``."""
    kernel = find_library(name)
    if kernel is None:
        return None
    return kernel.variant


@functools.cache
def find_library(name: str) -> Kernel | None:
    """Return the best measured variant of the compiled ``name.c``, or the one that the user names.

    The result is None if no variant was built, if it was built from an older source, if this
    processor can't run it, or if it is switched off. A truncated file or another library is also
    skipped, with a message on standard error.

    Raises:
        ConfigError: ``INTERLINGUA_KERNELS`` names no variant.
    """
    for candidate in wanted_variants():
        # The best design is not always the fastest, so only measured variants are chosen.
        is_named = os.environ.get(KERNELS_VARIABLE) == candidate
        if candidate in UNMEASURED.get(name, ()) and not is_named:
            continue
        loaded = _load(Path(__file__).with_name(f"{name}.c"), candidate)
        if loaded is not None:
            return Kernel(candidate, loaded)
    return None


def wanted_variants() -> tuple[str, ...]:
    """Return the variants that ``INTERLINGUA_KERNELS`` allows, best first.

    With "0" there are none; if it is unset or "1", all; otherwise the one that it names.

    Raises:
        ConfigError: ``INTERLINGUA_KERNELS`` names an unknown variant.
    """
    value = os.environ.get(KERNELS_VARIABLE, "")
    if value in ("", "1"):
        return KERNEL_VARIANTS
    if value == "0":
        return ()
    if value not in KERNEL_VARIANTS:
        hint = did_you_mean(value, ("0", "1", *KERNEL_VARIANTS))
        raise ConfigError(f"{KERNELS_VARIABLE}: unknown variant {value!r}{hint}")
    return (value,)


def _load(source: Path, variant: str) -> ctypes.CDLL | None:
    """Load the library of a source and variant; return None if that is not possible."""
    path = source.with_suffix(f".{variant}.so")
    if not path.is_file():
        return None
    # Before the file is mapped: if it is truncated, the system would kill this process.
    problem = find_library_damage(path)
    if problem is None:
        try:
            loaded = ctypes.CDLL(str(path))
            loaded.digest.restype = ctypes.c_uint32
            # A library of another source, or for instructions that this processor lacks, is no
            # error: the next variant is tried without a message.
            if loaded.digest() == source_digest(source) and loaded.supported():
                return loaded
            return None
        except OSError:  # built for another machine
            problem = "it was built for another machine"
        except AttributeError:
            problem = "it is another library"
    print(
        f"interlingua: {path} is not used, because {problem}; to build it again, run{pip_line()}",
        file=sys.stderr,
    )
    return None


def find_library_damage(path: Path) -> str | None:
    """Return the reason why the file of a library must not be mapped into memory, or None.

    The system maps a library without a check of its length: if the file is truncated, a call of a
    function in the missing part kills the process. In an ELF file the table of sections comes last,
    and the header of the file says where the table ends. macOS compares both lengths itself.
    """
    with path.open("rb") as file:
        head = file.read(ELF_HEAD_BYTES)
        size = file.seek(0, os.SEEK_END)
    if sys.platform != "linux":
        return None
    if len(head) < ELF_HEAD_BYTES or head[:4] != b"\x7fELF" or head[4:6] != ELF_CLASS:
        return "it is not a library of this system"
    # e_shoff, e_shentsize and e_shnum of Elf64_Ehdr.
    (table,) = struct.unpack_from("<Q", head, 40)
    entry_bytes, entries = struct.unpack_from("<HH", head, 58)
    if not table or table + entry_bytes * entries > size:
        return "it is incomplete"
    return None


def source_digest(source: Path) -> int:
    """Return a checksum of a source and all headers, to detect a library built from older files."""
    headers = sorted(source.parent.glob("*.h"))
    return zlib.crc32(b"".join(path.read_bytes() for path in (source, *headers)))
