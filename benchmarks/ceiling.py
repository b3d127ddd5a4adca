"""The most that one core computes in a second, by dtype: a loop of C in registers, ``ceiling.c``.

A product of matrices measured while other work uses the caches and the memory gives too low a
ceiling: shares of 130 % were printed. This loop reads no memory, and counts the thread's own time.

    python benchmarks/ceiling.py
"""

from __future__ import annotations

import ctypes
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
DTYPES = ("float32", "bfloat16", "int8")
ROUNDS = 2_000_000
"""Iterations of a loop: some 0.2 s."""
REPEATS = 5


def ceilings() -> dict[str, float]:
    """Return operations per second of one core by dtype.

    A dtype that the processor has no instruction for has the ceiling of the next wider one. The
    result is empty without a C compiler for this processor.
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "ceiling.so"
        flags = ["-O2", "-march=native", "-shared", "-fPIC"]
        command = [*compiler.split(), *flags, str(SOURCE), "-o", str(built)]
        if subprocess.run(command, capture_output=True).returncode:
            return {}
        library = ctypes.CDLL(str(built))
    found: dict[str, float] = {}
    wider = 0.0
    for dtype in DTYPES:
        function = library[dtype]
        function.argtypes = [ctypes.c_long]
        function.restype = ctypes.c_double
        # The first call warms the clock up.
        rates = [function(ROUNDS) for _ in range(REPEATS + 1)][1:]
        wider = statistics.median(rates) or wider
        found[dtype] = wider
    return found


if __name__ == "__main__":
    for dtype, rate in ceilings().items():
        print(f"{dtype:<10}{rate / 1e9:8.0f} billion operations per second")
