"""The run as a whole: the files that it writes, and that an interrupted run resumes with the same
result."""

import json
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.executors import training_passes
from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.kernels import calls
from interlingua.methods.ems import EMS
from interlingua.storage.formats import RUN
from interlingua.storage.record import read_record, write_record
from interlingua.training import config as configs
from interlingua.training.build import build_objective
from interlingua.training.checkpoint import checkpoints_in
from interlingua.training.config import load_train_config, train_config_from
from interlingua.training.feeds.open_feeds import open_data
from interlingua.training.log import NotFiniteError
from interlingua.training.loop import run_training
from interlingua.training.machine import memory
from tests.training.runs import digest, losses, newest, records, stop_at

GOLDEN = Path(__file__).parent.parent / "golden" / "loop.json"


@pytest.fixture
def uninterrupted(tiny_config, tmp_path):
    """Digest and losses of the uninterrupted run."""
    run = run_training(tiny_config(output=str(tmp_path / "whole")), progress=False).run
    return digest(run), losses(run)


def test_the_folder_offers_the_function():
    import interlingua.training as folder

    assert folder.run_training is run_training
    assert (folder.TrainConfig, folder.load_train_config) == (
        configs.TrainConfig,
        configs.load_train_config,
    )
    with pytest.raises(AttributeError, match="attribute 'trian'"):
        _ = folder.trian


def test_what_a_run_leaves(tiny_config):
    config = tiny_config(save_total_limit=1)
    result = run_training(
        config, evaluate=lambda encoder, step: {"own": float(step)}, progress=False
    )
    run = config.run.output
    assert (result.step, result.max_steps, result.interrupted) == (12, 12, False)
    assert [record["step"] for record in records(run, "train")] == list(range(1, 13))
    assert [(record["step"], record["own"]) for record in records(run, "evaluation")] == [
        (6, 6.0),
        (12, 12.0),
    ]
    assert [path.name for path in checkpoints_in(run / "checkpoints")] == ["step-00000012"]
    for record in records(run, "train"):
        assert record["loss"] == pytest.approx(record["xtr"] + record["contrastive"], rel=1e-6)
    assert sum(result.exposure.values()) == 12 * 16
    assert result.metrics["own"] == 12.0
    assert result.pairs_per_second > 0
    saved = checkpoints_in(run / "checkpoints")[-1]
    model = Encoder.load(result.model)
    weights = {name: tensor for name, tensor in _read(saved).items() if name.startswith("encoder.")}
    assert all(
        torch.equal(weights[f"encoder.{name}"], tensor)
        for name, tensor in model.state_dict().items()
    )
    assert result.best_step in (6, 12)
    assert Encoder.load(result.best).dim == 32


def _read(checkpoint):
    return load_file(checkpoint / "model.safetensors")


def test_loss_curve_of_ems_is_as_it_was(tiny_config):
    """Run twenty steps in float32 on one thread. `UPDATE_GOLDEN=1` writes them again."""
    torch.manual_seed(123)  # must not matter
    config = tiny_config(max_steps=20, eval_steps=20, save_steps=20)
    run_training(config, progress=False)
    curve = records(config.run.output, "train")
    found = [{name: record[name] for name in ("loss", "xtr", "contrastive")} for record in curve]
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    expected = json.loads(GOLDEN.read_text())
    assert len(found) == len(expected) == 20
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-4)


def test_what_a_step_needs_is_made_in_the_thread_of_the_batches(tiny_config, monkeypatch):
    calls = set()
    prepare = EMS.prepare

    def noted(self, batch):
        calls.add((threading.current_thread().name, self.training))
        return prepare(self, batch)

    monkeypatch.setattr(EMS, "prepare", noted)
    run_training(tiny_config(), progress=False)
    # Validation batches, of which the main thread has a few, are made when they are measured.
    assert ("prefetch", True) in calls
    assert ("MainThread", True) not in calls


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_the_same_call_goes_on(tiny_config, uninterrupted, number):
    config = tiny_config()
    result = run_training(config, evaluate=stop_at(6, number), progress=False)
    assert (result.interrupted, result.step, result.model) == (True, 6, None)
    assert newest(config.run.output).name == "step-00000006"
    result = run_training(config, progress=False)
    assert (result.interrupted, result.step) == (False, 12)
    assert (digest(config.run.output), losses(config.run.output)) == uninterrupted


