import pytest

from interlingua.errors import ConfigError
from interlingua.train.budget import fix_length, steps_within
from interlingua.train.engine import Engine
from interlingua.train.feeds import open_data
from interlingua.train.schedules import due


@pytest.mark.parametrize(("eval_steps", "save_steps"), [(7, 5), (0.1, 0.25), (1, 0.5)])
@pytest.mark.parametrize("seconds", [0.5, 3.0, 40.0])
def test_steps_within_is_the_most_that_fits(tiny_config, eval_steps, save_steps, seconds):
    run = tiny_config(eval_steps=eval_steps, save_steps=save_steps).run

    def needed(steps):
        evaluations, checkpoints = (
            sum(due(every, done, steps) for done in range(1, steps + 1)) for every in (eval_steps, save_steps)
        )
        return 0.1 * steps + 0.3 * evaluations + 0.2 * checkpoints

    steps = steps_within(seconds, run, step_seconds=0.1, evaluation_seconds=0.3, checkpoint_seconds=0.2)
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
        config, open_data(config, ("parallel",)), Engine(config.run), lambda encoder, step: calls.append(step) or {}
    )
    assert fixed.run.budget_seconds is None
    assert fixed.run.max_steps >= 1
    assert calls == [0]  # evaluations are part of the budget, so one is timed
    assert list(config.run.output.parent.iterdir()) == []


def test_a_budget_for_nothing(tiny_config):
    config = tiny_config(max_steps=None, budget_seconds=0.01)
    with pytest.raises(ConfigError, match="too small for one step"):
        fix_length(config, open_data(config, ("parallel",)), Engine(config.run), None)
