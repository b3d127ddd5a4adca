import shutil
from types import SimpleNamespace

import pytest
import torch

from interlingua.batches.token_store import TokenStoreWriter
from interlingua.errors import ConfigError
from interlingua.training.build import MicroBatches, build_objective
from interlingua.training.checkpoint import TrainState
from interlingua.training.config import train_config_from
from interlingua.training.feeds.open_feeds import open_data
from interlingua.training.machine.engine import Engine
from interlingua.training.validation import (
    check_metric,
    measure_validation,
    out_of_patience,
    saturation_warning,
    update_best,
    valid_batches,
)


@pytest.fixture
def parts(tiny_config):
    config = tiny_config()
    data, engine = open_data(config, ("parallel",)), Engine(config.run)
    objective = build_objective(config, data.vocabulary).train()
    batches = MicroBatches(config, data.train, objective.encoder.max_tokens, engine)
    return config, data, engine, objective, batches


def test_batches_are_whole_and_do_not_change(parts):
    config, data, _, _, batches = parts
    first, again = (valid_batches(config, data, batches) for _ in range(2))
    assert [batch.a.batch_size for batch in first] == [16, 16]  # valid_pairs = 32
    assert all(torch.equal(x.a.input_ids, y.a.input_ids) for x, y in zip(first, again, strict=True))


@pytest.mark.parametrize(
    ("devices", "micro"), [(1, None), (1, 2), (1, 8), (2, None), (2, 4), (4, 1)]
)
def test_they_are_the_same_for_all_devices_and_micro_batches(parts, devices, micro):
    config, data, engine, objective, batches = parts
    expected = measure_validation(
        objective, valid_batches(config, data, batches), engine, evaluate=None, step=0
    ).metrics
    other = config.replace_run(micro_batch_size=micro)
    of_many = SimpleNamespace(rank=0, world_size=devices, device=engine.device)
    shared = valid_batches(
        other, data, MicroBatches(other, data.train, objective.encoder.max_tokens, of_many)
    )
    assert measure_validation(objective, shared, engine, evaluate=None, step=0).metrics == expected


def test_their_size_can_be_set(tiny_table):
    tiny_table["data"]["valid_batch_size"] = 8
    config = train_config_from(tiny_table)
    data, engine = open_data(config, ("parallel",)), Engine(config.run)
    found = valid_batches(config, data, MicroBatches(config, data.train, 120, engine))
    assert [batch.a.batch_size for batch in found] == [8] * 4
    assert engine.resolve_hardware(config).data.valid_batch_size == 8


def test_pairs_are_validated_on_as_they_are(tiny_table, prepared, word_vocabulary, tmp_path):
    shutil.copytree(prepared, tmp_path / "uneven")
    shutil.rmtree(tmp_path / "uneven" / "valid")
    size, digest = word_vocabulary.size, word_vocabulary.digest()
    with TokenStoreWriter(
        tmp_path / "uneven" / "valid", vocabulary_size=size, vocabulary_digest=digest
    ) as writer:
        writer.append(("deu_Latn", "eng_Latn"), [[6]] * 28, [[90]] * 28)
        writer.append(("rus_Cyrl", "eng_Latn"), [[50]] * 4, [[91]] * 4)
    tiny_table["data"] |= {
        "corpus": str(tmp_path / "uneven"),
        "temperature": 100.0,
        "caps": {"max_pairs": 5},
    }
    config = train_config_from(tiny_table)
    data = open_data(config, ("parallel",))
    fixed = valid_batches(config, data, MicroBatches(config, data.train, 120, Engine(config.run)))
    assert sum(batch.a.languages.count("deu_Latn") for batch in fixed) == 28


def test_no_validation_pairs(parts):
    config, data, engine, objective, batches = parts
    assert valid_batches(config, data._replace(valid={}), batches) == []
    measured = measure_validation(
        objective, [], engine, evaluate=lambda encoder, step: {"own": step / 2}, step=3
    )
    assert measured == ({"own": 1.5}, None)


def test_loss_is_the_mean_over_batches_without_dropout(parts):
    config, data, engine, objective, batches = parts
    fixed = valid_batches(config, data, batches)
    seen = []
    metrics, spread = measure_validation(
        objective,
        fixed,
        engine,
        evaluate=lambda encoder, step: seen.append(encoder.training) or {},
        step=3,
    )
    assert objective.training
    assert seen == [False]
    objective.eval()
    with torch.no_grad():
        losses = [objective(batch).loss.item() for batch in fixed]
        embeddings = torch.cat([objective.encoder(batch.a) for batch in fixed])
    assert metrics["valid_loss"] == pytest.approx(sum(losses) / 2, rel=1e-6)
    assert metrics["valid_xtr"] + metrics["valid_contrastive"] == pytest.approx(
        metrics["valid_loss"], rel=1e-6
    )
    normal = torch.nn.functional.normalize(embeddings, dim=1)
    cosines = (normal @ normal.T)[~torch.eye(32, dtype=torch.bool)]
    assert spread.mean_cosine == pytest.approx(cosines.mean().item(), rel=1e-4)
    assert metrics["embedding_mean_cosine"] == spread.mean_cosine


