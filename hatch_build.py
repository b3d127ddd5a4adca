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

FLAGS = ("-O3", "-shared", "-fPIC", "-mfma")
AVX512 = ("-mavx512f", "-mavx512vnni", "-mavx512bf16", "-mavx512bw", "-mavx512vl", "-mprefer-vector-width=512")
VARIANTS = {"avx512": AVX512, "avxvnni": ("-mavx2", "-mavxvnni"), "avx2": ("-mavx2",)}
"""The flags of each; as in the package's ``kernels``. A compiler that does not know those of one still gives others."""
ONE_VARIANT = {"training": "avx512"}
"""Sources that are written for one alone."""


class Kernels(BuildHookInterface):
    """Builds ``kernels/*.c`` beside their sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Puts the libraries into the wheel, which is then one for this platform."""
        if self.target_name != "wheel":
            return
        for source in (Path(self.root) / "src" / "interlingua" / "kernels").glob("*.c"):
            for library in compile_kernel(source):
                build_data["pure_python"], build_data["infer_tag"] = False, True
                build_data["artifacts"].append(str(library.relative_to(self.root)))


def compile_kernel(source: Path) -> list[Path]:
    """The libraries that there are beside the source now, one for each variant that could be built."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None or platform.system() == "Windows" or platform.machine().lower() not in ("x86_64", "amd64"):
        return []
    built = []
    for variant, flags in VARIANTS.items():
        if ONE_VARIANT.get(source.stem, variant) != variant:
            continue
        library = source.with_suffix(f".{variant}.so")
        command = [compiler, *FLAGS, *flags, f"-DDIGEST={digest(source)}u", "-o", str(library), str(source)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            built.append(library)
    return built


def digest(source: Path) -> int:
    """Of a source and the headers that it includes; as in the package's ``kernels``."""
    headers = re.findall(r'^#include "(.+)"$', source.read_text(encoding="utf-8"), re.MULTILINE)
    return zlib.crc32(b"".join(path.read_bytes() for path in (source, *map(source.parent.joinpath, headers))))
