"""What ``benchmarks/accelerator.py`` checks on a GPU, on the simulated one."""

from __future__ import annotations

import pytest
from benchmarks import accelerator as benchmark

from interlingua.registry import METHODS
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
