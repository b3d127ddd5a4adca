import dataclasses
import time

import pytest

from interlingua.config import toml
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError
from interlingua.methods.ems import EMS
from interlingua.methods.teachers.teacher_bank import read_bank_record
from interlingua.storage.files import sha256_tree
from interlingua.training import budget
from interlingua.training.budget import Costs, FittedSteps, fix_length, steps_within
from interlingua.training.budget import fit_steps as fit
from interlingua.training.build import MicroBatches, build_objective
from interlingua.training.config import load_train_config, train_config_from
from interlingua.training.feeds.open_feeds import open_data
from interlingua.training.log import Meter
from interlingua.training.loop import run_training
from interlingua.training.machine.engine import Engine
from interlingua.training.optimization.loss_scale import LossScale
from interlingua.training.optimization.optim import build_optimizer
from interlingua.training.optimization.schedules import due
from interlingua.training.run_folder import RunFolder
from interlingua.training.step import TrainingStep
from interlingua.training.validation import RunEvaluation, valid_batches
from tests.training.runs import digest, losses, stop_at


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


@pytest.fixture
def fixed(tmp_path):
    """A function from a config to the one with the length that the training loop fixes."""

    def fix(config, evaluate=None):
        began_at = time.perf_counter()
        data = open_data(config, ("parallel",))
        engine = Engine(config.run)
        objective = build_objective(config, data.vocabulary, data.languages).train()
        batches = MicroBatches(config, data.train, objective.encoder.max_tokens, engine)
        optimizer = build_optimizer(objective, config.optimizer)
        scale = LossScale(enabled=False)
        make_step = TrainingStep(
            model=engine.setup(objective),
            objective=objective,
            optimizer=optimizer,
            engine=engine,
            meter=Meter(engine, tmp_path),
            loss_scale=scale,
            seed=config.run.seed,
            max_grad_norm=None,
        )
        validation = valid_batches(config, data, batches)
        evaluation = RunEvaluation(
            objective,
            objective,
            validation,
            engine,
            evaluate,
            RunFolder(config.run.output),
            loss_scale=scale,
        )
        return fix_length(config, make_step, batches, evaluation, began_at)

    return fix


def test_epochs_become_steps(tiny_config, fixed):
    run = fixed(tiny_config(max_steps=None, num_train_epochs=1.5)).run
    assert (run.max_steps, run.num_train_epochs) == (round(1.5 * 600 / 16), None)


def test_a_length_in_steps_stays(tiny_config, fixed):
    config = tiny_config()
    assert fixed(config) is config


def test_a_budget_becomes_steps_and_writes_nothing(tiny_config, fixed):
    calls = []
    config = tiny_config(max_steps=None, budget_seconds=30)
    run = fixed(config, lambda encoder, step: calls.append(step) or {}).run
    assert run.budget_seconds is None
    assert run.max_steps >= 1
    assert calls == [0]  # evaluations are part of the budget, so one is timed
    assert list(config.run.output.parent.iterdir()) == []


def test_a_budget_for_nothing(tiny_config, fixed):
    config = tiny_config(max_steps=None, budget_seconds=0.01)
    with pytest.raises(ConfigError, match=r"one step.*at least \d+$") as caught:
        fixed(config)
    enough = int(str(caught.value).split()[-1])
    assert 0 < caught.value.needed_seconds <= enough
    # Ten times as much, as other work may start meanwhile.
    config = tiny_config(max_steps=None, budget_seconds=10.0 * enough)
    assert fixed(config).run.max_steps >= 1


ANCHOR = {"name": "anchor", "bank_size": 64, "bank_steps": 2}
SMALL = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
TIMED = {
    # Rate, decay of the teacher and bank depend on the length of the run.
    "ems": {},
    "calibrated": {"method": {"name": "calibrated", "pivot": "en", "decay_steps": 40}},
    "anchor": {"method": ANCHOR, "encoder": {"preset": "ems-tiny", **SMALL, "dense": True}},
}


