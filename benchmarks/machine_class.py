"""The kind of processor that this is, for which targets of speed were set, or not.

A variant of the encoding kernel runs only where the processor has its instructions, and they are
not hidden (``lesser_processor.py``). What the variant does not say is who made the processor: AMD's
gain by products of bfloats in AVX-512, Intel's are slower by them than in float32, unless by tiles.
"""

from __future__ import annotations

from pathlib import Path

AMX = "amx"
ZEN = "zen"
AVX2 = "avx2"
OTHER = "other"
"""Intel's AVX-512 without tiles, AArch64, and wherever the kernel does not run."""


def class_of(variant: str | None, vendor: str) -> str:
    """Return the class of a machine.

    Args:
        variant: of the encoding kernel that it runs.
        vendor: of its processor, as cpuid has it.
    """
    if variant == "amx":
        return AMX
    if variant == "avx512" and vendor == "AuthenticAMD":
        return ZEN
    if variant in ("avxvnni", "avx2"):
        return AVX2
    return OTHER


def vendor_of(cpuinfo: str) -> str:
    """Return the vendor in the text of ``/proc/cpuinfo``, or an empty text."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "vendor_id":
            return value.strip()
    return ""


def machine_class() -> str:
    """Return the class of this machine."""
    from interlingua.kernels import variant

    cpuinfo = Path("/proc/cpuinfo")
    # Only Linux has it.
    content = cpuinfo.read_text(encoding="utf-8") if cpuinfo.is_file() else ""
    return class_of(variant("layers"), vendor_of(content))
