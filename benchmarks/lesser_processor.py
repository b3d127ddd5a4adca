"""Run a program as if the processor had fewer instructions, the libraries of others included.

torch can be kept from AVX-512 by variables; onnxruntime and OpenVINO look at the processor itself.
So ``lesser_processor.c`` answers in its place. It works on Linux, on processors that let the system
intercept the question (``cpuid_fault`` in ``/proc/cpuinfo``). What stays is this processor's caches
and clock, and the C library's own choice of how memory is copied.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

LEVELS = {"avx512vnni": ["-DHAS_AVX512"], "avxvnni": ["-DHAS_AVXVNNI"], "avx2": []}
"""The most that programs may find: AVX-512 with VNNI as in Intel's servers before AMX, AVX2 with
AVX-VNNI as in its laptops, only AVX2. With each, the options of the compiler."""
LIBRARY = "lesser_processor.so"
NOT_HERE = 77
"""Exit status, as in ``lesser_processor.c``."""


def run_again(level: str, folder: Path) -> None:
    """Run this command again with fewer instructions, and exit with its status.

    Within that run it does nothing.

    Args:
        level: one of ``LEVELS``.
        folder: for the library.

    Raises:
        SystemExit: with the run's status; with ``NOT_HERE`` where nothing can be hidden.
    """
    preloaded = os.environ.get("LD_PRELOAD", "").split()
    if any(Path(name).name == LIBRARY for name in preloaded):
        return
    if sys.platform != "linux" or platform.machine() != "x86_64":
        print("instructions can be hidden on Linux for x86-64 only", file=sys.stderr)
        raise SystemExit(NOT_HERE)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("hiding instructions needs a C compiler: apt-get install gcc")
    library = folder / LIBRARY
    source = Path(__file__).with_suffix(".c")
    # initfirst: before the libraries that the program is linked with.
    flags = ["-O2", "-shared", "-fPIC", "-Wl,-z,initfirst", *LEVELS[level]]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
    environment = dict(os.environ)
    # It would handle SIGSEGV in place of the library.
    environment.pop("PYTHONFAULTHANDLER", None)
    environment["LD_PRELOAD"] = " ".join([str(library), *preloaded])
    raise SystemExit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)
