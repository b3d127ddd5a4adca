"""Rows to bytes, of ``whole_rows.h``, under the sanitizer of undefined behavior, its instructions
spelled out so that any processor runs it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from interlingua import kernels

COMPILER = shutil.which("gcc") or shutil.which("clang")
PROGRAM = (Path(__file__).parent / "undefined_bytes.c").read_text(encoding="utf-8")


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_rows_to_bytes_have_no_undefined_behavior(tmp_path):
    """Use rows with NaN. Their sums of bytes overflowed."""
    header = Path(kernels.__file__).with_name("whole_rows.h").read_text(encoding="utf-8")
    function = re.search(r"^static void to_bytes\(.*?^}", header, re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "t.c").write_text(
        PROGRAM.replace("/* HERE STANDS to_bytes OF whole_rows.h */", function)
    )
    flags = [
        "-O1",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=undefined",
        "-fsanitize-undefined-trap-on-error",
    ]
    command = [COMPILER, *flags, str(tmp_path / "t.c"), "-lm", "-o", str(tmp_path / "t")]
    compiled = subprocess.run(command, check=False, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    ran = subprocess.run([str(tmp_path / "t")], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "0\n")
