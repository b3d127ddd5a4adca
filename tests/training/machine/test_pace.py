from __future__ import annotations

import pytest

from interlingua.training.budget import Pace
from interlingua.training.loop import run_training
from interlingua.training.result import Clock


def test_without_stopping_steps_alone_decide():
    pace = Pace(100.0, 50)
    assert pace.position(3, 1e9) == 3
    assert not pace.is_over(1e9)


def test_the_schedule_follows_the_time_where_that_is_ahead():
    pace = Pace(100.0, 50, stops=True)
    assert pace.position(10, 10.0) == 10
    assert pace.position(10, 60.0) == 30
    assert pace.position(10, 500.0) == 49
    assert not pace.is_over(99.0)
    assert pace.is_over(100.0)
    pace.evaluation_seconds = 20.0
    assert pace.is_over(80.0)


@pytest.mark.parametrize(("stops", "remedy"), [(False, "run.stop_at_budget=true"), (True, "fewer")])
def test_after_a_tenth_a_late_run_says_how_long_it_takes(stops, remedy):
    pace = Pace(300.0, 100, stops=stops)
    warning = pace.warning(10, 390.0)
    assert warning is not None
    assert "about 65.0 min instead of 5.0 min" in warning
    assert remedy in warning
    assert pace.warning(10, 31.0) is None
    assert pace.warning(11, 390.0) is None
    assert Pace(None, 100).warning(10, 390.0) is None


def test_a_run_ends_with_its_budget_and_its_rate_has_decayed(tiny_config, monkeypatch):
    config = tiny_config(max_steps=400, budget_seconds=4.0, stop_at_budget=True, eval_steps=400)
    seconds = iter(range(10_000))
    monkeypatch.setattr(Clock, "seconds", property(lambda clock: next(seconds) / 10))
    result = run_training(config, progress=False)
    assert 5 < result.step < 100
    assert result.best_step == result.step  # the last step was evaluated
    assert result.model is not None


def test_position_of_a_stopped_run_ends_the_schedule():
    pace = Pace(10.0, 1000, stops=True)
    assert [pace.position(step, step / 2) for step in (0, 5, 10, 19, 20)] == [0, 250, 500, 950, 999]


def test_rate_is_at_its_last_value_when_an_evaluation_is_due():
    pace = Pace(100.0, 50, stops=True)
    pace.evaluation_seconds = 20.0
    assert pace.position(10, 79.9) == 49
    assert pace.position(10, 40.0) == 25
    assert not pace.is_over(79.9)


def test_time_before_the_clock_is_part_of_the_budget():
    pace = Pace(100.0, 50, stops=True, spent_before=30.0)
    assert not pace.is_over(69.0)
    assert pace.is_over(70.0)
    assert pace.position(0, 35.0) == 25


def test_budget_spent_before_the_clock_ends_at_one_step():
    pace = Pace(10.0, 50, stops=True, spent_before=12.0)
    assert pace.is_over(0.0)
    assert pace.position(0, 0.0) == 0
    assert pace.position(0, 0.1) == 49


def test_time_spent_on_measuring_counts_against_the_budget(tiny_config, monkeypatch):
    config = tiny_config(max_steps=400, budget_seconds=4.0, stop_at_budget=True, eval_steps=400)
    seconds = iter(range(10_000))
    monkeypatch.setattr(Clock, "seconds", property(lambda clock: next(seconds) / 10))
    times = iter([0.0, 3.0])  # when the run started, and when its clock starts
    monkeypatch.setattr("interlingua.training.loop.time.perf_counter", lambda: next(times, 3.0))
    assert 0 < run_training(config, progress=False).step < 10
