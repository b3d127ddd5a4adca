"""The variant ``i8mm`` against the variants before it: whole kernels, on processors of qemu.

Sums of whole numbers are exact, so that all of AArch64's variants have to give equal bits.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import cross

PROCESSORS = {"neon": "cortex-a57", "dotprod": "neoverse-n1", "i8mm": "max"}
"""By variant, one that has its instructions, and none of a better variant but for ``max``."""
PROGRAMS = ("encode_bytes.c", "search_bytes.c")


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


def test_the_processors_are_those_of_all_variants():
    assert set(PROCESSORS) == set(cross.FLAGS["aarch64"])
