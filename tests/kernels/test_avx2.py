"""``avx2.h``: products of bytes are exact without AVX-VNNI, where the instruction at hand
saturates."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from interlingua import kernels

COMPILER = shutil.which("gcc") or shutil.which("clang")
PROGRAM = """
#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include "avx2.h"
int main(void) {
    if (!has_instructions()) return 77;
    for (int first = 1; first < 256; first++)
        for (int value = -127; value <= 127; value++) {
            int weights[4] = {first, 256 - first, 255, 1}, values[4] = {value, -value, 127, -127}, expected = 5;
            uint8_t y[64];
            int8_t x[64];
            int32_t found[16];
            for (int i = 0; i < 64; i++) y[i] = weights[i % 4], x[i] = values[i % 4];
            for (int i = 0; i < 4; i++) expected += (weights[i] - 128 + OFFSET) * values[i];
            write_ints16(found, dot_bytes16(set_ints16(5), read_ints16(y), read_ints16(x)));
            for (int i = 0; i < 16; i++)
                if (found[i] != expected) return printf("%d %d: %d, not %d\\n", first, value, found[i], expected), 1;
        }
    return 0;
}
"""


@pytest.mark.skipif(
    COMPILER is None or platform.machine().lower() not in ("x86_64", "amd64"), reason="needs x86-64"
)
@pytest.mark.parametrize("flags", [["-mavx2"], ["-mavx2", "-mavxvnni"]])
def test_dot_bytes_is_exact_for_all_bytes(flags, tmp_path):
    (tmp_path / "t.c").write_text(PROGRAM)
    folder = Path(kernels.__file__).parent
    command = [
        COMPILER,
        "-O2",
        "-mfma",
        *flags,
        f"-I{folder}",
        str(tmp_path / "t.c"),
        "-o",
        str(tmp_path / "t"),
    ]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(tmp_path / "t")], check=False, capture_output=True, text=True)
    if ran.returncode == 77:
        pytest.skip("this processor has not these instructions")
    assert ran.returncode == 0, ran.stdout
