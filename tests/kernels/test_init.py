from __future__ import annotations

import ctypes
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from interlingua import kernels
from interlingua.mining.compiled import GROUP, ROWS

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
    assert kernels.library("neighbours") is None


def test_what_was_not_built_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    assert kernels.library("neighbours") is None
    (tmp_path / "neighbours.so").write_bytes(b"of another machine")
    kernels.library.cache_clear()
    assert kernels.library("neighbours") is None


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_of_an_older_source_is_not_taken(tmp_path, monkeypatch):
    source = tmp_path / "neighbours.c"
    source.write_bytes((Path(kernels.__file__).parent / "neighbours.c").read_bytes())
    assert build_script().compile_kernel(source)
    runs_here = ctypes.CDLL(str(source.with_suffix(".so"))).supported()
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    assert (kernels.library("neighbours") is not None) == bool(runs_here)
    source.write_text(source.read_text() + "\n")
    kernels.library.cache_clear()
    assert kernels.library("neighbours") is None


def test_every_source_is_known_and_the_sizes_are_those_of_python():
    folder = Path(kernels.__file__).parent
    assert {path.stem for path in folder.glob("*.c")} == set(kernels.SOURCES)
    source = (folder / "neighbours.c").read_text(encoding="utf-8")
    assert f"#define ROWS {ROWS}\n" in source
    assert "#define LANES 16\n#define GROUP (4 * LANES)\n" in source
    assert GROUP == 64


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_build_compiles_each_source_without_a_warning(tmp_path, monkeypatch):
    script = build_script()
    monkeypatch.setattr(script, "FLAGS", (*script.FLAGS, "-Wall", "-Wextra", "-Werror"))
    for name in kernels.SOURCES:
        source = tmp_path / f"{name}.c"
        source.write_bytes((Path(kernels.__file__).parent / f"{name}.c").read_bytes())
        assert script.compile_kernel(source)
        assert ctypes.CDLL(str(source.with_suffix(".so"))).supported() in (0, 1)


def test_the_build_goes_on_without_a_compiler(tmp_path, monkeypatch):
    script = build_script()
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    source = tmp_path / "neighbours.c"
    source.write_text("int supported(void) { return 1; }")
    assert not script.compile_kernel(source)
    assert not source.with_suffix(".so").exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_build_goes_on_where_a_source_does_not_compile(tmp_path):
    source = tmp_path / "neighbours.c"
    source.write_text("not C")
    assert not build_script().compile_kernel(source)
