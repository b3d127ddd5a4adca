import math

import pytest

from interlingua.errors import ConfigError
from interlingua.training.config import OptimizerConfig, ScheduleConfig
from interlingua.training.optimization.schedules import (
    due,
    learning_rate_factor,
    notes,
    peak_learning_rate,
    steps_of,
)


def factors(name, warmup, steps):
    config = ScheduleConfig(name=name, warmup_steps=warmup)
    return [learning_rate_factor(step, config=config, max_steps=steps) for step in range(steps)]


@pytest.mark.parametrize(
    ("name", "warmup", "expected"),
    [
        ("constant", 4, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]),
        ("linear", 2, [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]),
        ("linear", 0, [1.0, 0.75, 0.5, 0.25]),
        ("cosine", 2, [0.5, 1.0, 1.0, 0.85355339, 0.5, 0.14644661]),
    ],
)
def test_factors_by_hand(name, warmup, expected):
    assert factors(name, warmup, len(expected)) == pytest.approx(expected)


def test_ems_is_a_cosine_over_five_runs_times_the_warm_up():
    got = factors("ems", 10, 1000)
    assert got[4] == pytest.approx(0.5 * (1 + math.cos(math.pi * 4 / 5000)) / 2)
    assert got[500] == pytest.approx(0.9755282581)  # (1 + cos 18 degrees) / 2
    assert got[-1] == pytest.approx(0.9045, abs=3e-4)  # 90 % are left at the end


@pytest.mark.parametrize(("value", "steps"), [(0, 0), (0.1, 20), (0.001, 1), (1, 1), (7, 7)])
def test_shares_of_the_run(value, steps):
    assert steps_of(value, 200) == steps


def test_part_of_a_step():
    with pytest.raises(ConfigError, match=r"warmup_steps: .*whole number.*1\.5"):
        ScheduleConfig(warmup_steps=1.5)


def test_due_every_so_many_steps_and_at_the_end():
    assert [done for done in range(1, 12) if due(4, done, 11)] == [4, 8, 11]
    assert [done for done in range(1, 12) if due(0.5, done, 10)] == [5, 10]


def test_ramp_rises_to_the_end_of_the_run():
    config = ScheduleConfig(name="ramp", warmup_start=0.25)  # MEXMA's 1e-5 to 4e-5
    got = [
        4e-5 * learning_rate_factor(step, config=config, max_steps=300)
        for step in (0, 100, 200, 299, 300)
    ]
    assert got == pytest.approx([1e-5, 2e-5, 3e-5, 3.99e-5, 4e-5])


def test_a_warm_up_from_nothing_reaches_the_peak_one_step_later():
    config = ScheduleConfig(name="cosine", warmup_steps=4, warmup_start=0.0)
    assert [learning_rate_factor(t, config=config, max_steps=8) for t in range(5)] == [
        0.0,
        0.25,
        0.5,
        0.75,
        1.0,
    ]


def test_a_warm_up_from_a_share_of_the_peak():
    config = ScheduleConfig(name="constant", warmup_steps=10, warmup_start=0.1)
    found = [learning_rate_factor(t, config=config, max_steps=20) for t in (0, 5, 10, 15)]
    assert found == pytest.approx([0.1, 0.55, 1.0, 1.0])


@pytest.mark.parametrize("start", [-0.1, 1.5])
def test_a_start_that_is_no_share(start):
    with pytest.raises(ConfigError, match=r"warmup_start: .* from 0 to 1"):
        ScheduleConfig(warmup_start=start)


@pytest.mark.parametrize("steps", [105_000, 2000, 100])
def test_a_shorter_run_keeps_rate_times_steps(steps):
    config = OptimizerConfig(name="lars", learning_rate=0.02, learning_rate_steps=105_000)
    assert peak_learning_rate(config, steps) * steps == pytest.approx(2100)
    assert f"becomes {2100 / steps:.4g} for {steps:,}" in notes(config, steps)[0]


def test_a_run_too_short_for_its_rate_is_told_the_least_length():
    config = OptimizerConfig(name="lars", learning_rate=0.02, learning_rate_steps=105_000)
    assert len(notes(config, 210)) == 1
    (_, warning) = notes(config, 100)
    assert (
        "steps of 2.1% of a matrix's norm are likely to diverge; train at least 210 steps"
        in warning
    )


def test_the_rate_as_it_is():
    config = OptimizerConfig(name="lars", learning_rate=0.02)
    assert peak_learning_rate(config, 100) == 0.02
    assert notes(config, 100) == []
