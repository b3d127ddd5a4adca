"""Time, memory and progress of a run: durations and sizes in words, memory, ``progress``."""

from __future__ import annotations

import resource
import sys


def duration(seconds: float) -> str:
    """Format a time in words: ``0.3 s``, ``45 s``, ``12.0 min``, ``3.4 h``, ``2.1 days``."""
    # A unit is used only from two units on, so 90 seconds are shown in seconds.
    for unit_seconds, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.1f} {name}"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s"


def size_text(count: float) -> str:
    """Format a number of bytes in words: ``1.5 GiB``."""
    for power, name in ((4, "TiB"), (3, "GiB"), (2, "MiB")):
        if count >= 2 ** (10 * power):
            return f"{count / 2 ** (10 * power):.1f} {name}"
    return f"{count / 1024:.0f} KiB"


def peak_rss_bytes() -> int:
    """Return the peak memory of this process, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In bytes on macOS, in KiB on Linux.
    if sys.platform == "darwin":
        return peak
    return peak * 1024
