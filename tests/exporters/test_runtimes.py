from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np
import pytest

from interlingua.encoder.texts import is_blank
from interlingua.errors import CheckpointError, MissingExtraError
from interlingua.exporters.graphs import write_graphs
from interlingua.exporters.runtimes import (
    ONNX_FILES,
    OPENVINO_FILE,
    ROUNDING,
    GraphRuntime,
    OnnxRuntime,
    OpenVinoRuntime,
    StockRuntime,
    runtimes,
)
from tests.encoder.builders import closeness

TEXTS = ["The cat sits on the mat.", "", "猫", "a " * 300, "<mask> <pad>"] * 5


@pytest.fixture
def folder(encoder, tmp_path):
    encoder.settings = dataclasses.replace(encoder.settings, prompts={"query": "ask: "})
    encoder.save(tmp_path / "m")
    write_graphs(encoder, tmp_path / "m", ("onnx", "int8", "openvino"))
    return tmp_path / "m"


def test_what_is_there_is_run(encoder, folder):
    found = {runtime.name: runtime for runtime in runtimes(folder)}
    assert list(found) == ["sentence-transformers", "onnx", "onnx int8", "openvino"]
    weights = [runtime.weights for runtime in found.values()]
    assert weights == ["float32", "float32", "int8", "float32"]
    for name, runtime in found.items():
        assert runtime.tolerance == ROUNDING[runtime.weights]
        # Other libraries give a blank text a vector, where ours is zero.
        visible = [text for text in TEXTS if not is_blank(text)]
        for prompt in (None, "query"):
            vectors = runtime.encode(visible, prompt=prompt)
            close = closeness(vectors, encoder.encode(visible, prompt=prompt))
            assert close > 1 - (5e-3 if name == "onnx int8" else 1e-6), name


def test_padding_and_batches_change_nothing(folder):
    runtime = OnnxRuntime(folder, "onnx")
    one = np.concatenate([runtime.encode([text], prompt=None) for text in TEXTS[:5]])
    np.testing.assert_allclose(runtime.encode(TEXTS, prompt=None)[:5], one, atol=1e-6)


def test_stored_dtypes_decide_the_tolerance(encoder, static_encoder, tmp_path):
    import torch

    encoder.save(tmp_path / "half", dtype=torch.float16)
    assert StockRuntime(tmp_path / "half").tolerance == ROUNDING["float16"]
    static_encoder.save(tmp_path / "static", dtype=torch.int8)
    assert StockRuntime(tmp_path / "static").tolerance == ROUNDING["int8"]
    write_graphs(encoder, tmp_path / "half", ("onnx", "openvino"), "float16")
    assert [runtime.weights for runtime in runtimes(tmp_path / "half")] == ["float16"] * 3


@pytest.mark.parametrize(
    ("package", "extra", "make"),
    [
        ("onnxruntime", "onnx", lambda folder: OnnxRuntime(folder, "onnx")),
        ("openvino", "openvino", OpenVinoRuntime),
        ("sentence_transformers", "sentence-transformers", StockRuntime),
    ],
)
def test_missing_packages_are_named(folder, monkeypatch, package, extra, make):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"pip install .*\[{extra}\]'"):
        make(folder)


def test_broken_graphs_and_empty_folders(folder, tmp_path):
    (folder / ONNX_FILES["onnx"]).write_bytes(b"no graph")
    with pytest.raises(CheckpointError, match=r"model\.onnx: onnxruntime"):
        OnnxRuntime(folder, "onnx")
    (folder / OPENVINO_FILE).write_text("no graph")
    with pytest.raises(CheckpointError, match=r"openvino_model\.xml: openvino"):
        OpenVinoRuntime(folder)
    with pytest.raises(CheckpointError, match="no graph"):
        runtimes(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert GraphRuntime.__abstractmethods__ == {"run"}
    assert settings["model_max_length"] == OnnxRuntime(folder, "onnx int8").settings.max_tokens
