from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from interlingua.exporters.graph_usage import _TEXTS, graph_usage
from interlingua.exporters.graphs import export_graphs

WITHOUT_TORCH = "import sys; sys.modules['torch'] = sys.modules['interlingua'] = None\n"


@pytest.mark.parametrize(("kind", "number"), [("onnx", 0), ("openvino", 1)])
def test_the_lines_of_the_card_run_without_torch_and_give_our_vectors(
    encoder, tmp_path, kind, number
):
    encoder.settings = dataclasses.replace(encoder.settings, prompts={"query": "ask: "})
    encoder.save(tmp_path / "model")
    export_graphs(tmp_path / "model", tmp_path / "out", ("onnx", "openvino"))
    card = (tmp_path / "out" / "README.md").read_text()
    code = card.split("```python\n")[1 + number].split("```")[0]
    assert kind in code
    assert len([line for line in code.splitlines() if line]) <= 10
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH + code],
        cwd=tmp_path / "out",
        capture_output=True,
        text=True,
        check=True,
    )
    shown = [float(word) for word in done.stdout.replace("[", " ").replace("]", " ").split()]
    own = encoder.encode(_TEXTS, prompt="query")
    assert shown == pytest.approx((own @ own.T).ravel().tolist(), abs=1e-5)


def test_what_is_there_is_named(encoder):
    assert "onnx/model_quantized.onnx" in graph_usage(encoder, ("int8",))
    both = graph_usage(encoder, ("onnx", "int8"))
    assert 'InferenceSession("onnx/model.onnx")' in both
    assert "The same with `onnx/model_quantized.onnx`" in both
    assert "openvino" not in both
    assert "length 1" in both
    encoder.settings = dataclasses.replace(encoder.settings, normalize=False)
    assert "length 1" not in graph_usage(encoder, ("onnx",))
