import pytest

from interlingua.errors import ConfigError
from interlingua.training.budget import Costs, fit, fix_length, steps_within
from interlingua.training.feeds.feeds import open_data
from interlingua.training.machine.engine import Engine
from interlingua.training.optimization.schedules import due


@pytest.mark.parametrize(("eval_steps", "save_steps"), [(7, 5), (0.1, 0.25), (1, 0.5)])
@pytest.mark.parametrize("seconds", [0.5, 3.0, 40.0])
def test_steps_within_is_the_most_that_fits(tiny_config, eval_steps, save_steps, seconds):
    run = tiny_config(eval_steps=eval_steps, save_steps=save_steps).run

    def needed(steps):
        evaluations, checkpoints = (
            sum(due(every, done, steps) for done in range(1, steps + 1))
            for every in (eval_steps, save_steps)
        )
        return 0.1 * steps + 0.3 * evaluations + 0.2 * checkpoints

    steps = steps_within(seconds, run, Costs(step=0.1, evaluation=0.3, checkpoint=0.2))
    assert needed(steps) <= seconds + 1e-9
    # rounding a share to steps makes the need jump, so a little more may happen to fit
    assert needed(steps + 4) > seconds


def test_epochs_become_steps(tiny_config):
    config = tiny_config(max_steps=None, num_train_epochs=1.5)
    fixed = fix_length(config, open_data(config, ("parallel",)), Engine(config.run), None)
    assert (fixed.run.max_steps, fixed.run.num_train_epochs) == (round(1.5 * 600 / 16), None)


def test_a_length_in_steps_stays(tiny_config):
    config = tiny_config()
    assert fix_length(config, open_data(config, ("parallel",)), Engine(config.run), None) is config


def test_a_budget_becomes_steps_on_a_throwaway_copy(tiny_config):
    calls = []
    config = tiny_config(max_steps=None, budget_seconds=30)
    fixed = fix_length(
        config,
        open_data(config, ("parallel",)),
        Engine(config.run),
        lambda encoder, step: calls.append(step) or {},
    )
    assert fixed.run.budget_seconds is None
    assert fixed.run.max_steps >= 1
    assert calls == [0]  # evaluations are part of the budget, so one is timed
    assert list(config.run.output.parent.iterdir()) == []


def test_a_budget_for_nothing(tiny_config):
    config = tiny_config(max_steps=None, budget_seconds=0.01)
    data = open_data(config, ("parallel",))
    with pytest.raises(ConfigError, match=r"one step.*at least \d+$") as caught:
        fix_length(config, data, Engine(config.run), None)
    enough = int(str(caught.value).split()[-1])
    assert 0 < caught.value.needed_seconds <= enough
    config = tiny_config(
        max_steps=None, budget_seconds=10.0 * enough
    )  # ten times, as other work may begin meanwhile
    assert fix_length(config, data, Engine(config.run), None).run.max_steps >= 1


def test_evaluations_that_take_most_of_the_budget_are_spaced_and_said(tiny_config):
    run = tiny_config(eval_steps=0.1, save_steps=0.1).run
    fitted = fit(150, run, Costs(step=1.0, evaluation=12.0, checkpoint=3.0))
    assert (fitted.eval_steps, fitted.save_steps) == (
        0.34,
        0.34,
    )  # three of each are 45 s, and four would be 60
    assert fitted.steps == 105
    assert "an evaluation takes 12.0 s and a checkpoint 3.0 s" in fitted.warnings[0]
    assert len(fitted.warnings) == 1


def test_what_takes_a_third_even_once_is_made_at_the_end_alone(tiny_config):
    run = tiny_config(eval_steps=7, save_steps=0.1).run
    fitted = fit(100, run, Costs(step=1.0, evaluation=40.0, checkpoint=10.0))
    assert (fitted.steps, fitted.eval_steps, fitted.save_steps) == (50, 50, 50)
    assert "at the end alone" in fitted.warnings[0]


def test_few_steps_are_said(tiny_config):
    run = tiny_config(eval_steps=0.5, save_steps=0.5).run
    fitted = fit(150, run, Costs(step=4.0, evaluation=1.0, checkpoint=1.0))
    assert fitted.steps == 36
    assert [warning.partition(" fit")[0] for warning in fitted.warnings] == ["36 steps of 4.00 s"]


def test_cheap_evaluations_stay_as_they_are(tiny_config):
    run = tiny_config(eval_steps=7, save_steps=0.25).run
    fitted = fit(100, run, Costs(step=0.5, evaluation=0.1, checkpoint=0.1))
    assert (fitted.eval_steps, fitted.save_steps, fitted.warnings) == (7, 0.25, ())


def test_a_pretrained_encoder_is_evaluated_once_more(tiny_config):
    run = tiny_config(eval_steps=1000, save_steps=1000).run
    costs = Costs(step=1.0, evaluation=5.0, checkpoint=1.0)
    assert (
        fit(200, run, costs).steps == fit(200, run, costs._replace(evaluates_start=True)).steps + 5
    )


def test_a_run_that_stops_at_its_budget_keeps_it(tiny_config):
    config = tiny_config(max_steps=None, budget_seconds=30, stop_at_budget=True)
    fixed = fix_length(config, open_data(config, ("parallel",)), Engine(config.run), None)
    assert fixed.run.budget_seconds == 30
    assert fixed.run.max_steps >= 1
    with pytest.raises(ConfigError, match="stop_at_budget"):
        tiny_config(stop_at_budget=True)
