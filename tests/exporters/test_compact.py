from __future__ import annotations

import fnmatch
import shutil

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import load_file

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.post_pooling import Dense
from interlingua.errors import ConfigError
from interlingua.exporters.compact import FLOAT8, StoredWeights, rounded_encoder, write_compact
from interlingua.exporters.graph_nodes import Graph
from interlingua.exporters.graphs import export_graphs
from interlingua.exporters.runtimes import OnnxRuntime, runtimes
from interlingua.exporters.sentence_transformers import ExportSettings
from interlingua.exporters.verify import SAMPLES
from interlingua.storage.locate import _HUB_FILES
from tests.encoder.builders import closeness, with_layers
from tests.encoder.shapes import JINA_BERT_QK_NORM, MODERNBERT

TEXTS = [text for texts in SAMPLES.values() for text in texts]


@pytest.fixture
def compact(encoder, model, tmp_path):
    found = export_graphs(model, tmp_path / "out", ("compact",))
    assert list(found.lowest) == ["sentence-transformers", "onnx", "onnx int8"]
    return tmp_path / "out"


def test_every_runtime_computes_with_the_same_rounded_weights(encoder, compact):
    expected = Encoder.load(compact).encode(TEXTS)
    assert np.array_equal(expected, rounded_encoder(encoder).encode(TEXTS))
    far = {"sentence-transformers": 1e-6, "onnx": 1e-6, "onnx int8": 5e-3}
    found = {runtime.name: runtime.encode(TEXTS, prompt=None) for runtime in runtimes(compact)}
    assert found.keys() == far.keys()
    assert all(closeness(found[name], expected) > 1 - most for name, most in far.items())


def test_rounding_changes_matrices_alone_and_little(encoder):
    before = encoder.backbone.state_dict()
    after = rounded_encoder(encoder).backbone.state_dict()
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        if tensor.ndim == 1:
            assert torch.equal(after[name], tensor)
        else:
            # 3 bits; the smallest step is 2^-9.
            half_step = (tensor.abs() / 16).clamp(min=2.0**-10)
            assert ((after[name] - tensor).abs() <= half_step).all()
    assert closeness(rounded_encoder(encoder).encode(TEXTS), encoder.encode(TEXTS)) < 1 - 1e-9


def test_each_matrix_lies_in_the_directory_once(encoder, compact):
    files = [path for path in compact.rglob("*") if path.is_file()]
    matrices = sum(
        tensor.numel() for tensor in encoder.backbone.state_dict().values() if tensor.ndim == 2
    )
    weights = [path for path in files if path.stat().st_size >= matrices]
    assert [path.name for path in weights] == ["weights.safetensors"]
    for name, tensor in load_file(weights[0]).items():
        is_matrix = tensor.ndim == 2 and len(tensor) > 2
        assert tensor.dtype == (FLOAT8 if is_matrix else torch.float32), name
    for graph in ("model.onnx", "model_quantized.onnx"):
        onnx.checker.check_model(compact / "onnx" / graph)
        held = onnx.load(compact / "onnx" / graph, load_external_data=False).graph.initializer
        assert max(len(tensor.raw_data) for tensor in held) < min(matrices, 4 * 1024 + 1)


def test_a_map_after_pooling_is_kept_exactly_and_once(encoder, tmp_path):
    layer = Dense(encoder.dim, encoder.dim)
    with_layers(encoder, layer).save(tmp_path / "mapped")
    export_graphs(tmp_path / "mapped", tmp_path / "out", ("compact",))
    stored = np.fromfile(tmp_path / "out" / "onnx" / "dense.bin", dtype="<f4")
    assert np.array_equal(
        stored.reshape(encoder.dim, encoder.dim), layer.linear.weight.detach().numpy().T
    )
    expected = Encoder.load(tmp_path / "out").encode(TEXTS)
    found = OnnxRuntime(tmp_path / "out", "onnx").encode(TEXTS, prompt=None)
    assert closeness(found, expected) > 1 - 1e-6


def test_all_codes_of_float8_are_looked_up(tmp_path):
    from safetensors.torch import save_file

    onnxruntime = pytest.importorskip("onnxruntime")
    table = torch.arange(256, dtype=torch.uint8).view(FLOAT8)[:, None]
    save_file({"embeddings.word_embeddings.weight": table}, tmp_path / "weights.safetensors")
    graph = Graph()
    stored = StoredWeights(tmp_path / "weights.safetensors", "bert")
    rows = stored.lookup(graph, None, "word_embeddings")
    graph.add("Reshape", rows, graph.constant(np.array([-1, 1])), name="sentence_embedding")
    (tmp_path / "graph.onnx").write_bytes(graph.model(dim=1, metadata={}).SerializeToString())
    session = onnxruntime.InferenceSession(
        str(tmp_path / "graph.onnx"), providers=["CPUExecutionProvider"]
    )
    ids = np.arange(256)[:, None]
    (found,) = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    assert np.array_equal(found, table.float().nan_to_num().numpy())


def test_the_card_shows_every_way_to_use_it(compact):
    card = (compact / "README.md").read_text(encoding="utf-8")
    assert "SentenceTransformer(" in card
    assert "onnx/model_quantized.onnx" in card
    assert "library_name: sentence-transformers" in card


def test_weights_too_large_for_float8_are_refused(encoder, tmp_path):
    encoder.backbone.word_embeddings.weight.data[3, 1] = 500.0
    with pytest.raises(ConfigError, match="--compact"):
        write_compact(encoder, tmp_path)


@pytest.mark.parametrize(
    ("kinds", "dtype", "named"),
    [(("compact", "openvino"), "float32", "--openvino"), (("compact",), "float16", "--dtype")],
)
def test_options_that_would_be_ignored_are_refused(model, tmp_path, kinds, dtype, named):
    with pytest.raises(ConfigError, match=named):
        export_graphs(model, tmp_path / "out", kinds, ExportSettings(dtype=dtype))
    assert not (tmp_path / "out").exists()


def test_the_hub_is_asked_for_every_file_that_loading_needs(compact, tmp_path):
    for path in [path for path in compact.rglob("*") if path.is_file()]:
        name = path.relative_to(compact).as_posix()
        if any(fnmatch.fnmatch(name, pattern) for pattern in _HUB_FILES):
            (tmp_path / "hub" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, tmp_path / "hub" / name)
    assert np.array_equal(
        Encoder.load(tmp_path / "hub").encode(TEXTS), Encoder.load(compact).encode(TEXTS)
    )
    assert not (tmp_path / "hub" / "onnx" / "model.onnx").exists()


@pytest.mark.parametrize("shape", [JINA_BERT_QK_NORM, MODERNBERT], ids=["jina", "modernbert"])
def test_matrices_stored_in_another_form_are_refused(framed, shape, tmp_path):
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 32}
    config = BackboneConfig(vocab_size=framed.size, intermediate_size=48, **sizes, **shape)
    encoder = Encoder.from_scratch(config, framed)
    with pytest.raises(ConfigError, match="--compact"):
        write_compact(encoder, tmp_path)


def test_token_vectors_are_refused(static_encoder, tmp_path):
    with pytest.raises(ConfigError, match="--dtype int8"):
        write_compact(static_encoder, tmp_path)
