from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.differences import changes, paired
from interlingua.errors import ConfigError
from tests.analysis.test_record import analysis

WORSE = np.tile([[0.0] * 60 + [1.0] * 40], (2, 1))
BETTER = np.tile([[0.0] * 30 + [1.0] * 70], (2, 1))


def test_a_difference_and_its_interval():
    found, skew = changes(analysis("a", values=WORSE), analysis("b", values=BETTER))
    assert found.difference == pytest.approx(0.3)
    # the share of lines where they differ is binomial: sd sqrt(.3 * .7 / 100) = .046
    assert found.tested.low == pytest.approx(0.3 - 1.96 * 0.0458, abs=0.02)
    assert found.tested.high == pytest.approx(0.3 + 1.96 * 0.0458, abs=0.02)
    assert found.verdict == "better"
    assert (skew.difference, skew.tested, skew.verdict) == (0.0, None, "")


def test_the_other_way_round_is_worse():
    assert changes(analysis(values=BETTER), analysis(values=WORSE))[0].verdict == "worse"
    same = changes(analysis(values=BETTER), analysis(values=BETTER))[0]
    assert (same.difference, same.verdict) == (0.0, "unclear")


def test_lower_may_be_better():
    import dataclasses

    first, second = analysis(), analysis()
    lower = tuple(
        dataclasses.replace(m, value=1.0) if m.name == "skew" else m for m in second.measures
    )
    assert changes(first, dataclasses.replace(second, measures=lower))[1].verdict == "seems better"
    assert changes(dataclasses.replace(second, measures=lower), first)[1].verdict == "seems worse"


@pytest.mark.parametrize(
    "other", [{"data_sha256": "0" * 64}, {"version": "2"}, {"settings": {"k": 5}}, {"task": "t"}]
)
def test_unlike_ones_are_refused(other):
    with pytest.raises(ConfigError, match=f"a and b .* {next(iter(other))} is"):
        changes(analysis("a"), analysis("b", **other))


def test_pairs_are_what_both_have():
    first, second = analysis("a"), analysis("b")
    assert paired([[first, analysis("a", task="x")], [analysis("b", task="y"), second]]) == [
        (first, second)
    ]
