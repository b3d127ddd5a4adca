from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path

import pytest
import torch
from benchmarks import accelerator as benchmark

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.filterwarnings("ignore")  # of torch about its own parts, as it compiles
def test_every_part_runs_small_on_the_cpu(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(benchmark, "_sentence_transformers", lambda *_: None)  # slow to import
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    assert (
        benchmark.main(["--device", "cpu", "--tiny", "--json", str(tmp_path / "found.json")]) == 0
    )
    found = json.loads((tmp_path / "found.json").read_text())
    assert all(holds for holds, _ in found["checks"].values())
    assert {"resume", "topk", "encode float32", "encode bfloat16", "methods anchor"} <= set(
        found["checks"]
    )
    assert {"methods anchor bfloat16", "compile infonce", "compile infonce bfloat16"} <= set(
        found["checks"]
    )
    assert {"attention float32", "attention float16", "attention bfloat16"} <= set(found["checks"])
    trained = {f"train {method} tiny" for method in ("mexma", "infonce", "labse")}
    assert {"encode tiny", "mining", *trained, "train labse tiny, compiled"} <= set(
        found["measures"]
    )
    assert found["stopped"] == []
    assert "0 fail" in capsys.readouterr().out


def test_attention_that_is_off_fails_its_check(capsys, monkeypatch):
    attended = benchmark._attended

    def off(*given):
        context, gradient = attended(*given)
        return [context, gradient * 1.01]

    monkeypatch.setattr(benchmark, "_attended", off)
    assert benchmark.main(["--device", "cpu", "--tiny", "--only", "attention"]) == 1
    assert "FAILED attention float32: groups of equal length" in capsys.readouterr().out


def test_a_part_that_fails_is_reported_and_the_others_go_on(capsys, monkeypatch):
    def broken(report):
        raise RuntimeError("the device is on fire")

    monkeypatch.setitem(benchmark.PARTS, "methods", broken)
    assert benchmark.main(["--device", "cpu", "--tiny", "--only", "methods,topk"]) == 1
    shown = capsys.readouterr().out
    assert "FAILED methods: RuntimeError: the device is on fire" in shown
    assert "ok     topk" in shown


def test_parts_that_would_begin_too_late_are_left_out(capsys):
    assert benchmark.main(["--device", "cpu", "--tiny", "--only", "topk", "--seconds", "0"]) == 0
    assert "topk is left out" in capsys.readouterr().out


def test_a_part_is_stopped_when_its_share_of_the_time_is_over(capsys, monkeypatch):
    ended = []

    def endless(report):
        # The part `methods` continues after a method that fails.
        for _ in range(1000):
            with contextlib.suppress(Exception):
                time.sleep(60)

    monkeypatch.setitem(benchmark.PARTS, "encode", endless)
    monkeypatch.setitem(benchmark.PARTS, "mining", ended.append)
    monkeypatch.setitem(benchmark.SHARES, "encode", 1)
    report = benchmark.Report(torch.device("cpu"), tiny=True)
    before = signal.getsignal(signal.SIGALRM)
    benchmark._run_parts(report, ["encode", "mining"], 60.0)
    assert report.stopped == ["encode"]
    assert ended == [report]
    assert "encode is stopped" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_all_parts_have_a_share_of_nine_minutes():
    assert benchmark.SHARES.keys() == benchmark.PARTS.keys()
    assert sum(benchmark.SHARES.values()) == 540


@pytest.mark.parametrize(
    ("factor", "holds"), [(1.05, True), (0.95, True), (1.1, False), (float("nan"), False)]
)
def test_gradients_in_bfloat16_may_change_as_the_cpus(factor, holds):
    expected = 2.0, {"w": torch.ones(8)}
    rounded = 2.01, {"w": torch.full((8,), 1.01)}
    report = benchmark.Report(torch.device("cpu"), tiny=True)
    found = 2.0, {"w": torch.full((8,), factor)}
    benchmark._check_gradients(report, "w", expected, found, rounded)
    benchmark._check_gradients(report, "exact", expected, found)
    assert (report.checks["w"][0], report.checks["exact"][0]) == (holds, False)


def test_a_batch_too_large_for_the_memory_is_left_out(capsys, monkeypatch):
    measured = []

    def measure(report, method, shape, rate):
        if method == "labse":
            raise torch.OutOfMemoryError
        measured.append((method, shape))

    monkeypatch.setattr(benchmark, "_measure_steps", measure)
    benchmark.train(benchmark.Report(torch.device("cpu"), tiny=True))
    assert measured == [("mexma", "tiny"), ("infonce", "tiny")]
    assert "train labse tiny does not fit into memory" in capsys.readouterr().out


def test_targets_stand_next_to_what_was_measured(capsys):
    report = benchmark.Report(torch.device("cpu"), tiny=False, peak=100.0)
    report.measures = {
        "train mexma large": report.shares(44.0, rate=80.0),
        "train infonce large, compiled": {"utilization": 0.5},
        "encode large": {"times_sentence_transformers": 9.0},
        "mining": {"seconds": 61.0},
    }
    benchmark.show_targets(report)
    found = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert found == [
        "train mexma large: share of the rate 0.44 target >= 0.45 MISSED",
        "train infonce large, compiled: share of the rate 0.5 target >= 0.45 met,"
        " of the measured rate",
        "encode large / sentence-transformers 9 target >= 2 met",
        "mining a million by a million: seconds 61 target <= 60 MISSED",
    ]


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989.4e12),
        ("NVIDIA H200", 989.4e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
    ],
)
def test_peaks_are_those_of_whole_known_devices(name, peak):
    assert benchmark._peak(name) == peak


def test_without_cuda_it_exits_2(capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert benchmark.main([]) == 2
    assert "no CUDA device here" in capsys.readouterr().err
