"""mini as a graph for onnxruntime."""

from __future__ import annotations

import pytest

import interlingua
from interlingua.encoder.encoder import Encoder
from tests.models import needs_weights
from tests.models.test_mini import importable as importable
from tests.models.test_mini import stock as stock


@needs_weights("mini")
def test_it_becomes_a_graph_for_onnxruntime(stock, tmp_path):
    pytest.importorskip("onnxruntime")
    from interlingua.encoder.backends.load import load_encoder

    interlingua.export(stock, output=tmp_path / "graphs", onnx=True, int8=True, verify=False)
    texts = ["Wo ist der Bahnhof?", "駅はどこですか。", "أين المحطة؟"]
    for file, least in (("model.onnx", 0.99999), ("model_quantized.onnx", 0.98)):
        encoder, _ = load_encoder(
            str(tmp_path / "graphs"), backend="onnx", options={"file": f"onnx/{file}"}
        )
        assert (encoder.encode(texts) * Encoder.load(stock).encode(texts)).sum(axis=1).min() > least
