"""benchmarks/lesser_processor.py hides instructions from every library of a program."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import lesser_processor

from interlingua import kernels

PROGRAM = """
import json, os, sys, tempfile
from pathlib import Path
sys.path.insert(0, {folder!r})
import lesser_processor
with tempfile.TemporaryDirectory() as folder:
    lesser_processor.run_again(sys.argv[1], Path(folder))
import torch
from interlingua.kernels import variant
print(json.dumps([variant("layers"), torch.backends.cpu.get_cpu_capability()]), flush=True)
if sys.argv[2:]:
    import ctypes
    ctypes.string_at(8)
"""


@pytest.fixture
def run(tmp_path):
    """A function that runs the program with a level of instructions."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(folder=str(Path(lesser_processor.__file__).parent)))

    def run(*arguments):
        return subprocess.run(
            [sys.executable, str(program), *arguments], check=False, capture_output=True, text=True
        )

    return run


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("level", lesser_processor.LEVELS)
def test_no_library_finds_more(level, run):
    ran = run(level)
    if ran.returncode == lesser_processor.NOT_HERE:
        pytest.skip(ran.stderr)
    assert ran.returncode == 0, ran.stderr
    variant, capability = json.loads(ran.stdout)
    # The best one that runs here, of those up to the level.
    sources = Path(kernels.__file__).parent
    running = [
        name for name in kernels.KERNEL_VARIANTS if kernels._load(sources / "layers.c", name)
    ]
    levels = kernels.KERNEL_VARIANTS[kernels.KERNEL_VARIANTS.index(level) :]
    assert variant == next((name for name in levels if name in running), None)
    assert ("512" in capability) <= (level == "avx512vnni")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_fault_of_the_program_still_ends_it(run):
    ran = run("avx2", "fault")
    if ran.returncode == lesser_processor.NOT_HERE:
        pytest.skip(ran.stderr)
    assert ran.stdout
    assert ran.returncode != 0


def test_without_a_compiler_it_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install gcc"):
        lesser_processor.run_again("avx2", tmp_path)
    assert not os.listdir(tmp_path)


def test_elsewhere_it_is_not_here(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(SystemExit) as ended:
        lesser_processor.run_again("avx2", tmp_path)
    assert ended.value.code == lesser_processor.NOT_HERE
    assert "x86-64" in capsys.readouterr().err
