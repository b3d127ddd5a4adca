"""Compiles the kernels at installation, if it can; without them the same results take longer."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS = (
    "-O3",
    "-shared",
    "-fPIC",
    "-mavx512f",
    "-mavx512vnni",
    "-mavx512bf16",
    "-mavx512bw",
    "-mavx512vl",
    "-mfma",
    "-mprefer-vector-width=512",
)


class Kernels(BuildHookInterface):
    """Builds ``kernels/*.c`` beside their sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Puts the libraries into the wheel, which is then one for this platform."""
        if self.target_name != "wheel":
            return
        for source in (Path(self.root) / "src" / "interlingua" / "kernels").glob("*.c"):
            if compile_kernel(source):
                build_data["pure_python"], build_data["infer_tag"] = False, True
                build_data["artifacts"].append(str(source.with_suffix(".so").relative_to(self.root)))


def compile_kernel(source: Path) -> bool:
    """Whether there is a library beside the source now."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None or platform.system() == "Windows" or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    command = [compiler, *FLAGS, f"-DDIGEST={digest(source)}u", "-o", str(source.with_suffix(".so")), str(source)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def digest(source: Path) -> int:
    """Of a source and the headers that it includes; as in the package's ``kernels``."""
    headers = re.findall(r'^#include "(.+)"$', source.read_text(encoding="utf-8"), re.MULTILINE)
    return zlib.crc32(b"".join(path.read_bytes() for path in (source, *map(source.parent.joinpath, headers))))