def test_a_resumed_run_keeps_the_executor_of_its_first_trial(tiny_config, monkeypatch):
    used = []

    def interrupt(encoder, step):
        used.append(calls.chosen.executor)
        return stop_at(6)(encoder, step)

    monkeypatch.setattr(training_passes, "runs_here", lambda: True)
    monkeypatch.setattr(training_passes, "is_kernel_preferred", lambda: False)
    config = tiny_config()
    assert config.run.executor == "auto"
    assert run_training(config, evaluate=interrupt, progress=False).interrupted
    monkeypatch.setattr(training_passes, "is_kernel_preferred", lambda: True)
    for same in (config, load_train_config(config.run.output / "config.toml")):
        assert not run_training(same, evaluate=interrupt, progress=False).interrupted
    assert set(used) == {"torch"}
    run_training(config, evaluate=interrupt, resume="never", progress=False)
    assert used[-1] == "kernel"


def test_ctrl_c_in_the_last_step_is_too_late(tiny_config):
    assert not run_training(tiny_config(), evaluate=stop_at(12), progress=False).interrupted


def test_a_truncated_checkpoint_is_passed_over_with_a_warning(tiny_config, uninterrupted, capsys):
    config = tiny_config()
    run_training(config, progress=False)
    last = newest(config.run.output)
    (last / "optimizer.safetensors").write_bytes(b"\0" * 10)
    (config.run.output / "metrics.jsonl").write_text("")  # the run did not get to its last record
    run_training(config, progress=False)
    assert "step-00000012 cannot be used (optimizer.safetensors" in capsys.readouterr().err
    assert digest(config.run.output) == uninterrupted[0]


def test_a_finished_run_is_not_run_again(tiny_config):
    config = tiny_config()
    first = run_training(config, progress=False)
    before = (config.run.output / "metrics.jsonl").read_text()
    again = run_training(config, progress=False)
    assert again == first
    assert (again.already, first.already) == (True, False)
    assert (config.run.output / "metrics.jsonl").read_text() == before


def test_another_config_in_the_same_folder(tiny_config, tiny_table):
    run_training(tiny_config(), progress=False)
    with pytest.raises(ConfigError, match=r"run\.seed \(0, 1\)"):
        run_training(tiny_config(seed=1), progress=False)
    tiny_table["method"]["temperature"] = 0.5
    with pytest.raises(ConfigError, match=r"method\.temperature \(0\.1, 0\.5\)"):
        run_training(train_config_from(tiny_table), progress=False)
    assert run_training(tiny_config(seed=1), resume="never", progress=False).step == 12


def test_from_a_named_checkpoint_into_another_folder(tiny_config, tmp_path, uninterrupted):
    config = tiny_config(save_total_limit=9)
    straight = run_training(config, progress=False)
    elsewhere = tiny_config(output=str(tmp_path / "elsewhere"))
    resumed = run_training(
        elsewhere, resume=config.run.output / "checkpoints" / "step-00000004", progress=False
    )
    assert resumed.tokens == straight.tokens > 0
    assert digest(elsewhere.run.output) == uninterrupted[0]
    assert records(elsewhere.run.output, "train")[0]["step"] == 5


