"""Runs a program as if the processor had fewer instructions, the libraries of others included.

torch can be kept from AVX-512 by variables; onnxruntime and OpenVINO look at the processor itself.
So ``lesser_processor.c`` answers in its place. It works on Linux, on processors that let the system
intercept the question: Intel's from Ivy Bridge on, and AMD's newest. What stays is this processor's
caches and clock, and the C library's own choice of how memory is copied.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

LEVELS = ("avx512vnni", "avxvnni", "avx2")
"""The most that programs may find: AVX-512 with VNNI as in Intel's servers before AMX, AVX2 with
AVX-VNNI as in its laptops, AVX2 alone."""
VARIABLE = "LESSER_PROCESSOR"


def run_again(level: str, folder: Path) -> None:
    """Runs this very command once more, with fewer instructions, and ends with its status.

    Within that run it does nothing.

    Args:
        level: one of ``LEVELS``.
        folder: for the library, and for the rates that interlingua remembers of its executors.

    Raises:
        SystemExit: with the run's status; with 77 where the processor hides nothing.
    """
    if os.environ.get(VARIABLE) == level:
        return
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("hiding instructions needs a C compiler: apt-get install gcc")
    library = folder / "lesser_processor.so"
    source = Path(__file__).with_suffix(".c")
    command = [compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    environment = {
        **os.environ,
        VARIABLE: level,
        "LD_PRELOAD": str(library),
        "XDG_CACHE_HOME": str(folder),
    }
    raise SystemExit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)
