"""The functions of ``avx512.h``, ``avx2.h`` and ``neon.h`` against loops over sixteen numbers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.kernels import cross

VARIANTS = [(machine, name) for machine, names in cross.FLAGS.items() for name in names]
PROGRAM = (Path(__file__).parent / "instructions.c").read_text(encoding="utf-8")


@pytest.mark.parametrize(("machine", "variant"), VARIANTS)
def test_every_function_is_the_loop_over_sixteen_numbers(machine, variant, tmp_path):
    # qemu without a name is a processor that has everything, and runs every variant.
    ran = cross.run(PROGRAM, machine, variant, tmp_path)
    if ran.returncode == cross.NOT_HERE and machine == cross.HERE:
        pytest.skip(f"this processor does not run {variant}")
    assert ran.returncode == 0, ran.stdout


def test_products_of_bytes_in_pairs_are_the_loop_too(tmp_path):
    program = "#define BYTES_IN_PAIRS\n" + PROGRAM
    ran = cross.run(program, "x86_64", "avx2", tmp_path)
    if ran.returncode == cross.NOT_HERE:
        pytest.skip("this processor does not run avx2")
    assert ran.returncode == 0, ran.stdout


AVX2 = pytest.mark.skipif(not cross.emulates_avx2(), reason="needs qemu-x86_64 7.2 or later")


@pytest.mark.parametrize(
    ("machine", "cpu", "expected"),
    [
        ("aarch64", "cortex-a57", ["neon"]),
        ("aarch64", "neoverse-n1", ["dotprod", "neon"]),
        ("x86_64", "Nehalem", []),
        # AVX without AVX2 and FMA.
        ("x86_64", "SandyBridge", []),
        pytest.param("x86_64", "Haswell", ["avx2"], marks=AVX2),
    ],
)
def test_each_processor_takes_the_variants_it_has_instructions_for(
    machine, cpu, expected, tmp_path
):
    """Check variants against instructions that a processor lacks, which would kill the program."""
    taken = []
    for variant in cross.FLAGS[machine]:
        ran = cross.run(PROGRAM, machine, variant, tmp_path, emulated_cpu=cpu)
        assert ran.returncode in (0, cross.NOT_HERE), ran.stdout
        if ran.returncode == 0:
            taken.append(variant)
    assert taken == expected


@AVX2
@pytest.mark.parametrize("name", ["encode.c", "search.c"])
def test_whole_kernels_without_avx512_are_the_same_under_qemu(name, tmp_path):
    program = (Path(__file__).parent / name).read_text(encoding="utf-8")
    emulated = cross.run(program, "x86_64", "avx2", tmp_path, emulated_cpu="Haswell")
    assert emulated.returncode == 0
    assert len(emulated.stdout.splitlines()) > 500
    here = cross.run(program, "x86_64", "avx2", tmp_path)
    if here.returncode == cross.NOT_HERE:
        pytest.skip("this processor does not run avx2")
    assert here.stdout == emulated.stdout


@pytest.mark.parametrize("name", ["encode_widened.c", "rows.c"])
@pytest.mark.parametrize(("machine", "variant"), VARIANTS)
def test_weights_and_rows_are_what_they_were_rounded_from(machine, variant, name, tmp_path):
    program = (Path(__file__).parent / name).read_text(encoding="utf-8")
    ran = cross.run(program, machine, variant, tmp_path)
    if ran.returncode == cross.NOT_HERE:
        pytest.skip(f"this processor does not run {variant}")
    assert ran.returncode == 0


@pytest.mark.parametrize("name", ["encode.c", "search.c"])
@pytest.mark.parametrize(("machine", "variant"), VARIANTS)
def test_clang_s_kernels_give_the_bits_of_gcc_s(machine, variant, name, tmp_path):
    program = (Path(__file__).parent / name).read_text(encoding="utf-8")
    by_clang = cross.run(program, machine, variant, tmp_path, uses_clang=True)
    if by_clang.returncode == cross.NOT_HERE:
        pytest.skip(f"this processor does not run {variant}")
    assert by_clang.returncode == 0
    assert by_clang.stdout == cross.run(program, machine, variant, tmp_path).stdout


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_programs_of_this_machine_need_no_static_library(tmp_path, monkeypatch):
    """Check images for wheels, which have no static C library."""
    compiler = tmp_path / "gcc"
    refusal = 'case " $* " in *" -static "*) echo "no libc.a" >&2; exit 1;; esac'
    compiler.write_text(f'#!/bin/sh\n{refusal}\nexec {shutil.which("gcc")} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if cross.HERE not in cross.FLAGS:
        pytest.skip("no kernels for this machine")
    *_, plainest = cross.FLAGS[cross.HERE]
    ran = cross.run("int main(void) { return 3; }", cross.HERE, plainest, tmp_path)
    assert ran.returncode == 3