def test_a_term_that_is_not_finite_stops_the_run(tiny_config, monkeypatch):
    config = tiny_config()
    whole = EMS.forward

    def broken(self, batch):
        batch = self.prepared(batch)  # validation batches come bare
        output = whole(self, batch)
        if batch.batch.step < 9:
            return output
        terms = {**output.terms, "contrastive": output.terms["contrastive"] * float("nan")}
        return output._replace(loss=output.loss * float("nan"), terms=terms)

    monkeypatch.setattr(EMS, "forward", broken)
    with pytest.raises(NotFiniteError, match=r"contrastive is nan in step 10; .*step-00000008"):
        run_training(config, progress=False)
    assert all(tensor.isfinite().all() for tensor in _read(newest(config.run.output)).values())


def test_memory_is_kept_from_step_to_step_and_given_back_whatever_ends_the_run(
    tiny_config, monkeypatch
):
    asked = []

    class Library:
        def mallopt(self, which, value):
            asked.append((which, value))

        def malloc_trim(self, padding):
            asked.append("trim")

    def stops(self, batch):
        assert asked == [(memory.M_MMAP_MAX, 0), (memory.M_TRIM_THRESHOLD, -1)]
        raise DataError("the end")

    monkeypatch.setattr(memory, "_glibc", Library)
    monkeypatch.setattr(EMS, "forward", stops)
    with pytest.raises(DataError, match="the end"):
        run_training(tiny_config(), progress=False)
    assert asked[2:] == [*memory.USUAL.items(), "trim"]


def test_early_stopping(tiny_config):
    config = tiny_config(metric_for_best_model="own", eval_steps=2, early_stopping_patience=2)
    values = {2: 1.0, 4: 3.0, 6: 2.0, 8: 3.0, 10: 9.0}
    result = run_training(
        config, evaluate=lambda encoder, step: {"own": values[step]}, progress=False
    )
    assert (result.step, result.best_step, result.best_metric) == (8, 4, 3.0)
    assert result.model.is_dir()
    names = [path.name for path in checkpoints_in(config.run.output / "checkpoints")]
    assert names == ["step-00000004", "step-00000008"]


def test_best_is_the_model_of_that_step(tiny_config):
    config = tiny_config(metric_for_best_model="own", save_total_limit=1, eval_steps=4)
    values = {4: 1.0, 8: 0.5, 12: 0.2}
    result = run_training(
        config, evaluate=lambda encoder, step: {"own": values[step]}, progress=False
    )
    kept = config.run.output / "checkpoints" / "step-00000004"
    weights = _read(kept)
    best = Encoder.load(result.best).state_dict()
    assert all(torch.equal(weights[f"encoder.{name}"], tensor) for name, tensor in best.items())


def test_a_checkpoint_that_does_not_fit_the_disk(tiny_config, monkeypatch):
    import interlingua.training.checkpoint as module

    config, save = tiny_config(), module.write_safetensors

    def full(path, tensors):
        if "step-00000008" in str(path):
            raise OSError(28, "No space left on device")
        save(path, tensors)

    monkeypatch.setattr(module, "write_safetensors", full)
    with pytest.raises(CheckpointError, match=r"No space .*step 4"):
        run_training(config, progress=False)
    monkeypatch.undo()
    assert run_training(config, progress=False).step == 12


def test_a_teacher_moves_after_the_step_of_the_optimizer(tiny_table):
    tiny_table["method"] = {"name": "calibrated", "decay": 0.75, "decay_steps": 0}
    tiny_table["run"] |= {"max_steps": 1, "save_steps": 1}
    config = train_config_from(tiny_table)
    run_training(config, progress=False)
    data = open_data(config, ("parallel",))
    first = dict(build_objective(config, data.vocabulary).encoder.named_parameters())
    ended = _read(newest(config.run.output))
    for name, weight in first.items():
        student, teacher = ended[f"encoder.{name}"], ended[f"teacher.encoder.{name}"]
        torch.testing.assert_close(
            teacher, 0.75 * weight.detach() + 0.25 * student, rtol=1e-6, atol=1e-7
        )
    assert any(not torch.equal(ended[f"encoder.{name}"], weight) for name, weight in first.items())


