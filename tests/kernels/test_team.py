"""The threads that encode a batch together, in programs of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import cross

FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    ("machine", "variant"), [("x86_64", "avx512"), ("x86_64", "avx2"), ("aarch64", "neon")]
)
def test_threads_may_be_few_or_late_and_change_no_bit(machine, variant, tmp_path):
    """Run a program with the number of the failed case as its exit status."""
    ran = cross.run((FOLDER / "team.c").read_text(encoding="utf-8"), machine, variant, tmp_path)
    if ran.returncode == cross.NOT_HERE:
        pytest.skip(f"this processor does not run {variant}")
    assert ran.returncode == 0, ran.stderr


def test_who_was_let_in_is_waited_for(tmp_path):
    program = (FOLDER / "late_team.c").read_text(encoding="utf-8")
    ran = cross.run(program, "x86_64", "avx2", tmp_path)
    if ran.returncode == cross.NOT_HERE:
        pytest.skip("this processor does not run avx2")
    assert ran.returncode == 0, ran.stderr
