import dataclasses
import io
import json
import math

import pytest
import torch
from rich.console import Console

from interlingua.errors import DataError
from interlingua.training.checkpoint import TrainState
from interlingua.training.log import (
    Meter,
    NotFiniteError,
    RunLog,
    SilentLog,
    open_log,
    require_finite,
    warn,
)
from interlingua.training.machine.engine import Engine
from interlingua.training.run_folder import RunFolder


def tensors(**values):
    return {name: torch.tensor(value) for name, value in values.items()}


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_means_between_records(engine, tmp_path):
    meter = Meter(engine, tmp_path)
    meter.add(0, tensors(loss=3.0, xtr=1.0))
    meter.add(1, tensors(loss=5.0, xtr=2.0, grad_norm=7.0))
    assert meter.means() == {"loss": 4.0, "xtr": 1.5, "grad_norm": 7.0}
    meter.add(2, tensors(loss=6.0))
    assert meter.means() == {"loss": 6.0}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_term_that_is_not_finite_is_named(engine, tmp_path, bad):
    (tmp_path / "step-00000004").mkdir()
    (tmp_path / "step-00000004" / "state.json").touch()
    meter = Meter(engine, tmp_path)
    with pytest.raises(
        NotFiniteError, match=r"contrastive .*(nan|inf) .*step 8; .*step-00000004"
    ) as caught:
        meter.add(7, tensors(loss=bad, xtr=1.0, contrastive=bad))
    assert "learning_rate" in str(caught.value)


def test_late_reading_still_names_the_step(engine, tmp_path):
    meter = Meter(engine, tmp_path)
    meter._late = 16
    for step in range(3):
        meter.add(step, tensors(loss=math.nan if step == 1 else 1.0))
    with pytest.raises(NotFiniteError, match=r"loss is nan .*2; .*no checkpoint"):
        meter.flush()


def test_sums_go_on_where_they_were_saved(engine, tmp_path):
    meter, state = Meter(engine, tmp_path), TrainState()
    meter.add(0, tensors(loss=3.0))
    meter.save(state)
    later = Meter(engine, tmp_path)
    later.load(TrainState(**json.loads(json.dumps(dataclasses.asdict(state)))))
    later.add(1, tensors(loss=5.0))
    assert later.means() == {"loss": 4.0}
    later.save(state)
    assert (state.sums, state.counts) == ({}, {})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_weight_that_is_not_finite_is_named(engine, tmp_path, bad):
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)).requires_grad_(False)
    module[0].bias.fill_(3e38)  # large, and their squares are infinite, but each is a number
    require_finite(module, engine, tmp_path, 7)
    module[1].weight[0, 2] = bad
    (tmp_path / "step-00000004").mkdir()
    (tmp_path / "step-00000004" / "state.json").touch()
    with pytest.raises(NotFiniteError, match=r"weight 1\.weight .*step 7; .*step-00000004"):
        require_finite(module, engine, tmp_path, 7)


def test_a_full_disk_is_one_line(tmp_path):
    _, log = log_of(tmp_path / "metrics.jsonl")
    with pytest.raises(DataError, match=r"metrics\.jsonl: .*No space"), log:
        log._file.close()
        log._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
        log.train(50, {"loss": 3.0}, **RATES)


def test_records_are_dropped_in_one_go(tmp_path, monkeypatch):
    """Kill a run while it drops records: it has the old file or the new one."""
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "train", "step": 2}\n{"kind": "train", "step": 9}\n')
    before = path.stat().st_ino
    with log_of(path, step=4)[1]:
        pass
    assert path.stat().st_ino != before
    assert path.read_text() == '{"kind": "train", "step": 2}\n'
    kept = path.stat().st_ino
    with log_of(path, step=4)[1]:
        pass
    assert path.stat().st_ino == kept


def test_one_process_warns(monkeypatch, capsys):
    monkeypatch.setenv("LOCAL_RANK", "1")
    warn("w")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("RANK", "0")
    warn("w")
    assert capsys.readouterr().err == "warning: w\n"


