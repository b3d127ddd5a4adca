"""The checks of ``benchmarks/accelerator.py`` on a simulated GPU."""

from __future__ import annotations

import pytest
import torch
from benchmarks import accelerator as benchmark

from interlingua.config.registry import METHODS
from interlingua.errors import ConfigError
from interlingua.runtime.fusion import switch
from tests.accelerator.simulated import CUDA, Device


def test_every_method_passes_in_float32_and_under_bfloat16(cuda: Device, monkeypatch):
    gradients = benchmark._gradients

    def of_device(method, device, **how):
        cuda.differentiates_on_host = device == "cpu"
        return gradients(method, device, **how)

    monkeypatch.setattr(benchmark, "_gradients", of_device)
    report = benchmark.Report(CUDA, tiny=False)
    with cuda.recorded():
        benchmark.methods(report)
    assert {name for name, (holds, _) in report.checks.items() if not holds} == set()
    kinds = ("", " bfloat16")
    assert set(report.checks) == {f"methods {name}{kind}" for name in METHODS for kind in kinds}
    assert cuda.launches["aten::_flash_attention_forward"]


@pytest.mark.parametrize("wrong", [1.0, 1.1])
def test_attention_is_checked_with_flash_and_without(cuda: Device, monkeypatch, wrong):
    attended = benchmark._attended

    def off(qkv, layout, heads):
        context, gradient = attended(qkv, layout, heads)
        return [context, gradient * (wrong if layout.by_length is None else 1.0)]

    monkeypatch.setattr(benchmark, "_attended", off)
    report = benchmark.Report(CUDA, tiny=True)
    with cuda.recorded():
        benchmark.attention(report)
    holds = {name: check[0] for name, check in report.checks.items()}
    assert holds == {
        "attention float32": True,
        "attention float16": True,
        "attention float16 flash": wrong == 1.0,
        "attention bfloat16": True,
        "attention bfloat16 flash": wrong == 1.0,
    }
    assert report.checks["attention bfloat16"][1].startswith("one kernel")
    assert set(report.measures) == set(holds)


def test_all_measures_are_taken_without_a_compiler_too(cuda: Device, monkeypatch, capsys):
    def no_compiler(*, on, device):
        if on:
            raise ConfigError("no compiler")

    monkeypatch.setattr(switch, "set", no_compiler)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(benchmark, "_sentence_transformers", lambda *_: None)
    report = benchmark.Report(CUDA, tiny=True, peak=1e15)
    with cuda.recorded():
        benchmark._run_parts(report, ["topk", "encode", "train", "mining"], 540)
    assert {name for name, (holds, _) in report.checks.items() if not holds} == set()
    assert "encode tf32" in report.checks
    trained = {f"train {method} tiny" for method in benchmark.BATCHES}
    assert set(report.measures) == {"device", "encode tiny", "mining", *trained}
    for name in ("encode tiny", *trained):
        assert 0 < report.measures[name]["of_peak"] < 1
    assert capsys.readouterr().out.count("no compiler") == len(trained)
