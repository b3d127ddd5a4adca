from __future__ import annotations

import ctypes
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from interlingua import kernels
from interlingua.encoder import compiled, quantize
from interlingua.encoder.compiled import PANEL
from interlingua.search.topk.kernel_scanner import GROUP, ROWS

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def ask_again():
    kernels.library.cache_clear()
    yield
    kernels.library.cache_clear()


def build_script():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["hatch_build"] = module
    spec.loader.exec_module(module)
    return module


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("INTERLINGUA_KERNELS", "0")
    assert kernels.library("neighbors") is None


def test_what_was_not_built_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    assert kernels.library("neighbors") is None


def left_out(folder, content, monkeypatch, capfd):
    """Whether a library of these bytes is left out with one line."""
    monkeypatch.setattr(kernels, "__file__", str(folder / "__init__.py"))
    (folder / "neighbors.so").unlink(missing_ok=True)  # one that was loaded stays mapped: never write into its file
    (folder / "neighbors.so").write_bytes(content)
    kernels.library.cache_clear()
    capfd.readouterr()
    found = kernels.library("neighbors")
    said = capfd.readouterr().err
    return found is None and said.count("\n") == 1 and "is left out" in said


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="needs a C compiler and ELF")
def test_a_cut_or_foreign_library_is_left_out_with_a_line(tmp_path, monkeypatch, capfd):
    source = tmp_path / "neighbors.c"
    source.write_text("int another(void) { return 1; }")
    assert build_script().compile_kernel(source)
    whole = source.with_suffix(".so").read_bytes()
    assert left_out(tmp_path, whole, monkeypatch, capfd)  # another library
    assert left_out(tmp_path, b"", monkeypatch, capfd)
    assert left_out(tmp_path, b"of another machine", monkeypatch, capfd)
    for size in (10, 63, 64, len(whole) // 4, len(whole) // 2, len(whole) - 1):
        assert left_out(tmp_path, whole[:size], monkeypatch, capfd), size
    head = bytearray(whole)
    head[18:20] = b"\xb7\0"  # AArch64
    assert left_out(tmp_path, bytes(head), monkeypatch, capfd)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_of_an_older_source_is_not_taken(tmp_path, monkeypatch):
    source = tmp_path / "neighbors.c"
    source.write_bytes((Path(kernels.__file__).parent / "neighbors.c").read_bytes())
    assert build_script().compile_kernel(source)
    runs_here = ctypes.CDLL(str(source.with_suffix(".so"))).supported()
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    assert (kernels.library("neighbors") is not None) == bool(runs_here)
    source.write_text(source.read_text() + "\n")
    kernels.library.cache_clear()
    assert kernels.library("neighbors") is None


def test_every_source_is_known_and_the_sizes_are_those_of_python():
    folder = Path(kernels.__file__).parent
    assert {path.stem for path in folder.glob("*.c")} == set(kernels.SOURCES)
    source = (folder / "neighbors.c").read_text(encoding="utf-8")
    assert f"#define ROWS {ROWS}\n" in source
    assert "#define LANES 16\n#define GROUP (4 * LANES)\n" in source
    assert GROUP == 64
    assert "#define LANES 16\n" in (folder / "vectors.h").read_text(encoding="utf-8")
    assert "#define PANEL (2 * LANES)\n" in (folder / "products.h").read_text(encoding="utf-8")
    assert (PANEL, compiled.LANES, quantize.LANES) == (32, 16, 16)


def test_headers_count_for_what_is_older(tmp_path):
    (tmp_path / "sums.c").write_text('#include <stdint.h>\n#include "sums.h"\n')
    (tmp_path / "sums.h").write_text("one")
    first = kernels.digest(tmp_path / "sums.c")
    assert build_script().digest(tmp_path / "sums.c") == first
    (tmp_path / "sums.h").write_text("another")
    assert build_script().digest(tmp_path / "sums.c") == kernels.digest(tmp_path / "sums.c") != first


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_build_compiles_each_source_without_a_warning(tmp_path, monkeypatch):
    script = build_script()
    monkeypatch.setattr(script, "FLAGS", (*script.FLAGS, "-Wall", "-Wextra", "-Werror"))
    for path in Path(kernels.__file__).parent.glob("*.[ch]"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for name in kernels.SOURCES:
        source = tmp_path / f"{name}.c"
        assert script.compile_kernel(source)
        assert ctypes.CDLL(str(source.with_suffix(".so"))).supported() in (0, 1)


def test_the_build_goes_on_without_a_compiler(tmp_path, monkeypatch):
    script = build_script()
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    source = tmp_path / "neighbors.c"
    source.write_text("int supported(void) { return 1; }")
    assert not script.compile_kernel(source)
    assert not source.with_suffix(".so").exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_build_goes_on_where_a_source_does_not_compile(tmp_path):
    source = tmp_path / "neighbors.c"
    source.write_text("not C")
    assert not build_script().compile_kernel(source)
