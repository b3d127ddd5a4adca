"""The variant ``i8mm`` against the variants before it: whole kernels, on processors of qemu.

Sums of whole numbers are exact, so that products of bytes have to give equal bits in all of
AArch64's variants; so have those of float32, as their order is the same. Products of bfloats, which
``i8mm`` alone has, have to be close to float32.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import cross

PROCESSORS = {"neon": "cortex-a57", "dotprod": "neoverse-n1", "i8mm": "max"}
"""By variant, one that has its instructions, and none of a better variant but for ``max``."""
PROGRAMS = ("encode.c", "search.c")


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_variants_of_aarch64_give_the_same_bits(name, tmp_path):
    program = (Path(__file__).parent / name).read_text(encoding="utf-8")
    outputs = {}
    for variant, cpu in PROCESSORS.items():
        ran = cross.run(program, "aarch64", variant, tmp_path, emulated_cpu=cpu)
        assert ran.returncode == 0, (variant, ran.stdout[-200:])
        outputs[variant] = ran.stdout
    assert len(outputs["dotprod"].splitlines()) > 500
    assert outputs["i8mm"] == outputs["dotprod"] == outputs["neon"]


def test_bfloats_of_i8mm_are_close_to_float32(tmp_path):
    program = (Path(__file__).parent / "encode_bfloats.c").read_text(encoding="utf-8")
    ran = cross.run(program, "aarch64", "i8mm", tmp_path, emulated_cpu="max")
    assert ran.returncode == 0
    cosines = [float(line) for line in ran.stdout.splitlines()]
    assert len(cosines) == 4
    assert min(cosines) > 1 - 1e-4
    # Products of float32 would give equal states.
    assert max(cosines) < 1


def test_the_processors_are_those_of_all_variants():
    assert set(PROCESSORS) == set(cross.FLAGS["aarch64"])
