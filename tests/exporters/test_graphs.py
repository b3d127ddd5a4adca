from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
import torch

from interlingua.encoder.backends.foreign import Choices
from interlingua.encoder.backends.onnx import OnnxEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import CheckpointError, ConfigError, MissingExtraError
from interlingua.exporters import graphs
from interlingua.exporters.graphs import export_graphs
from interlingua.exporters.sentence_transformers import ExportSettings
from interlingua.exporters.shrink import ShrinkOptions
from interlingua.exporters.verify import SAMPLES
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.builders import closeness
from tests.encoder.shapes import JINA_BERT, JINA_BERT_QK_NORM, MODERNBERT, SIZES

TEXTS = [text for texts in SAMPLES.values() for text in texts]


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def smallest(found, runtime):
    return min(low.cosine for low in found.lowest[runtime].values())


@pytest.fixture
def prompted(encoder, tmp_path):
    """A model with the default to put a prompt before every text, in a run's folder."""
    encoder.settings = dataclasses.replace(
        encoder.settings,
        prompts={"query": "ask: ", "plain": "b "},
        default_prompt="query",
        pooling="max",
    )
    encoder.save(tmp_path / "model")
    return encoder, tmp_path / "model"


def test_all_graphs_agree_and_need_no_weights_beside_them(prompted, tmp_path):
    encoder, model = prompted
    told = []
    settings = ExportSettings(license="MIT", on_verified=told.append)
    found = export_graphs(model, tmp_path / "out", ("onnx", "int8", "openvino"), settings)
    assert told == [found]
    assert list(found.lowest) == ["onnx", "onnx int8", "openvino"]
    assert found.lowest["onnx"].keys() == SAMPLES.keys()
    assert smallest(found, "onnx") > 1 - 1e-6
    assert 1 - 5e-3 < smallest(found, "onnx int8") < 1 - 1e-9
    written = files(tmp_path / "out")
    graphs_there = {"onnx/model.onnx", "onnx/model_quantized.onnx"}
    assert graphs_there | {"tokenizer.json", "config.json", "README.md"} <= set(written)
    assert "model.safetensors" not in written
    own = encoder.encode(TEXTS)
    for options in ({}, {"file": "onnx/model_quantized.onnx"}):
        there = OnnxEncoder(str(tmp_path / "out"), Choices(name="m", options=options))
        assert there.info.pooling == "in the graph"
        assert closeness(there.encode(TEXTS), own) > (1 - 5e-3 if options else 1 - 1e-6)


@pytest.mark.parametrize(
    "shape",
    [MODERNBERT, JINA_BERT, JINA_BERT_QK_NORM],
    ids=["modernbert", "jina", "jina with norms"],
)
def test_graphs_of_other_families_agree(framed, shape, tmp_path):
    torch.manual_seed(0)
    sizes = {**SIZES, "num_hidden_layers": 3, "max_position_embeddings": 64}
    config = BackboneConfig(vocab_size=framed.size, **sizes, **shape)
    Encoder.from_scratch(config, framed).save(tmp_path / "model")
    found = export_graphs(tmp_path / "model", tmp_path / "out", ("onnx", "int8", "openvino"))
    assert smallest(found, "onnx") > 1 - 1e-6
    assert smallest(found, "openvino") > 1 - 1e-6


def test_int8_alone_is_found_by_evaluation(model, encoder, tmp_path):
    export_graphs(model, tmp_path / "out", ("int8",))
    assert not (tmp_path / "out" / "onnx" / "model.onnx").exists()
    there = OnnxEncoder(str(tmp_path / "out"), Choices(name="m"))
    assert closeness(there.encode(TEXTS), encoder.encode(TEXTS)) > 1 - 5e-3


@pytest.mark.parametrize("kinds", [("openvino",), ("onnx", "openvino")])
def test_openvino_leaves_no_other_graph_than_asked_for(model, tmp_path, kinds):
    found = export_graphs(model, tmp_path / "out", kinds, ExportSettings(dtype="float16"))
    assert found.tolerances["openvino"] == 1e-4
    assert 1 - 1e-4 < found.minimum < 1 - 1e-9
    assert (tmp_path / "out" / "onnx").exists() == ("onnx" in kinds)
    front = (tmp_path / "out" / "README.md").read_text().split("---\n")[1]
    assert f"library_name: {kinds[0]}" in front


def test_weights_of_a_large_graph_lie_beside_it(model, tmp_path, monkeypatch):
    monkeypatch.setattr(graphs, "LARGEST_FILE_BYTES", 1000)
    export_graphs(model, tmp_path / "out", ("onnx", "openvino"))
    assert (tmp_path / "out" / "onnx" / "model.onnx_data").stat().st_size > 1000
    export_graphs(model, tmp_path / "only", ("openvino",))
    assert not (tmp_path / "only" / "onnx").exists()


def test_a_graph_that_differs_is_refused_by_language_and_text_and_leaves_nothing(
    model, tmp_path, monkeypatch
):
    original = graphs.build_graph

    def damaged(encoder, weights):
        broken = encoder.clone()
        with torch.no_grad():
            broken.backbone.layers[0].value.weight.mul_(3)
        return original(broken, weights)

    monkeypatch.setattr(graphs, "build_graph", damaged)
    told = []
    with pytest.raises(CheckpointError, match=r"/out: onnx .* '.*' \(\w+_\w{4}, cosine 0\.\d+"):
        export_graphs(model, tmp_path / "out", ("onnx",), ExportSettings(on_verified=told.append))
    assert "!" in "".join(told[0].table())
    assert not (tmp_path / "out").exists()
    assert export_graphs(model, tmp_path / "out", ("onnx",), ExportSettings(check=False)) is None


def test_static_vectors_have_graphs_too(static_encoder, tmp_path):
    static_encoder.save(tmp_path / "static")
    found = export_graphs(tmp_path / "static", tmp_path / "out", ("onnx", "int8"))
    assert smallest(found, "onnx") > 1 - 1e-6
    there = OnnxEncoder(str(tmp_path / "out"), Choices(name="m"))
    np.testing.assert_allclose(there.encode(TEXTS), static_encoder.encode(TEXTS), atol=1e-5)


def test_what_a_graph_cannot_do_is_refused(encoder, model, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"float32 or float16, found 'bfloat16'"):
        export_graphs(model, tmp_path / "out", ("onnx",), ExportSettings(dtype="bfloat16"))
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[openvino\]'"):
        export_graphs(model, tmp_path / "out", ("openvino",))
    assert not (tmp_path / "out").exists()
    own = encoder.vocabulary
    segmented = Vocabulary(
        own.tokenizer.to_str(), special_tokens=own.special_tokens, pre_tokenizer="ems"
    )
    Encoder(encoder.backbone, segmented).save(tmp_path / "segmented")
    with pytest.raises(CheckpointError, match="segments words"):
        export_graphs(tmp_path / "segmented", tmp_path / "out", ("onnx",))


def test_graphs_give_vectors_that_are_cut(encoder, model, tmp_path):
    settings = ExportSettings(smaller=ShrinkOptions(truncate_dim=8))
    found = export_graphs(model, tmp_path / "out", ("onnx", "int8", "openvino"), settings)
    assert smallest(found, "onnx") > 1 - 1e-6
    there = OnnxEncoder(str(tmp_path / "out"), Choices(name="m"))
    vectors = there.encode(TEXTS)
    assert (there.dim, vectors.shape[1]) == (8, 8)
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS, truncate_dim=8), atol=1e-5)
