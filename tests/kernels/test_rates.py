"""Rates are measured once and remembered; a later way has to be faster by the margin."""

from __future__ import annotations

import sys
import time

import pytest
import torch

from interlingua.kernels import rates
from interlingua.kernels.rates import fastest, least_seconds, measured


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(rates, "_MEASURED", {})


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"a": 1.0, "b": 1.04}, "a"),
        ({"a": 1.0, "b": 1.06}, "b"),
        ({"a": 1.0, "b": 1.04, "c": 1.06}, "c"),
        ({"a": 3.0, "b": 1.0, "c": 2.0}, "a"),
    ],
)
def test_a_later_one_has_to_be_faster_by_the_margin(rates, expected):
    assert fastest(rates) == expected


def test_each_way_is_measured_once_for_all_processes(monkeypatch):
    calls = []

    def measure():
        calls.append("once")
        return {"b": 1.0, "a": 2.0}

    for _ in range(2):
        found = measured("layers", ["width=3"], ["a", "b"], measure)
        assert list(found.items()) == [("a", 2.0), ("b", 1.0)]
        rates._MEASURED.clear()  # another process
    assert calls == ["once"]
    assert measured("layers", ["width=4"], ["a", "b"], measure) == found
    assert len(calls) == len(rates.remembered()) == 2


def keep_busy(seconds):
    """Takes processor time of this thread."""
    end = rates.CLOCK() + seconds
    while rates.CLOCK() < end:
        pass


def test_the_least_of_the_rounds_counts_on_one_thread(monkeypatch):
    threads = torch.get_num_threads()
    seen = []

    def slow():
        seen.append(torch.get_num_threads())
        keep_busy(0.01)

    monkeypatch.setattr(rates, "TRIAL_SECONDS", 0.0)
    found = least_seconds({"slow": slow, "fast": lambda: None})
    assert found["slow"] >= 0.01 > found["fast"]
    assert seen == [1] * rates.LEAST_ROUNDS
    assert torch.get_num_threads() == threads


@pytest.mark.skipif(sys.platform == "win32", reason="processor time is coarse there")
def test_time_of_other_processes_does_not_count(monkeypatch):
    monkeypatch.setattr(rates, "TRIAL_SECONDS", 0.0)
    # What waits for the processor is as if asleep.
    found = least_seconds(
        {"interrupted": lambda: time.sleep(0.02), "busy": lambda: keep_busy(0.01)}
    )
    assert found["interrupted"] < 0.01 <= found["busy"]
