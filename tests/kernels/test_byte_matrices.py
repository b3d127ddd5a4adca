"""The variant ``i8mm`` against the variants before it: whole kernels, on processors of qemu.

Sums of whole numbers are exact, so that products of bytes have to give equal bits in all of
AArch64's variants; so have those of float32, as their order is the same. Products of bfloats, which
only ``i8mm`` has, have to be close to float32. All of it also as the build compiles it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.kernels import cross

PROCESSORS = {"neon": "cortex-a57", "dotprod": "neoverse-n1", "i8mm": "max"}
"""By variant, one that has its instructions, and none of a better variant but for ``max``."""
PROGRAMS = ("encode.c", "search.c")
TOKENS = 240
"""Number of tokens, as in ``random_model.h``."""
LAST_BITS = 2e-6
"""States, which are at most about 4, that are nearer differ only by rounding in float32."""


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


def states_by_model(output):
    """Return the states printed by ``encode.c`` on AArch64, by width and type of the weights."""
    numbers = np.array([int(line, 16) for line in output.split()], np.uint32).view(np.float32)
    found, begin = {}, 0
    models = [(64, "bytes"), (80, "bytes"), (16, "bytes"), (64, "float32")]
    for width, of_weights in [*models, (64, "float32 in other layers")]:
        end = begin + TOKENS * width
        found[width, of_weights] = numbers[begin:end].reshape(TOKENS, width)
        begin = end
    assert begin == len(numbers)
    return found


def test_variants_with_the_build_s_own_flags_give_the_same_bits_too(tmp_path):
    """Use the build's flags, with which a compiler may contract a product and a sum."""
    for name in PROGRAMS:
        program = (Path(__file__).parent / name).read_text(encoding="utf-8")
        exact = cross.run(program, "aarch64", "dotprod", tmp_path)
        outputs = set()
        for variant, cpu in PROCESSORS.items():
            ran = cross.run(
                program,
                "aarch64",
                variant,
                tmp_path,
                emulated_cpu=cpu,
                optimization=cross.SHIPPED,
            )
            assert ran.returncode == 0, (variant, ran.stdout[-200:])
            outputs.add(ran.stdout)
        [shipped] = outputs
        if name == "search.c":
            assert shipped == exact.stdout
            continue
        expected = states_by_model(exact.stdout)
        for (width, of_weights), states in states_by_model(shipped).items():
            apart = np.abs(states - expected[width, of_weights]).max(axis=1)
            # A last bit may round an activation to the next byte, in few rows.
            of_another_byte = apart > LAST_BITS
            assert of_another_byte.mean() <= (0.05 if of_weights == "bytes" else 0)
            assert apart.max() < 0.01


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
