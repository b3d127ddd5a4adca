from __future__ import annotations

import pytest

from interlingua.errors import ConfigError
from interlingua.evaluation.time_limit import Budget


def test_time_passes():
    now = [100.0]
    budget = Budget(60, clock=lambda: now[0])
    assert not budget.is_used
    now[0] = 159.9
    assert not budget.is_used
    now[0] = 160.0
    assert budget.is_used


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2h ", 7200), ("0.5s", 0.5)]
)
def test_times_with_units(text, seconds):
    assert Budget.parse(text).seconds == seconds
    assert Budget.parse(str(Budget.parse(text))).seconds == seconds


@pytest.mark.parametrize("text", ["10", "m", "0s", "-3m", "1d", "ten minutes", "1m30s"])
def test_what_is_no_time(text):
    with pytest.raises(ConfigError, match=r"budget: .*90s, 10m or 2h"):
        Budget.parse(text)


def test_what_was_left_out_is_one_sentence():
    budget = Budget(600)
    assert budget.report is None
    budget.left_out = {"tatoeba": "2 of 3 (fra, rus)", "xsim": "all"}
    assert (
        budget.report
        == "the budget of 10m is used up; skipped: tatoeba: 2 of 3 (fra, rus); xsim: all"
    )
