"""benchmarks/encode.py gives no speed under the name of a kernel that did not run."""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.executors import layers
from interlingua.encoder.executors.choice import Choice

ROOT = Path(__file__).resolve().parents[2]
ROW = {
    "sentences_per_second": 2.0,
    "tokens_per_second": 20.0,
    "roofline": 0.8,
    "cosine_mean": 1.0,
    "cosine_lowest": 1.0,
    "largest_difference": 0.0,
    "same_nearest": 1.0,
    "query_milliseconds": 3.0,
    "memory_mebibytes": 100.0,
    "stream_sentences_per_second": 2.0,
}


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    path = ROOT / "benchmarks" / "encode.py"
    spec = importlib.util.spec_from_file_location("benchmark_encode", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def loaded(benchmark, monkeypatch, engine, *, runs, executor="kernel"):
    """Return the executor and dtype of an engine on a machine that runs a variant."""
    choice = Choice(executor=executor, reason="", refused={"kernel": "not this shape"})
    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    monkeypatch.setattr("interlingua.kernels.variant", lambda name: runs)
    monkeypatch.setattr(layers, "choose_layer_executor", lambda backbone, dtype: choice)
    encoder = SimpleNamespace(backbone=None, encode=lambda texts, prompt, dtype: dtype)
    monkeypatch.setattr(Encoder, "load", lambda model: encoder)
    return benchmark.load(engine, argparse.Namespace(threads=1, model="model"))([])


def test_an_engine_is_the_variant_of_its_name_or_not_here(benchmark, monkeypatch):
    for engine in ("int8 amx", "float32 amx"):
        dtype, _, variant = engine.partition(" ")
        assert loaded(benchmark, monkeypatch, engine, runs=variant) == dtype
        for other in (None, "avx512"):
            with pytest.raises(benchmark.NotOnThisMachineError, match=variant):
                loaded(benchmark, monkeypatch, engine, runs=other)
        with pytest.raises(benchmark.NotOnThisMachineError, match="not this shape"):
            loaded(benchmark, monkeypatch, engine, runs=variant, executor="onednn")
    assert loaded(benchmark, monkeypatch, "int8", runs=None, executor="onednn") == "int8"


def test_the_process_of_an_engine_reports_first_whether_it_is_here(benchmark):
    engine = object.__new__(benchmark.Engine)
    lines = "".join(json.dumps(line) + "\n" for line in ("no kernel amx runs here", None, 1.5))
    engine.process = SimpleNamespace(stdin=io.StringIO(), stdout=io.StringIO(lines))
    assert engine.missing() == "no kernel amx runs here"
    assert engine.missing() is None
    assert engine.ask("query") == 1.5
    with pytest.raises(SystemExit, match="query"):
        engine.ask("query")


def test_what_is_missing_is_shown_and_in_no_ratio(benchmark, capsys):
    table = {"tatoeba": {"st": ROW, "int8": ROW, "onnx int8": ROW}}
    texts = {"tatoeba": benchmark.Texts(["a"], [])}
    benchmark.show(table, texts, {"tatoeba": 1}, {"int8 amx": "no kernel"}, "other")
    shown = capsys.readouterr().out
    [line] = [line for line in shown.splitlines() if "amx" in line]
    assert "not on this machine: no kernel" in line


SPEED_TARGETS = {
    "amx": {
        "float32 / sentence-transformers": 2.8,
        "bfloat16 / sentence-transformers": 7.5,
        "int8 / sentence-transformers": 9.0,
        "bfloat16 / openvino bf16": 2.0,
        "int8 / bfloat16, lowest": 1.0,
    },
    "zen": {
        "float32 / sentence-transformers": 3.5,
        "bfloat16 / sentence-transformers": 7.0,
        "int8 / sentence-transformers": 9.0,
        "bfloat16 / sentence-transformers, stream": 9.0,
        "bfloat16 / onnx": 1.3,
        "int8 / bfloat16": 1.5,
    },
    "avx2": {"bfloat16 / onnx": 1.3, "float32 / onnx": 1.3, "int8 / onnx int8": 1.0},
    "other": {"bfloat16 / onnx": 1.3},
}


@pytest.mark.parametrize("machine", SPEED_TARGETS)
def test_targets_are_those_of_the_kind_of_processor(benchmark, machine):
    engines = ("st", "onnx", "onnx int8", "openvino bf16", "float32", "bfloat16", "int8")
    others = {
        "openvino bf16": {**ROW, "sentences_per_second": 1.0},
        "onnx int8": {**ROW, "cosine_mean": 0.99, "query_milliseconds": 2.0},
    }
    table = {"tatoeba": dict.fromkeys(engines, ROW) | others}
    found = {check.words: check for check in benchmark.checks(table, machine)}
    speeds = {}
    for words, check in found.items():
        assert (check.met is None) == (check.target is None)
        # "int8 / onnx", but no memory, closeness, or "int8: one query / onnx"
        if " / " in words and ":" not in words and check.target is not None:
            speeds[words] = check.target
    assert speeds == SPEED_TARGETS[machine]
    assert found["int8: one query / onnx int8"].target == 1.0


def test_on_tiles_int8_is_never_the_slower_one(benchmark):
    faster, slower = ({**ROW, "sentences_per_second": rate} for rate in (4.0, 1.8))
    table = {
        "tatoeba": {"bfloat16": ROW, "int8": faster},
        "flores": {"bfloat16": ROW, "int8": slower},
    }
    [on_tiles] = [check for check in benchmark.checks(table, "amx") if "int8 / b" in check.words]
    assert on_tiles.overall == 0.9
    assert on_tiles.met is False


def test_the_mixed_sample_has_both_sources_and_each_text_once(benchmark, tmp_path):
    for folder in ("tatoeba_laser", "flores200_devtest"):
        (tmp_path / folder).mkdir()
    flores = tmp_path / "flores200_devtest"
    for tatoeba, code in benchmark.SETS["mixed"]:
        path = tmp_path / "tatoeba_laser" / f"{tatoeba}-eng.tsv"
        rows = [f"{tatoeba} {row}\tshort of {tatoeba} {row}" for row in range(3)]
        path.write_text("\n".join(rows), encoding="utf-8")
        lines = [f"{code} {row}" for row in range(3)]
        (flores / f"{code}.txt").write_text("\n".join(lines), encoding="utf-8")
    (flores / "eng_Latn.txt").write_text("long 0\nlong 1\nlong 2", encoding="utf-8")
    options = argparse.Namespace(limit=2, data=tmp_path, prompt="query: ", model=tmp_path)
    texts, pairs = benchmark.read_texts("mixed", options)
    # Of Tatoeba both sides of 12 languages, of FLORES 12 languages and English once.
    assert len(texts) == len(set(texts)) == 2 * 12 * 2 + 12 * 2 + 2
    assert len(pairs) == 24
    for other, english in pairs:
        assert texts[other[1]].removeprefix("query: ")[:3] in texts[english[1]] or (
            texts[english[1]] == "query: long 1"
        )


def test_without_a_ceiling_there_is_no_share_of_it(benchmark, capsys):
    row = {key: value for key, value in ROW.items() if key != "roofline"}
    texts = {"mixed": benchmark.Texts(["a"], [])}
    for found, shares in ((ROW, 1), (row, 0)):
        table = {"mixed": {"st": found, "bfloat16": found}}
        words = [check.words for check in benchmark.checks(table, "zen")]
        assert words.count("bfloat16: share of the roofline") == shares
        benchmark.show(table, texts, {"mixed": 1}, {}, "zen")
        assert ("80%" in capsys.readouterr().out) == bool(shares)


def test_an_engine_is_measured_by_the_ceiling_of_its_own_dtype(benchmark):
    names = {
        "st": "float32",
        "st bf16": "bfloat16",
        "onnx int8": "int8",
        "openvino bf16": "bfloat16",
    }
    assert {name: benchmark.dtype_of(name) for name in names} == names
    for engine in (*benchmark.OURS, *benchmark.TILES):
        assert benchmark.dtype_of(engine) == engine.split()[0]


def test_the_ceiling_of_a_narrower_dtype_is_no_lower(benchmark, monkeypatch):
    ceiling = sys.modules["ceiling"]
    monkeypatch.setattr(ceiling, "ROUNDS", 20_000)
    found = ceiling.ceilings()
    if not found:
        pytest.skip("no C compiler")
    assert list(found) == ["float32", "bfloat16", "int8"]
    # A core does more than a billion in a second, and less than a GPU.
    assert 1e9 < found["float32"] < 1e13
    # Not by how much: other work may stop a loop of milliseconds.
    assert found["int8"] > 0.5 * found["float32"]
    monkeypatch.setenv("CC", "false")
    assert ceiling.ceilings() == {}