def test_a_shorter_run_keeps_the_products_of_rate_and_decay_with_its_length_and_says_so(
    tiny_table, capsys
):
    tiny_table["method"] = {"name": "calibrated", "decay": 0.99, "decay_steps": 40}
    tiny_table["optimizer"] = {
        "name": "lars",
        "learning_rate": 0.02,
        "learning_rate_steps": 40,
        "weight_decay": 0.0,
    }
    tiny_table["schedule"] = {"name": "constant", "warmup_steps": 0}
    tiny_table["run"] |= {"max_steps": 4}
    config = train_config_from(tiny_table)
    run_training(config, progress=True)
    assert [
        record["learning_rate"] for record in records(config.run.output, "train")
    ] == pytest.approx([0.2] * 4)
    told = capsys.readouterr().err
    assert "(1 - decay) * steps = 0.4 is kept, so 0.99 for 40 steps becomes 0.9 for 4" in told
    assert "learning_rate * steps = 0.8 is kept, so 0.02 for 40 steps becomes 0.2 for 4" in told


def test_a_step_is_no_longer_than_the_clipped_gradient(tiny_table):
    tiny_table["optimizer"] = {"name": "lars", "learning_rate": 1.0}
    tiny_table["schedule"] = {"name": "constant", "warmup_steps": 0}
    tiny_table["run"] |= {"max_steps": 1, "save_steps": 1, "max_grad_norm": 1e-3}
    config = train_config_from(tiny_table)
    run_training(config, progress=False)
    data = open_data(config, ("parallel",))
    first = build_objective(config, data.vocabulary).named_parameters()
    ended = _read(newest(config.run.output))
    moved = [
        (ended[name] - weight.detach()).flatten() for name, weight in first if weight.ndim < 2
    ]  # not scaled
    assert 0 < torch.cat(moved).norm() <= 1.001e-3
    assert records(config.run.output, "train")[0]["grad_norm"] > 0.1


def test_a_budget_is_fixed_once(tiny_config):
    config = tiny_config(
        max_steps=None, budget_seconds=6, logging_steps=0.5, eval_steps=0.5, save_steps=0.5
    )

    def interrupt(encoder, step):
        if step:  # that of step 0 is timed
            os.kill(os.getpid(), signal.SIGINT)
        return {}

    first = run_training(config, evaluate=interrupt, progress=False)
    assert first.interrupted or first.max_steps == 1
    second = run_training(config, progress=False)
    assert second.max_steps == second.step == first.max_steps


def test_a_checkpoint_never_holds_what_is_no_number(tiny_config, tiny_table):
    """Check the weights themselves. The loss of a step is of the weights before it."""
    tiny_table["optimizer"]["learning_rate"], tiny_table["schedule"]["warmup_steps"] = 1e38, 0
    config = train_config_from(tiny_table).replace_run(save_steps=1, logging_steps=50, eval_steps=1)
    with pytest.raises(NotFiniteError, match=r"weight .*step 1; .*no checkpoint"):
        run_training(config, progress=False)
    assert checkpoints_in(config.run.output / "checkpoints") == []
    assert not (config.run.output / "best").exists()
    with pytest.raises(NotFiniteError, match=r"infinity .*step 1"):
        run_training(config.replace_run(eval_steps=12), resume="never", progress=False)
    assert checkpoints_in(config.run.output / "checkpoints") == []


def test_means_go_on_over_an_interruption(tiny_config, tmp_path):
    whole, config = (
        tiny_config(output=str(tmp_path / name), logging_steps=5) for name in ("whole", "stopped")
    )
    run_training(whole, progress=False)
    assert run_training(config, evaluate=stop_at(6), progress=False).step == 6
    run_training(config, progress=False)
    assert losses(config.run.output) == losses(whole.run.output)


