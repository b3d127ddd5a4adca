"""Rates are measured once and remembered; a later candidate has to be faster by the margin."""

from __future__ import annotations

import sys
import time

import pytest
import torch

from interlingua import kernels
from interlingua.encoder.executors import choice
from interlingua.encoder.executors.choice import (
    EXECUTOR_VARIABLE,
    FIRST,
    Choice,
    Trial,
    choose_executor,
    executor_rates,
    fastest,
    forced_name,
    trial_rates,
)
from interlingua.errors import ConfigError


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.delenv(EXECUTOR_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(choice, "_MEASURED", {})


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

    def measure(trial):
        calls.append(trial)
        return {"b": 1.0, "a": 2.0}

    def rates_of(fact):
        return executor_rates(["a", "b"], kernel="layers", facts=[fact], trial="a trial")

    monkeypatch.setattr(choice, "trial_rates", measure)

    for _ in range(2):
        found = rates_of("width=3")
        assert list(found.items()) == [("a", 2.0), ("b", 1.0)]
        choice._MEASURED.clear()  # another process
    assert calls == ["a trial"]
    assert rates_of("width=4") == found
    assert len(calls) == len(choice.remembered()) == 2


def keep_busy(seconds):
    """Use processor time of this thread."""
    end = choice.CLOCK() + seconds
    while choice.CLOCK() < end:
        pass


def test_the_least_of_the_rounds_counts_on_one_thread(monkeypatch):
    threads = torch.get_num_threads()
    seen = []

    def slow():
        seen.append(torch.get_num_threads())
        keep_busy(0.01)

    runs = {"slow": slow, "fast": lambda: None}
    found = trial_rates(lambda: Trial(runs, work=10, seconds=0.0))
    assert found["slow"] <= 10 / 0.01 < found["fast"]
    assert seen == [1] * choice.MIN_ROUNDS
    assert torch.get_num_threads() == threads


@pytest.mark.skipif(sys.platform == "win32", reason="processor time is coarse there")
def test_time_of_other_processes_does_not_count():
    # A run that waits for the processor is as if it slept.
    runs = {"interrupted": lambda: time.sleep(0.02), "busy": lambda: keep_busy(0.01)}
    found = trial_rates(lambda: Trial(runs, work=1, seconds=0.0))
    assert found["interrupted"] > 1 / 0.01 >= found["busy"]


def test_a_trial_draws_no_random_number_of_the_run():
    state = torch.get_rng_state()

    def make_trial():
        torch.manual_seed(3)
        return Trial({"a": lambda: torch.rand(2)}, work=1)

    assert trial_rates(make_trial)["a"] > 0
    assert torch.equal(torch.get_rng_state(), state)


def chosen(*candidates, **options):
    return choose_executor(
        candidates, kernel="layers", facts=[], trial=lambda: pytest.fail("tried"), **options
    )


@pytest.mark.parametrize(
    ("variable", "candidates", "options", "expected"),
    [
        ("torch", ["kernel", "torch"], {}, ("torch", f"{EXECUTOR_VARIABLE} requests it")),
        (FIRST, ["kernel", "torch"], {}, ("kernel", f"{EXECUTOR_VARIABLE} is {FIRST}")),
        ("", ["torch"], {}, ("torch", "the only executor that can compute this")),
        ("kernel", ["torch"], {}, ("torch", "the only executor that can compute this")),
        ("", ["kernel", "torch"], {"decided": "small"}, ("kernel", "small")),
        (
            "torch",
            ["kernel", "torch"],
            {"decided": "small"},
            ("torch", f"{EXECUTOR_VARIABLE} requests it"),
        ),
    ],
)
def test_a_clear_choice_needs_no_trial(monkeypatch, variable, candidates, options, expected):
    monkeypatch.setenv(EXECUTOR_VARIABLE, variable)
    executor, reason = expected
    assert chosen(*candidates, **options) == Choice(executor=executor, reason=reason)


def test_a_clear_choice_is_measured_on_request(monkeypatch):
    monkeypatch.setattr(choice, "trial_rates", lambda trial: {"torch": 2.0, "kernel": 3.0})
    monkeypatch.setenv(EXECUTOR_VARIABLE, "torch")
    found = chosen("kernel", "torch", always_measure=True)
    assert (found.executor, found.rate) == ("torch", 2.0)
    assert list(found.rates) == ["kernel", "torch"]


@pytest.mark.parametrize(("rate", "reason"), [(1.0, "the fastest"), (1.04, "within 5% of")])
def test_the_reason_of_a_measured_choice(monkeypatch, rate, reason):
    monkeypatch.setattr(choice, "trial_rates", lambda trial: {"kernel": 1.0, "torch": rate})
    found = chosen("kernel", "torch")
    assert found.executor == "kernel"
    assert found.reason.startswith(reason)


def test_an_unknown_name_is_refused_for_every_computation(monkeypatch):
    monkeypatch.setenv(EXECUTOR_VARIABLE, "onedn")
    with pytest.raises(ConfigError, match="onednn"):
        forced_name()
    with pytest.raises(ConfigError, match=EXECUTOR_VARIABLE):
        chosen("torch")


@pytest.mark.parametrize(
    ("value", "expected"), [("", False), ("0", False), ("1", False), ("avx2", True)]
)
def test_a_named_variant_of_the_kernels_is_a_choice(monkeypatch, value, expected):
    monkeypatch.setenv(kernels.KERNELS_VARIABLE, value)
    assert choice.is_variant_forced() == expected
