"""Compiles the kernels at installation, if it can; without them the same results take longer."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS = ("-O3", "-shared", "-fPIC", "-pthread", "-fno-strict-aliasing")
AVX512 = (
    "-mfma",
    "-mavx512f",
    "-mavx512vnni",
    "-mavx512bw",
    "-mavx512vl",
    "-mprefer-vector-width=512",
)
BF16 = ("-mavx512bf16",)
AMX = ("-mamx-tile", "-mamx-bf16", "-mamx-int8")
VARIANTS = {
    "x86_64": {
        "amx": (*AVX512, *BF16, *AMX),
        "avx512": (*AVX512, *BF16),
        "avx512vnni": AVX512,
        "avxvnni": ("-mfma", "-mavx2", "-mavxvnni"),
        "avx2": ("-mfma", "-mavx2"),
    },
    "aarch64": {
        "i8mm": ("-march=armv8.2-a+dotprod+i8mm+bf16",),
        "dotprod": ("-march=armv8.2-a+dotprod",),
        "neon": ("-march=armv8-a",),
    },
}
"""The flags of each by processor; the names as in the package's ``kernels``. A compiler that does
not know those of one still gives others."""
SAME_PROCESSOR = {"amd64": "x86_64", "arm64": "aarch64"}
FIRST_MACOS = 11
"""Oldest macOS of the Macs with Apple's processors, for which libraries are built."""


class Kernels(BuildHookInterface):
    """Build hook that compiles ``kernels/*.c`` next to their sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the libraries into the wheel: one for this platform, and for every Python."""
        if self.target_name != "wheel":
            return
        command = compiler()
        if command is None:
            return
        for source in (Path(self.root) / "src" / "interlingua" / "kernels").glob("*.c"):
            for library in compile_kernel(source):
                build_data["pure_python"] = False
                build_data["tag"] = wheel_tag(command)
                build_data["artifacts"].append(str(library.relative_to(self.root)))


def wheel_tag(command: list[str]) -> str:
    """Return the tag of a wheel with libraries that contain no version of Python.

    The processor is the compiler's: pip would install what a cross compiler makes on this one.
    """
    if system(command) == "macOS":
        return f"py3-none-macosx_{oldest_macos()}_0_arm64"
    return f"py3-none-linux_{processor(command)}"


def compiler() -> list[str] | None:
    """Return the command of the compiler, that of ``CC`` where it is set, or None."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    return next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), None)


def target(command: list[str]) -> str:
    """Ask a compiler what it compiles for: x86_64-linux-gnu, arm64-apple-darwin23.1.0."""
    try:
        answer = subprocess.run(
            [*command, "-dumpmachine"],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
        )
    except OSError:  # there is no such command
        return ""
    return answer.stdout.strip().lower() if answer.returncode == 0 else ""


def processor(command: list[str]) -> str:
    """Return what a compiler compiles for, which is another processor with a cross compiler."""
    name = target(command).partition("-")[0] or platform.machine().lower()
    return SAME_PROCESSOR.get(name, name)


def system(command: list[str]) -> str | None:
    """Return the system that a compiler compiles for, or None where no library is built."""
    name = target(command)
    if "darwin" in name or "macos" in name:
        return "macOS" if processor(command) == "aarch64" else None
    # compilers for Linux may not know -dumpmachine
    is_linux = "linux" in (name or platform.system().lower())
    return "Linux" if is_linux else None


def oldest_macos() -> int:
    """Return the version that libraries for macOS run on at least: ``MACOSX_DEPLOYMENT_TARGET``'s.

    Without its minor number, which no wheel's tag has from 11 on.
    """
    major = os.environ.get("MACOSX_DEPLOYMENT_TARGET", "").partition(".")[0]
    return max(FIRST_MACOS, int(major)) if major.isdecimal() else FIRST_MACOS


def compile_kernel(source: Path) -> list[Path]:
    """Return the libraries next to the source now, one for each variant that could be built."""
    command = compiler()
    if command is None or system(command) is None:
        return []
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": f"{oldest_macos()}.0"}
    built = []
    for variant, flags in VARIANTS.get(processor(command), {}).items():
        library = source.with_suffix(f".{variant}.so")
        line = [
            *command,
            *FLAGS,
            *flags,
            f"-DDIGEST={digest(source)}u",
            "-o",
            str(library),
            str(source),
        ]
        try:
            made = subprocess.run(line, env=environment, capture_output=True, check=False)
        except OSError:
            return []
        if made.returncode == 0:
            built.append(library)
    return built


def digest(source: Path) -> int:
    """Compute the digest of a source and all headers, like the package's ``kernels``."""
    headers = sorted(source.parent.glob("*.h"))
    return zlib.crc32(b"".join(path.read_bytes() for path in (source, *headers)))