def test_an_unknown_metric_is_found_before_the_first_step(tiny_config):
    config = tiny_config(metric_for_best_model="foo")
    with pytest.raises(ConfigError, match=r"'foo' .*measured"):
        run_training(config, progress=False)
    assert not (config.run.output / "metrics.jsonl").exists()


@pytest.fixture
def stopped(tiny_table, prepared, tmp_path):
    """A run stopped after step 6, on a corpus of its own."""
    shutil.copytree(prepared, tmp_path / "corpus")
    tiny_table["data"]["corpus"] = str(tmp_path / "corpus")
    config = train_config_from(tiny_table)
    assert run_training(config, evaluate=stop_at(6), progress=False).step == 6
    return config, tmp_path / "corpus"


def test_changed_bytes_of_the_corpus_are_noticed(stopped):
    config, corpus = stopped
    tokens = bytearray((corpus / "train" / "tokens.bin").read_bytes())
    tokens[0], tokens[2] = tokens[2], tokens[0] + 1
    (corpus / "train" / "tokens.bin").write_bytes(tokens)
    with pytest.raises(DataError, match=r"tokens\.bin: .*digest"):
        run_training(config, progress=False)


def test_a_changed_corpus_is_noticed_before_the_first_step(tiny_table, prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "corpus")
    tiny_table["data"]["corpus"] = str(tmp_path / "corpus")
    path = tmp_path / "corpus" / "train" / "tokens.bin"
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(DataError, match=r"tokens\.bin: .*digest"):
        run_training(train_config_from(tiny_table), progress=False)
    assert not (tmp_path / "run").exists()


def test_a_second_run_in_the_folder_is_refused(tiny_config):
    """Start in the middle of the first one. A's weights are never stored with B's config."""
    config, refused = tiny_config(), []

    def second(encoder, step):
        for other in (config, tiny_config(seed=7)):
            for resume in ("auto", "never"):
                with pytest.raises(ConfigError, match=f"run is in use .*{os.getpid()}") as caught:
                    run_training(other, resume=resume, progress=False)
                refused.append(caught.value)
        return {}

    run_training(config, evaluate=second, progress=False)
    assert len(refused) == 2 * 4
    assert "seed = 0" in (config.run.output / "config.toml").read_text()
    assert not list(config.run.output.glob(".*"))


def test_changed_validation_is_noticed(stopped):
    config, corpus = stopped
    (corpus / "valid_text" / "deu-eng.tsv").write_text("ein\tone\n", encoding="utf-8")
    with pytest.raises(DataError, match="validation data"):
        run_training(config, progress=False)


def test_other_versions_are_told(stopped, capsys):
    config, _ = stopped
    path = config.run.output / "manifest.json"
    manifest = read_record(path, RUN)
    manifest["versions"]["torch"] = "1.0"
    write_record(path, RUN, manifest)
    run_training(config, progress=False)
    assert capsys.readouterr().err.count("this run began with torch 1.0") == 1


def test_the_best_model_of_another_folder_is_not_named(tiny_config, tmp_path, capsys):
    config = tiny_config(save_total_limit=9, metric_for_best_model="own")
    values = {6: 9.0, 12: 1.0}
    run_training(config, evaluate=lambda encoder, step: {"own": values[step]}, progress=False)
    elsewhere = config.replace_run(output=tmp_path / "elsewhere")
    start = config.run.output / "checkpoints" / "step-00000008"
    again = {"resume": start, "progress": True}
    result = run_training(elsewhere, evaluate=lambda encoder, step: {"own": values[step]}, **again)
    assert (result.best, result.best_step) == (None, 6)
    assert "of step 6, stays in the folder" in capsys.readouterr().err


def test_somebody_elses_folder_is_left_alone(tiny_config):
    config = tiny_config()
    mine = config.run.output / "model" / "weights"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    for resume in ("auto", "never"):
        with pytest.raises(ConfigError, match="contains other files"):
            run_training(config, resume=resume, progress=False)
    assert mine.read_text() == "mine"
