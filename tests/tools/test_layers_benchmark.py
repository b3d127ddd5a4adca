"""The comparison of executors by shape of layers."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from interlingua.kernels import library

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.skipif(library("layers") is None, reason="needs the compiled kernel")
def test_every_dtype_has_a_ratio_and_nothing_is_remembered(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    layers = importlib.import_module("layers")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(layers, "MODELS", {"tiny": ("modernbert", 64, 2, 96)})
    layers.main()
    rates, ratios = capsys.readouterr().out.split("\n\n")
    assert [line.split(":")[0] for line in rates.splitlines()] == [
        "tiny, float32",
        "tiny, bfloat16",
        "tiny, int8",
    ]
    for line, found in zip(ratios.splitlines()[1:], rates.splitlines(), strict=True):
        assert line.startswith(found.split(":")[0])
        assert float(line.split()[-1]) > 0
    assert not list(tmp_path.iterdir())
