"""Whether nothing is missing at the end of a compiled library, by what its first bytes say.

The system maps a library without looking at its length: one that was cut kills the process when a
function in the missing part is called. Linux has ELF files, macOS has Mach-O files.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import BinaryIO

ELF_HEAD_BYTES = 64
ELF_MAGIC = b"\x7fELF\x02\x01"
"""64 bits, the lowest byte first."""
MACHO_HEAD_BYTES = 32
MACHO_MAGIC = b"\xcf\xfa\xed\xfe"
"""The same of macOS."""
SEGMENT = 0x19
"""``LC_SEGMENT_64``: the command that says where a part of a Mach-O file is."""


def damage(path: Path) -> str | None:
    """Why the file of a library must not be mapped into memory, or None."""
    find_end = {"linux": elf_end, "darwin": macho_end}.get(sys.platform)
    if find_end is None:
        return None
    with path.open("rb") as file:
        try:
            end = find_end(file)
        except (ValueError, struct.error):
            return "it is not a library of this system"
        size = file.seek(0, os.SEEK_END)
    if end > size:
        return "it is cut short"
    return None


def elf_end(file: BinaryIO) -> int:
    """Where an ELF file ends: its table of sections comes last.

    The linker always writes that table, so a file without it is cut: its end is beyond every file.

    Raises:
        ValueError: it is no such file.
    """
    head = file.read(ELF_HEAD_BYTES)
    if len(head) < ELF_HEAD_BYTES or not head.startswith(ELF_MAGIC):
        raise ValueError("no ELF file")
    # e_shoff, e_shentsize and e_shnum of Elf64_Ehdr.
    (table,) = struct.unpack_from("<Q", head, 40)
    entry_bytes, entries = struct.unpack_from("<HH", head, 58)
    if not table:
        return sys.maxsize
    return table + entry_bytes * entries


def macho_end(file: BinaryIO) -> int:
    """Where a Mach-O file ends: behind the last of its segments.

    Raises:
        ValueError: it is no such file.
        struct.error: it ends among the commands that say where the segments are.
    """
    head = file.read(MACHO_HEAD_BYTES)
    if len(head) < MACHO_HEAD_BYTES or not head.startswith(MACHO_MAGIC):
        raise ValueError("no Mach-O file")
    # ncmds and sizeofcmds of mach_header_64.
    number, length = struct.unpack_from("<II", head, 16)
    commands = file.read(length)
    place = end = 0
    for _ in range(number):
        kind, size = struct.unpack_from("<II", commands, place)
        if kind == SEGMENT:
            # fileoff and filesize of segment_command_64.
            start, filled = struct.unpack_from("<QQ", commands, place + 40)
            end = max(end, start + filled)
        place += size
    return end
