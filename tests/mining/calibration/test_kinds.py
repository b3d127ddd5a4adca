from __future__ import annotations

import pytest

from interlingua.mining.calibration.kinds import differences_of_kind

LONG = ["this is a long sentence about many things that happened"] * 5
SHORT = ["short one"] * 5


@pytest.mark.parametrize(
    ("held_out", "others", "sides"),
    [
        ((SHORT, SHORT), (SHORT, SHORT), []),
        ((SHORT, SHORT), (LONG, SHORT), ["deu_Latn"]),
        ((LONG, LONG), (SHORT, SHORT), ["deu_Latn", "eng_Latn"]),
        ((SHORT, ["короткая"] * 5), (SHORT, SHORT), ["eng_Latn"]),
        (([], []), (SHORT, SHORT), []),
    ],
)
def test_other_lengths_and_scripts_are_told_for_each_side(held_out, others, sides):
    lines = differences_of_kind(("deu_Latn", "eng_Latn"), held_out, others)
    assert all(line.startswith("warning: ") for line in lines)
    assert [code for code in ("deu_Latn", "eng_Latn") if code in " ".join(lines)] == sides
