"""The wheel of the package: which compiled libraries it holds, and for which machines it is."""

from __future__ import annotations

import ctypes
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from interlingua import kernels
from tests.distributions import build_wheel
from tests.kernels import cross

BUILT_FROM = ("hatch_build.py", "pyproject.toml", "README.md", "LICENSE", "src", ".gitignore")
IN_THE_WHEEL = "interlingua/kernels/"
COMPILER = """#!/bin/sh
if [ "$1" = -dumpmachine ]; then echo {target}; exit; fi
while [ "$1" != -o ]; do shift; done
echo library > "$2"
"""
"""Compiler that prints its target, and writes a file in place of a library."""

NEEDS_A_SHELL = pytest.mark.skipif(
    sys.platform == "win32", reason="the compiler is a script of a shell"
)


@pytest.fixture
def project(tmp_path):
    """The inputs of a wheel, with a library of this machine from an earlier build."""
    pytest.importorskip("hatchling")
    folder = tmp_path / "project"
    folder.mkdir()
    leave = shutil.ignore_patterns("*.so", "__pycache__")
    for name in BUILT_FROM:
        path = cross.ROOT / name
        if path.is_dir():
            shutil.copytree(path, folder / name, ignore=leave)
        else:
            shutil.copy(path, folder / name)
    (folder / "src" / "interlingua" / "kernels" / "layers.older.so").write_text("")
    return folder


def wheel_by(project, compiler, **settings):
    """Build a wheel by a compiler, and return its path."""
    return build_wheel(project, project / "wheels", CC=str(compiler), **settings)


def libraries_of(wheel):
    """Return the names of the compiled libraries in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        paths = archive.namelist()
    assert {f"{IN_THE_WHEEL}{name}.c" for name in kernels.SOURCES} < set(paths)
    return {path.removeprefix(IN_THE_WHEEL) for path in paths if path.endswith(".so")}


def libraries_for(machine):
    """Return the libraries that a wheel for a machine should contain."""
    return {f"{name}.{kind}.so" for name in kernels.SOURCES for kind in cross.FLAGS[machine]}


@pytest.fixture
def compiler_for(tmp_path):
    """A function that makes the command of a compiler for a target."""

    def make(target):
        compiler = tmp_path / "cc"
        compiler.write_text(COMPILER.format(target=target))
        compiler.chmod(0o755)
        return compiler

    return make


@NEEDS_A_SHELL
@pytest.mark.parametrize(
    ("target", "machine", "tag"),
    [
        ("x86_64-unknown-linux-gnu", "x86_64", "linux_x86_64"),
        ("aarch64-unknown-linux-gnu", "aarch64", "linux_aarch64"),
        ("arm64-apple-darwin23.1.0", "aarch64", "macosx_11_0_arm64"),
    ],
)
def test_a_wheel_is_for_what_its_compiler_compiles_for(project, compiler_for, target, machine, tag):
    wheel = wheel_by(project, compiler_for(target), MACOSX_DEPLOYMENT_TARGET="")
    assert wheel.name.endswith(f"-py3-none-{tag}.whl")
    assert libraries_of(wheel) == libraries_for(machine)


@NEEDS_A_SHELL
@pytest.mark.parametrize(
    ("asked", "tag"),
    [
        ("", "11_0"),
        ("11", "11_0"),
        ("12.0", "12_0"),
        ("13.3.1", "13_0"),
        ("10.15", "11_0"),
        ("x", "11_0"),
    ],
)
def test_a_wheel_for_macos_has_a_tag_that_pip_takes(project, compiler_for, asked, tag):
    tags = pytest.importorskip("packaging.tags")
    compiler = compiler_for("arm64-apple-darwin23.1.0")
    wheel = wheel_by(project, compiler, MACOSX_DEPLOYMENT_TARGET=asked)
    platform = wheel.stem.rpartition("-")[2]
    assert platform == f"macosx_{tag}_arm64"
    assert platform in set(tags.mac_platforms((15, 0), "arm64"))


@NEEDS_A_SHELL
@pytest.mark.parametrize("target", ["x86_64-w64-mingw32", "x86_64-apple-darwin22"])
def test_a_compiler_for_another_system_makes_no_library(project, compiler_for, target):
    wheel = wheel_by(project, compiler_for(target))
    assert wheel.name.endswith("-none-any.whl")
    assert libraries_of(wheel) == set()


@pytest.mark.parametrize("compiler", ["false", "/no/such/compiler"])
def test_a_wheel_without_a_compiler_is_for_every_machine(project, compiler):
    wheel = wheel_by(project, compiler)
    assert wheel.name.endswith("-none-any.whl")
    assert libraries_of(wheel) == set()


@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="libraries are built on Linux")
@pytest.mark.parametrize("machine", list(cross.FLAGS))
def test_a_real_compiler_makes_every_library_of_the_wheel(project, tmp_path, machine):
    compiler = shutil.which("gcc" if machine == cross.HERE else f"{machine}-linux-gnu-gcc")
    if compiler is None:
        pytest.skip(f"needs a compiler for {machine}")
    wheel = wheel_by(project, compiler)
    assert wheel.name.endswith(f"-py3-none-linux_{machine}.whl")
    assert libraries_of(wheel) == libraries_for(machine)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    folder = tmp_path / "installed" / IN_THE_WHEEL
    for name in libraries_for(machine):
        assert kernels.find_library_damage(folder / name) is None
        if machine == cross.HERE:
            library = ctypes.CDLL(str(folder / name))
            library.digest.restype = ctypes.c_uint32
            source = Path(kernels.__file__).with_name(name.partition(".")[0] + ".c")
            assert library.digest() == kernels.source_digest(source)


@pytest.mark.timeout(900)
def test_every_source_compiles_for_a_mac(project, tmp_path):
    """Compile by zig, which includes headers and linker for it: pip install ziglang."""
    pytest.importorskip("ziglang")
    compiler = tmp_path / "cc"
    # zig has its own names of processors in place of -march
    compiler.write_text(
        f"#!/bin/sh\nset -- $(echo \"$@\" | sed 's/-march=armv8[^+ ]*/-mcpu=generic/')\n"
        f'exec {sys.executable} -m ziglang cc -target aarch64-macos.11.0 "$@"\n'
    )
    compiler.chmod(0o755)
    wheel = wheel_by(project, compiler)
    assert wheel.name.endswith("-py3-none-macosx_11_0_arm64.whl")
    assert libraries_of(wheel) == libraries_for("aarch64")