def test_measuring_alone_gathers_from_nobody(parts):
    config, data, engine, objective, batches = parts
    fixed = valid_batches(config, data, batches)

    def gather(tensor):
        raise AssertionError("the other processes are waiting elsewhere")

    objective.all_gather = gather
    object.__setattr__(objective, "config", type(objective.config)(negatives="processes"))
    measure_validation(objective, fixed, engine, evaluate=None, step=1)
    assert objective.all_gather is gather


@pytest.mark.parametrize(
    ("name", "greater", "values", "best"),
    [
        ("valid_loss", None, [3.0, 2.0, 2.5], [1, 1, 0]),
        ("accuracy", None, [0.1, 0.3, 0.2], [1, 1, 0]),
    ],
)
def test_the_best_by_name(tiny_config, name, greater, values, best):
    run = tiny_config(
        metric_for_best_model=name, greater_is_better=greater, early_stopping_patience=2
    ).run
    state = TrainState()
    found = []
    for step, value in enumerate(values):
        state.step = step
        found.append(update_best(state, {name: value}, run))
    assert found == [bool(b) for b in best]
    assert (state.best_step, state.best_metric, state.evaluations_since_best) == (1, values[1], 1)
    assert not out_of_patience(state, run)
    update_best(state, {name: values[1]}, run)  # as good is not better
    assert out_of_patience(state, run)


def test_direction_can_be_said(tiny_config):
    run = tiny_config(metric_for_best_model="rank", greater_is_better=False).run
    assert update_best(TrainState(best_metric=2.0), {"rank": 1.0}, run)
    assert not out_of_patience(TrainState(evaluations_since_best=99), run)


def test_the_loss_decides_where_the_metric_is_saturated(tiny_config):
    run = tiny_config(metric_for_best_model="accuracy").run
    state = TrainState()
    found = []
    for step, (value, loss) in enumerate([(1.0, 2.0), (1.0, 1.5), (0.9, 1.0), (1.0, 1.7)]):
        state.step = step
        found.append(update_best(state, {"accuracy": value, "valid_loss": loss}, run))
    assert found == [True, True, False, False]
    assert (state.best_step, state.best_metric, state.best_loss) == (1, 1.0, 1.5)
    # Below its bound only the metric decides.
    assert update_best(TrainState(best_metric=0.9, best_loss=2.0), {"accuracy": 0.95}, run)
    assert not update_best(
        TrainState(best_metric=0.9, best_loss=2.0), {"accuracy": 0.9, "valid_loss": 1.0}, run
    )


@pytest.mark.parametrize(
    ("metrics", "named"),
    [
        ({"accuracy": 1.0, "valid_loss": 2.0}, "valid_loss"),
        ({"accuracy": 1.0}, "the start"),
        ({"accuracy": 0.99, "valid_loss": 2.0}, None),
    ],
)
def test_a_metric_that_is_saturated_at_the_start_is_told(tiny_config, metrics, named):
    told = saturation_warning(metrics, tiny_config(metric_for_best_model="accuracy").run)
    assert (told is None) == (named is None)
    assert named is None or (named in told and "metric_for_best_model" in told)


def test_a_metric_that_is_not_measured(tiny_config):
    with pytest.raises(ConfigError, match=r"'bleu' .*: valid_loss"):
        update_best(
            TrainState(), {"valid_loss": 1.0}, tiny_config(metric_for_best_model="bleu").run
        )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("greater", [True, False])
def test_what_is_no_number_is_never_the_best(tiny_config, value, greater):
    run = tiny_config(metric_for_best_model="own", greater_is_better=greater).run
    state = TrainState(step=1)
    assert not update_best(state, {"own": value}, run)
    assert (state.best_step, state.best_metric, state.evaluations_since_best) == (None, None, 1)
    assert update_best(state, {"own": 3.0}, run)


class Told:
    names = ("own",)

    def __call__(self, model, step):
        raise AssertionError("what it measures is known")


@pytest.mark.parametrize("name", ["own", "valid_loss", "valid_xtr", "embedding_std"])
def test_metrics_that_will_be_measured(parts, tiny_config, name):
    config, data, engine, objective, batches = parts
    fixed = valid_batches(config, data, batches)
    check_metric(
        objective,
        fixed,
        engine,
        evaluate=Told(),
        config=tiny_config(metric_for_best_model=name).run,
    )


def test_metrics_that_will_not(parts, tiny_config):
    config, data, engine, objective, batches = parts
    fixed, run = valid_batches(config, data, batches), tiny_config(metric_for_best_model="foo").run
    with pytest.raises(ConfigError, match=r"'foo' .*: valid_loss, .*embedding_std.*, own$"):
        check_metric(objective, fixed, engine, evaluate=Told(), config=run)
    with pytest.raises(ConfigError, match=r"'foo' .*: valid_loss"):
        check_metric(objective, fixed, engine, evaluate=None, config=run)
    check_metric(objective, fixed, engine, evaluate=lambda model, step: {"foo": 1.0}, config=run)
    with pytest.raises(ConfigError, match=r"'valid_loss' .*: none"):
        check_metric(objective, [], engine, evaluate=None, config=config.run)
