from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua import kernels
from interlingua.encoder.executors import compiled, quantize
from interlingua.errors import ConfigError
from interlingua.retrieval.topk.kernel_scanner import _GROUP, ROOM
from tests.kernels import cross

NEEDS_COMPILER = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(autouse=True)
def choose(monkeypatch):
    """A function that sets the variable and forgets earlier results."""

    def ask_again():
        kernels.find_library.cache_clear()

    def set_variable(value):
        monkeypatch.setenv("INTERLINGUA_KERNELS", value)
        ask_again()

    ask_again()
    yield set_variable
    ask_again()


@pytest.fixture
def sources(tmp_path):
    """A folder with a copy of all sources and headers."""
    for path in Path(kernels.__file__).parent.glob("*.[ch]"):
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.fixture
def source(tmp_path):
    """A small source of the name of a kernel."""
    path = tmp_path / "neighbors.c"
    path.write_text("int supported(void) { return 1; }")
    return path


def test_it_can_be_switched_off(choose):
    choose("0")
    assert kernels.library("neighbors") is None


def test_a_variant_can_be_named(choose):
    for name in kernels.KERNEL_VARIANTS:
        choose(name)
        assert kernels.variant("layers") in (name, None)
    choose("avx3")
    with pytest.raises(ConfigError, match="INTERLINGUA_KERNELS: unknown variant 'avx3'"):
        kernels.variant("layers")


def test_the_first_variant_that_runs_is_taken(monkeypatch, choose):
    """Simulate a processor without AVX-512, on which the library reports that it cannot run."""

    class Library:
        def __init__(self, path):
            self.path = path
            self.digest = lambda: 7
            self.digest.restype = None

        def supported(self):
            return all(name not in self.path for name in ("amx", "avx512"))

    monkeypatch.setattr(kernels, "find_library_damage", lambda path: None)
    monkeypatch.setattr(kernels, "source_digest", lambda source: 7)
    monkeypatch.setattr(kernels.ctypes, "CDLL", Library)
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    assert kernels.variant("layers") == "avxvnni"
    choose("avx512")
    assert kernels.variant("layers") is None


def test_a_variant_that_was_not_timed_is_taken_by_name_alone(monkeypatch, choose):
    monkeypatch.setattr(kernels, "_load", lambda source, variant: variant)
    assert kernels.variant("neighbors") == "avx512"
    assert kernels.variant("layers") == "amx"
    choose("amx")
    assert kernels.variant("neighbors") == "amx"


def test_i8mm_is_passed_over_until_it_is_named(monkeypatch, choose):
    def on_neoverse(source, variant):
        return variant if variant in ("i8mm", "dotprod", "neon") else None

    monkeypatch.setattr(kernels, "_load", on_neoverse)
    assert {kernels.variant(name) for name in kernels.SOURCES} == {"dotprod"}
    choose("i8mm")
    assert {kernels.variant(name) for name in kernels.SOURCES} == {"i8mm"}


def test_what_was_not_built_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    assert kernels.library("neighbors") is None


def built_here(source):
    """Return the libraries of a source, of all variants that this compiler supports."""
    libraries = cross.build_script().compile_kernel(source)
    assert all(library.is_file() for library in libraries)
    return libraries


def left_out(folder, content, monkeypatch, capfd):
    """Return whether a library of these bytes is skipped with one line."""
    monkeypatch.setattr(kernels, "__file__", str(folder / "__init__.py"))
    library = folder / "neighbors.avx2.so"
    library.unlink(missing_ok=True)  # one that was loaded stays mapped: never write into its file
    library.write_bytes(content)
    kernels.find_library.cache_clear()
    capfd.readouterr()
    found = kernels.library("neighbors")
    said = capfd.readouterr().err
    return found is None and said.count("\n") == 1 and "is not used" in said


@pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux", reason="needs a C compiler and ELF"
)
def test_a_cut_or_foreign_library_is_left_out_with_a_line(tmp_path, monkeypatch, capfd):
    source = tmp_path / "neighbors.c"
    source.write_text("int another(void) { return 1; }")
    assert built_here(source)
    whole = source.with_suffix(".avx2.so").read_bytes()
    for path in tmp_path.glob("*.so"):
        path.unlink()
    assert left_out(tmp_path, whole, monkeypatch, capfd)  # another library
    assert left_out(tmp_path, b"", monkeypatch, capfd)
    assert left_out(tmp_path, b"of another machine", monkeypatch, capfd)
    for size in (10, 63, 64, len(whole) // 4, len(whole) // 2, len(whole) - 1):
        assert left_out(tmp_path, whole[:size], monkeypatch, capfd), size
    head = bytearray(whole)
    head[18:20] = b"\xb7\0"  # AArch64
    assert left_out(tmp_path, bytes(head), monkeypatch, capfd)


@NEEDS_COMPILER
def test_a_library_of_an_older_source_is_not_taken(sources, monkeypatch):
    source = sources / "neighbors.c"
    runs_here = any(ctypes.CDLL(str(library)).supported() for library in built_here(source))
    monkeypatch.setattr(kernels, "__file__", str(sources / "__init__.py"))
    assert (kernels.library("neighbors") is not None) == runs_here
    source.write_text(source.read_text() + "\n")
    kernels.find_library.cache_clear()
    assert kernels.library("neighbors") is None


def test_every_source_is_known_and_the_sizes_are_those_of_python():
    folder = Path(kernels.__file__).parent
    assert {path.stem for path in folder.glob("*.c")} == set(kernels.SOURCES)
    source = (folder / "neighbors.c").read_text(encoding="utf-8")
    assert f"#define ROOM {ROOM} " in source
    assert "#define LANES 16\n#define GROUP (4 * LANES)\n" in source
    assert _GROUP == 64
    assert "#define LANES 16\n" in (folder / "vectors.h").read_text(encoding="utf-8")
    assert (compiled.FUSED_LANES, quantize.LANES) == (16, 16)


def test_headers_count_for_what_is_older(tmp_path):
    (tmp_path / "sums.c").write_text('#include <stdint.h>\n#include "sums.h"\n')
    (tmp_path / "sums.h").write_text("one")
    script, first = cross.build_script(), kernels.source_digest(tmp_path / "sums.c")
    assert script.digest(tmp_path / "sums.c") == first
    (tmp_path / "sums.h").write_text("another")
    assert script.digest(tmp_path / "sums.c") == kernels.source_digest(tmp_path / "sums.c") != first


@NEEDS_COMPILER
def test_the_build_compiles_each_source_without_a_warning(sources, monkeypatch):
    script = cross.build_script()
    monkeypatch.setattr(script, "FLAGS", (*script.FLAGS, "-Wall", "-Wextra", "-Werror"))
    for name in kernels.SOURCES:
        libraries = script.compile_kernel(sources / f"{name}.c")
        assert len(libraries) == len(script.VARIANTS[script.processor(script.compiler())])
        for library in libraries:
            assert ctypes.CDLL(str(library)).supported() in (0, 1)


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
def test_no_instruction_for_bfloats_is_in_avx512vnni():
    libraries = list(Path(kernels.__file__).parent.glob("*.avx512vnni.so"))
    for library in libraries:
        shown = subprocess.run(
            ["objdump", "-d", library], check=True, capture_output=True, text=True
        )
        assert "zmm" in shown.stdout
        assert not re.search("vdpbf16ps|vcvtneps2bf16|vcvtne2ps2bf16", shown.stdout)
    if not libraries:
        pytest.skip("not built")


@NEEDS_COMPILER
def test_a_variant_that_the_compiler_does_not_know_costs_no_other(source, monkeypatch):
    script = cross.build_script()
    known = tuple(name for variants in script.VARIANTS.values() for name in variants)
    assert known == kernels.KERNEL_VARIANTS
    variants = script.VARIANTS[script.processor(script.compiler())]
    unknown, *others = variants
    monkeypatch.setitem(variants, unknown, ("-mno-such-instructions",))
    built = [library.name for library in script.compile_kernel(source)]
    assert built == [f"neighbors.{name}.so" for name in others]


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
@pytest.mark.parametrize("variant", ["avxvnni", "avx2"])
def test_no_instruction_of_avx512_is_in_other_variants(variant):
    """Check zmm, k and ymm16 to ymm31, the registers of AVX-512.

    That of VNNI has another encoding there, marked {vex} here.
    """
    folder = Path(kernels.__file__).parent
    libraries = list(folder.glob(f"*.{variant}.so"))
    for library in libraries:
        text = subprocess.run(
            ["objdump", "-d", library], check=True, capture_output=True, text=True
        ).stdout
        assert "ymm15" in text
        assert not re.search(r"%zmm|%k[0-7]|%[xy]mm(1[6-9]|2\d|3[01])", text)
        dots = [line for line in text.splitlines() if re.search("vpdp(busd|wssd)", line)]
        assert bool(dots) == (variant == "avxvnni" and not library.name.startswith("training."))
        assert all("{vex}" in line for line in dots)
    if not libraries:
        pytest.skip("not built")


def test_the_build_goes_on_without_a_compiler(source, monkeypatch):
    script = cross.build_script()
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    assert not script.compile_kernel(source)
    assert not list(source.parent.glob("*.so"))


@NEEDS_COMPILER
def test_the_build_goes_on_where_a_source_does_not_compile(source):
    source.write_text("not C")
    assert not cross.build_script().compile_kernel(source)