def fit_steps(monkeypatch, steps):
    """Let a run time its steps, and then find that this number fits into its budget."""
    fitted = FittedSteps(steps, 0.5, 0.5, ())
    measure = budget._measured_steps
    monkeypatch.setattr(budget, "_measured_steps", lambda *parts: measure(*parts) and fitted)


@pytest.mark.parametrize("name", TIMED)
def test_a_run_that_timed_its_steps_is_the_run_that_is_given_them(
    tiny_table, tmp_path, monkeypatch, name
):
    fit_steps(monkeypatch, 9)
    table = {**tiny_table, **TIMED[name]}
    runs = {}
    for length in ({"budget_seconds": 9.0}, {"max_steps": 9}):
        run = {**table["run"], "eval_steps": 0.5, "save_steps": 0.5}
        run = {key: value for key, value in run.items() if key != "max_steps"}
        output = tmp_path / next(iter(length))
        config = train_config_from({**table, "run": {**run, **length, "output": str(output)}})
        assert run_training(config).step == 9
        runs[next(iter(length))] = output
    timed, given = runs.values()
    assert digest(timed) == digest(given)
    assert losses(timed) == losses(given)
    assert sha256_tree(timed / "model") == sha256_tree(given / "model")


def test_a_budget_builds_one_objective_and_opens_each_config_once(
    tiny_config, tmp_path, monkeypatch
):
    fit_steps(monkeypatch, 8)
    built = []
    init = EMS.__init__
    monkeypatch.setattr(
        EMS, "__init__", lambda self, *parts: built.append(self) or init(self, *parts)
    )
    opened = []
    read = toml.read_limited
    monkeypatch.setattr(
        toml,
        "read_limited",
        lambda file, path, limit: opened.append(path) or read(file, path, limit),
    )
    file = tmp_path / "train.toml"
    config = tiny_config(max_steps=None, budget_seconds=4, eval_steps=0.5, save_steps=0.5)
    file.write_text(config.to_toml())
    result = run_training(load_train_config(file), evaluate=stop_at(4))
    assert (len(built), opened) == (1, [file])
    opened.clear()
    run_training(load_train_config(file))
    assert (len(built), opened) == (2, [file, result.run / "config.toml"])


def test_a_budget_is_measured_before_there_is_a_bank(tiny_table, word_vocabulary, tmp_path):
    """Use several teachers for a bank, which cannot embed a batch."""
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    shape = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    for name in names:
        small = dataclasses.replace(shape, num_hidden_layers=1, **SMALL)
        Encoder.from_scratch(small, word_vocabulary).save(name)
    tiny_table["method"] = {**ANCHOR, "teachers": names}
    tiny_table["encoder"] |= SMALL
    del tiny_table["run"]["max_steps"]
    tiny_table["run"] |= {"budget_seconds": 4.0, "eval_steps": 0.5, "save_steps": 0.5}
    result = run_training(train_config_from(tiny_table))
    assert result.step == result.max_steps >= 1
    assert read_bank_record(result.run / "bank").teachers == tuple(names)


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
    assert "only at the end" in fitted.warnings[0]


def test_few_steps_are_said(tiny_config):
    run = tiny_config(eval_steps=0.5, save_steps=0.5).run
    fitted = fit(150, run, Costs(step=4.0, evaluation=1.0, checkpoint=1.0))
    assert fitted.steps == 36
    assert [warning.partition(" fit")[0] for warning in fitted.warnings] == [
        "only 36 steps of 4.00 s"
    ]


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


def test_a_run_that_stops_at_its_budget_keeps_it(tiny_config, fixed):
    run = fixed(tiny_config(max_steps=None, budget_seconds=30, stop_at_budget=True)).run
    assert run.budget_seconds == 30
    assert run.max_steps >= 1
    with pytest.raises(ConfigError, match="stop_at_budget"):
        tiny_config(stop_at_budget=True)