def log_of(path, *, step=0, progress=True, terminal=False, board=None):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200, highlight=False)
    return console, RunLog(
        path, tensorboard=board, max_steps=100, step=step, progress=progress, console=console
    )


RATES = {"learning_rate": 1e-3, "pairs_per_second": 1234.0, "tokens_per_second": 9.0}


def test_lines_and_records(tmp_path):
    losses = {"loss": 3.0, "xtr": 1.0, "contrastive": 2.0, "grad_norm": 0.5}
    console, log = log_of(tmp_path / "metrics.jsonl")
    with log:
        log.advance(50)
        log.train(50, losses, **RATES)
        log.evaluation(50, {"valid_loss": 2.5, "tatoeba_accuracy": 0.9345}, best=True)
        log.final(100, {"pairs_per_second": 5.0})
    text = console.file.getvalue()
    # The time left is not known after a moment.
    assert "step 50/100 | loss 3.000 = xtr 1.000 + contrastive 2.000 | 1,234 pairs/s\n" in text
    assert "step 50 | valid_loss 2.5, tatoeba_accuracy 93.5 % | best so far" in text
    train, evaluation, final = records(tmp_path / "metrics.jsonl")
    assert train == {"kind": "train", "step": 50, **losses, **RATES}
    assert evaluation == {
        "kind": "evaluation",
        "step": 50,
        "valid_loss": 2.5,
        "tatoeba_accuracy": 0.9345,
        "best": True,
    }
    assert final == {"kind": "final", "step": 100, "pairs_per_second": 5.0}


def test_what_is_not_finite_is_null_as_json_has_no_word_for_it(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with log_of(path)[1] as log:
        log.evaluation(3, {"valid_loss": math.nan, "accuracy": 0.5}, best=False)
        log.final(9, {"metrics": {"spread": math.inf}})
    assert "NaN" not in path.read_text()
    evaluation, final = records(path)
    assert (evaluation["valid_loss"], evaluation["accuracy"], final["metrics"]) == (
        None,
        0.5,
        {"spread": None},
    )


def test_a_terminal_gets_a_bar(tmp_path):
    console, log = log_of(tmp_path / "metrics.jsonl", terminal=True)
    with log:
        log.train(50, {"loss": 3.0}, **RATES)
    assert "50 of 100 steps" in console.file.getvalue()
    assert "loss 3.000 | 1,234 pairs/s" in console.file.getvalue()


def test_quiet_still_warns(tmp_path):
    console, log = log_of(tmp_path / "metrics.jsonl", progress=False)
    with log:
        log.train(50, {"loss": 3.0}, **RATES)
        log.say("nothing")
        log.warn("the embeddings are collapsing")
    assert console.file.getvalue() == "warning: the embeddings are collapsing\n"
    assert len(records(tmp_path / "metrics.jsonl")) == 1


def test_records_after_the_checkpoint_are_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [{"kind": "train", "step": step, "loss": 1.0} for step in (2, 4, 6)] + [
        {"kind": "final", "step": 4}
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "train", "st')
    _, log = log_of(path, step=4)
    with log:
        log.train(5, {"loss": 2.0}, **RATES)
    assert [record["step"] for record in records(path)] == [2, 4, 5]


def test_tensorboard_gets_the_same_numbers(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    _, log = log_of(tmp_path / "metrics.jsonl", board=tmp_path / "board")
    with log:
        log.train(50, {"loss": 3.0}, **RATES)
    events = accumulator.EventAccumulator(str(tmp_path / "board")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [(50, 3.0)]


def test_other_processes_are_silent(tiny_config, engine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Engine, "is_main", False)
    with open_log(RunFolder(tmp_path), tiny_config(), engine, step=0, progress=True) as log:
        assert isinstance(log, SilentLog)
        log.advance(1)
        log.train(1, {"loss": 1.0}, **RATES)
        log.evaluation(1, {"valid_loss": 1.0}, best=False)
        log.warn("w")
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""
