"""Small C programs for any processor: those of another one are cross-compiled, and qemu runs them
(apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross clang qemu-user)."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua import kernels

ROOT = Path(__file__).parents[2]
HERE = {"amd64": "x86_64", "arm64": "aarch64"}.get(
    platform.machine().lower(), platform.machine().lower()
)
NOT_HERE = 77
"""Exit status of a program with instructions that the processor lacks."""


def build_script():
    """Load the module that compiles the kernels of a wheel."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["hatch_build"] = module
    spec.loader.exec_module(module)
    return module


BUILD = build_script()
FLAGS = BUILD.VARIANTS
"""Compiler flags of the build, by processor and variant."""
EXACT = ("-O2", "-ffp-contract=off", "-fno-strict-aliasing")
"""Without contraction of the loops' own products and sums, with which they are compared."""
SHIPPED = tuple(flag for flag in BUILD.FLAGS if flag not in ("-shared", "-fPIC"))
"""Compiler flags of the build for all variants, except those of a library."""


def find_emulator(machine):
    """Return the qemu that runs programs of a machine, or None."""
    return shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")


def emulates_avx2():
    """Return whether the qemu for x86-64 has AVX2's instructions (7.2 and newer)."""
    emulator = find_emulator("x86_64")
    if emulator is None:
        return False
    shown = subprocess.run([emulator, "--version"], check=True, capture_output=True, text=True)
    major, minor = re.search(r"version (\d+)\.(\d+)", shown.stdout).groups()
    return (int(major), int(minor)) >= (7, 2)


def compiler_for(machine, *, uses_clang):
    """Return the command that compiles for a machine, or None. clang needs gcc's libraries."""
    gcc = shutil.which("gcc" if machine == HERE else f"{machine}-linux-gnu-gcc")
    if gcc is None:
        return None
    if not uses_clang:
        return [gcc]
    clang = shutil.which("clang")
    if clang is None:
        return None
    # This machine's own system need not be Linux.
    return [clang] if machine == HERE else [clang, f"--target={machine}-linux-gnu"]


def run(
    program, machine, variant, folder, *, emulated_cpu=None, uses_clang=False, optimization=EXACT
):
    """Compile a program with the flags of a variant, and run it.

    The test is skipped where there is no compiler for the machine, or nothing that runs what it
    makes.

    Args:
        program: the source, which may include the kernels' own.
        machine: ``x86_64`` or ``aarch64``.
        variant: the compiler gets its flags.
        folder: for the program.
        emulated_cpu: the processor that qemu is to be, also where this machine could run the
            program.
        uses_clang: it compiles in place of gcc, as on Macs.
        optimization: the compiler's other flags, ``EXACT`` or ``SHIPPED``.
    """
    compiler = compiler_for(machine, uses_clang=uses_clang)
    emulator = []
    if machine != HERE or emulated_cpu is not None:
        emulator = [find_emulator(machine)]
    if compiler is None or None in emulator:
        pytest.skip(f"needs a compiler for {machine}, and qemu to run what it makes")
    if emulated_cpu is not None:
        emulator += ["-cpu", emulated_cpu]
    source = folder / f"{variant}.c"
    source.write_text(program)
    flags = ["-pthread", *optimization, *FLAGS[machine][variant]]
    # qemu does not find the libraries of another machine. Those of this one are there for certain,
    # and need not be there for static linking: the images that wheels are built in have none.
    if machine != HERE:
        flags.append("-static")
    sources = Path(kernels.__file__).parent
    binary = folder / variant
    folders = [f"-I{sources}", f"-I{Path(__file__).parent}"]
    command = [*compiler, *flags, *folders, str(source), "-o", str(binary), "-lm"]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return subprocess.run([*emulator, str(binary)], check=False, capture_output=True, text=True)
