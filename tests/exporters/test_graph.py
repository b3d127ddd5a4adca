from __future__ import annotations

import dataclasses
import sys

import numpy as np
import onnxruntime
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.modeling.families import FAMILIES
from interlingua.encoder.post_pooling import Dense, Normalize
from interlingua.errors import MissingExtraError
from interlingua.exporters.graph import build_graph
from interlingua.exporters.graph_nodes import INPUTS, OPSET
from interlingua.exporters.graph_weights import FloatWeights, Int8Weights
from interlingua.exporters.verify import SAMPLES
from tests.encoder.builders import with_layers
from tests.encoder.shapes import JINA_BERT, JINA_BERT_QK_NORM, MODERNBERT, SIZES

TEXTS = [text for texts in SAMPLES.values() for text in texts if len(text) < 100]


def encoder_of(vocabulary, **settings):
    """Build an encoder of three layers, by default of XLM-R's shape with token types."""
    torch.manual_seed(0)
    sizes = {**SIZES, "num_hidden_layers": 3, "max_position_embeddings": 130}
    sizes["hidden_act"] = settings.pop("hidden_act", "gelu")
    shape = {"model_type": "xlm-roberta", "type_vocab_size": 1} | settings.pop("shape", {})
    config = BackboneConfig(vocab_size=vocabulary.size, **sizes, **shape)
    encoder = Encoder.from_scratch(config, vocabulary).eval()
    encoder.settings = dataclasses.replace(encoder.settings, **settings)
    return encoder


def padded(encoder, texts, *, left=False):
    ids = encoder.vocabulary.encode(texts, max_tokens=encoder.max_tokens)
    longest = max(map(len, ids))
    table = np.full((len(ids), longest), encoder.vocabulary.pad_id, dtype=np.int64)
    mask = np.zeros_like(table)
    for row, found in enumerate(ids):
        place = slice(longest - len(found), longest) if left else slice(0, len(found))
        table[row, place], mask[row, place] = found, 1
    return {"input_ids": table, "attention_mask": mask}


def run(encoder, feed, weights=None):
    model = build_graph(encoder, weights or FloatWeights())
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["sentence_embedding"], feed)[0]


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("include_special", [True, False])
@pytest.mark.parametrize("left", [False, True])
def test_graph_gives_the_encoders_vectors(framed, pooling, include_special, left):
    encoder = encoder_of(framed, pooling=pooling, include_special=include_special)
    found = run(encoder, padded(encoder, TEXTS, left=left))
    np.testing.assert_allclose(found, encoder.encode(TEXTS), atol=2e-6)


@pytest.mark.parametrize("hidden_act", ["gelu_new", "relu", "silu", "tanh"])
def test_every_activation(framed, hidden_act):
    encoder = encoder_of(framed, hidden_act=hidden_act)
    found = run(encoder, padded(encoder, TEXTS))
    np.testing.assert_allclose(found, encoder.encode(TEXTS), atol=2e-6)


OTHER_SHAPES = {
    "modernbert": {**MODERNBERT, "type_vocab_size": 0},
    "nomic_bert": FAMILIES["nomic_bert"].fixed | {"model_type": "nomic_bert", "type_vocab_size": 2},
    "gte": {**FAMILIES["gte"].fixed, "model_type": "gte", "rotary_base": 500.0},
    "distilbert": {"model_type": "distilbert", "type_vocab_size": 0},
    "jina_bert": {**JINA_BERT, "type_vocab_size": 2},
    "jina_bert_qk_norm": {**JINA_BERT_QK_NORM, "type_vocab_size": 2},
    "alibi_bert": FAMILIES["alibi_bert"].fixed,
    "with all biases": MODERNBERT
    | dict.fromkeys(("norm_bias", "attention_bias", "output_bias"), True),
}


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("shape", OTHER_SHAPES.values(), ids=OTHER_SHAPES)
def test_other_shapes_give_the_encoders_vectors(framed, shape, left):
    encoder = encoder_of(framed, shape=shape)
    texts = [*TEXTS, " ".join(TEXTS)[:120]]
    found = run(encoder, padded(encoder, texts, left=left))
    np.testing.assert_allclose(found, encoder.encode(texts), atol=3e-6)


@pytest.mark.parametrize(
    "weights", [FloatWeights("float16"), Int8Weights()], ids=["float16", "int8"]
)
@pytest.mark.parametrize("shape", ["modernbert", "jina_bert_qk_norm"])
def test_other_shapes_with_smaller_weights_are_close(framed, shape, weights):
    encoder = encoder_of(framed, shape=OTHER_SHAPES[shape])
    found = run(encoder, padded(encoder, TEXTS), weights)
    assert (found * encoder.encode(TEXTS)).sum(1).min() > 0.999


def test_ems_shape_and_batches_of_one(encoder):
    whole = run(encoder, padded(encoder, TEXTS))
    np.testing.assert_allclose(whole, encoder.encode(TEXTS), atol=2e-6)
    for row, text in enumerate(TEXTS[:3]):
        np.testing.assert_allclose(run(encoder, padded(encoder, [text]))[0], whole[row], atol=2e-6)


def test_normalization_is_as_the_settings_say(framed):
    encoder = encoder_of(framed, normalize=False)
    found = run(encoder, padded(encoder, TEXTS))
    np.testing.assert_allclose(found, encoder.encode(TEXTS, normalize_embeddings=False), atol=2e-6)
    assert np.abs(np.linalg.norm(found, axis=1) - 1).max() > 0.1


def test_layers_after_pooling_are_in_the_graph(framed):
    layers = [Normalize(), Dense(32, 32, activation="sigmoid"), Dense(32, 16, bias=False)]
    deep = with_layers(encoder_of(framed), *layers)
    for weights in (None, Int8Weights()):
        found = run(deep, padded(deep, TEXTS), weights)
        assert found.shape == (len(TEXTS), 16)
        np.testing.assert_allclose(
            found, deep.encode(TEXTS), atol=2e-6 if weights is None else 1e-2
        )


def test_a_text_of_nothing_but_special_tokens_is_zero(framed):
    for pooling in ("mean", "max"):
        encoder = encoder_of(framed, include_special=False, pooling=pooling)
        assert not run(encoder, padded(encoder, ["", "a"]))[0].any()


def test_inputs_output_and_facts(encoder):
    model = build_graph(encoder, FloatWeights())
    assert [given.name for given in model.graph.input] == list(INPUTS)
    shape = [
        dim.dim_param or dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim
    ]
    assert shape == ["batch", encoder.dim]
    assert [opset.version for opset in model.opset_import] == [OPSET]
    facts = {prop.key: prop.value for prop in model.metadata_props}
    assert facts["digest"] == encoder.digest()
    assert facts["weights"] == "float32"


def test_a_missing_package_is_named(encoder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[onnx\]'"):
        build_graph(encoder, FloatWeights())
