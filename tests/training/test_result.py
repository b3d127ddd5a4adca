import time

import pytest

from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.training.checkpoint import TrainState
from interlingua.training.log import RunLog
from interlingua.training.result import Clock, TrainResult, read_run_result
from interlingua.training.run_folder import RunFolder


def batch(lengths):
    side = TokenBatch.from_lists([[3] * length for length in lengths], ["eng_Latn"] * len(lengths))
    return ParallelBatch(side, side, step=0)


def test_clock_counts_steps_and_leaves_the_rest_out(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    clock = Clock(TrainState(seconds=50.0))
    now[0] += 2
    clock.count([batch([1, 2]), batch([3])], world_size=2)  # 6 pairs, 24 tokens in 2 s
    now[0] += 10
    clock.leave_out()  # an evaluation
    now[0] += 1
    assert clock.rates() == {"pairs_per_second": 3.0, "tokens_per_second": 12.0}
    clock.count([batch([4])], world_size=1)
    assert clock.rates() == {"pairs_per_second": 1.0, "tokens_per_second": 8.0}
    assert clock.rates() == {"pairs_per_second": 0.0, "tokens_per_second": 0.0}
    assert clock.total_rates()["pairs_per_second"] == pytest.approx(7 / 3)
    assert clock.seconds == 63.0


def test_a_finished_run_is_read_back(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.model.mkdir(parents=True)
    result = TrainResult(
        run=folder.path, step=7, max_steps=9, model=folder.model, metrics={"valid_loss": 1.5}
    )
    assert read_run_result(folder) is None
    with RunLog(folder.metrics, max_steps=9, progress=False) as log:
        log.final(7, result.to_record())
    assert read_run_result(folder) == result
    folder.model.rmdir()
    assert read_run_result(folder) is None


def test_processor_time_of_steps_alone(monkeypatch):
    times = iter([10.0, 12.0, 20.0, 21.0])
    monkeypatch.setattr("interlingua.training.result.time.process_time", lambda: next(times))
    clock = Clock(TrainState(cpu_seconds=5.0))  # at 10
    clock.count([batch([1, 2])], world_size=2)  # two processes took 2 s each
    clock.leave_out()  # an evaluation until 20
    clock.count([batch([1, 2])], world_size=1)
    assert clock.cpu_seconds == 5 + 2 * 2 + 1
