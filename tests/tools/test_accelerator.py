from __future__ import annotations

import json
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
    assert {"attention float32", "attention float16", "attention bfloat16"} <= set(found["checks"])
    assert {"encode tiny", "train mexma tiny", "train infonce tiny", "mining"} <= set(
        found["measures"]
    )
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


def test_without_cuda_it_exits_2(capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert benchmark.main([]) == 2
    assert "no CUDA device here" in capsys.readouterr().err
