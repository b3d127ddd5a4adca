from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch

from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import CheckpointError, ConfigError, MissingExtraError, TaskError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
TEXTS = ["de1 de2", "en7 en8 en9 de3", "", "de5", "ru1 " * 130]


helper, kind = onnx.helper, onnx.TensorProto


def info_of(name, shape, of=kind.FLOAT):
    return helper.make_tensor_value_info(name, of, shape)


def save_graph(path, nodes, outputs, *, inputs=("input_ids",), **constants):
    """Save a graph of texts; ``nodes`` are the arguments of ``make_node``."""
    made = [helper.make_node(*arguments, **options) for *arguments, options in nodes]
    puts = [info_of(name, ["b", "t"], kind.INT64) for name in inputs]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(made, "graph", puts, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def write_graph(path, table, *, pooled=None, inputs=("input_ids", "attention_mask"), width=None):
    """Write a graph that returns rows of a table as token states.

    ``pooled`` names a second output, the mean over all positions.
    """
    states = "last_hidden_state"
    nodes = [("Gather", ["table", "input_ids"], [states], {})]
    outputs = [info_of(states, ["b", "t", width])]
    if pooled:
        nodes.append(("ReduceMean", [states], [pooled], {"axes": [1], "keepdims": 0}))
        outputs.append(info_of(pooled, ["b", width]))
    if len(inputs) > 1:  # every declared input is to be used
        nodes.append(("Cast", [inputs[1]], ["unused"], {"to": kind.FLOAT}))
    save_graph(path, nodes, outputs, inputs=inputs, table=table)


def load(folder, **options):
    return load_encoder(str(folder), backend="onnx", **options)


@pytest.fixture
def table(word_vocabulary):
    return np.random.default_rng(0).standard_normal((word_vocabulary.size, 6)).astype(np.float32)


@pytest.fixture
def folder(tmp_path, word_vocabulary, table):
    """A model directory with an ONNX graph as weights."""
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    Encoder.from_scratch(config, word_vocabulary).save(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    write_graph(tmp_path / "m" / "onnx" / "model.onnx", table)
    return tmp_path / "m"


def by_hand(vocabulary, table, mode):
    """Encode each text separately: its ids' rows, pooled and scaled to length 1."""
    rows = [table[vocabulary.encode([text], max_tokens=120)[0]] for text in TEXTS]
    pooled = [{"mean": row.mean(0), "max": row.max(0), "cls": row[0]}[mode] for row in rows]
    return np.stack([vector / np.linalg.norm(vector) for vector in pooled])


@pytest.mark.parametrize("pooling", [None, "cls", "max", "mean"])
def test_token_states_are_pooled_without_padding(folder, word_vocabulary, table, pooling):
    encoder, info = load(folder, pooling=pooling)
    report = EncodeReport()
    found = encoder.encode(TEXTS, batch_tokens=130, report=report)
    assert np.allclose(found, by_hand(word_vocabulary, table, pooling or "mean"), atol=1e-6)
    assert (list(report.cut_rows), report.texts, report.max_tokens) == ([4], 5, 120)
    assert info.pooling == (pooling or "mean")
    assert info.pooling_from == ("requested" if pooling else "model")
    assert (info.max_tokens, info.normalized, info.device) == (120, True, "cpu")
    assert set(encoder.poolings(TEXTS)) == {"cls", "mean", "max"}
    assert np.allclose(
        encoder.poolings(TEXTS)["max"], by_hand(word_vocabulary, table, "max"), atol=1e-6
    )
    assert np.array_equal(encoder.encode(TEXTS, batch_tokens=130), found)


def test_a_directory_that_says_nothing_is_pooled_by_the_mean(folder):
    (folder / "modules.json").unlink()
    info = load(folder)[1]
    assert (info.pooling, info.pooling_from, info.normalized) == ("mean", "assumed", False)


def test_a_graph_that_pools_is_taken_at_its_word(folder, table):
    write_graph(folder / "model.onnx", table, pooled="sentence_embedding", width=6)
    encoder, info = load(folder)
    assert (info.pooling, info.pooling_from, info.dim) == ("in the graph", "model", 6)
    ids = encoder._vocabulary.encode(["de1 de2"])[0]
    expected = table[ids].mean(0)
    assert np.allclose(encoder.encode(["de1 de2"]), expected / np.linalg.norm(expected), atol=1e-6)
    assert encoder.poolings(["de1"]) == {}
    assert load(folder, pooling="max")[1].pooling == "max"


def test_berts_pooler_is_no_sentence_vector(folder, table):
    write_graph(folder / "model.onnx", table, pooled="pooler_output")
    assert load(folder)[1].pooling == "mean"


def test_the_file_and_the_digest(folder, table):
    write_graph(folder / "onnx" / "small.onnx", table / 2)
    info = load(folder, options={"file": "onnx/small.onnx"})[1]
    first = load(folder)[1]
    assert info.overrides == ("onnx.file=onnx/small.onnx",)
    assert info.digest != first.digest == load(folder, pooling="cls")[1].digest
    (folder / "onnx" / "model.onnx_data").write_bytes(b"weights")
    assert load(folder)[1].digest != first.digest


def test_limits_without_a_config(folder):
    for name in ("config.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    said = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**said, "model_max_length": 7}))
    assert load(folder)[1].max_tokens == 7
    (folder / "tokenizer_config.json").unlink()
    assert load(folder)[1].max_tokens == 512


def test_a_graph_with_only_vectors_cant_be_pooled_otherwise(folder, table):
    nodes = [
        ("Gather", ["table", "input_ids"], ["states"], {}),
        ("ReduceMean", ["states"], ["vector"], {"axes": [1], "keepdims": 0}),
    ]
    save_graph(folder / "model.onnx", nodes, [info_of("vector", ["b", 6])], table=table)
    assert load(folder)[1].pooling == "in the graph"
    with pytest.raises(ConfigError, match="remove the pooling option"):
        load(folder, pooling="cls")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda f, t: (f / "onnx" / "model.onnx").unlink(),
            r"model\.onnx or .* not found",
        ),
        (
            lambda f, t: (f / "onnx" / "model.onnx").write_bytes(b"nonsense"),
            "onnxruntime cannot run the graph",
        ),
        (
            lambda f, t: write_graph(f / "model.onnx", t, inputs=("input_ids", "pixels")),
            "requires the input 'pixels'",
        ),
    ],
)
def test_graphs_that_cant_be_used_are_one_line(folder, table, spoil, message):
    spoil(folder, table)
    with pytest.raises(CheckpointError, match=message) as error:
        load(folder)
    assert "\n" not in str(error.value)


def test_no_onnxruntime(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[onnx\]'"):
        load(folder)


WILD = {
    "shape that fails": ("Reshape", ["numbers", "shape"], [7, 777]),
    "fewer vectors than texts": ("Reshape", ["numbers", "shape"], [1, -1]),
    "a memory of terabytes": ("ConstantOfShape", ["shape"], [4, 1 << 40]),
    "no numbers": ("Cast", ["numbers"], [1]),
}


@pytest.mark.parametrize("name", list(WILD))
def test_a_graph_that_gives_something_else_is_one_line(name, folder):
    operator, given, shape = WILD[name]
    options, type_of_output = {}, kind.FLOAT
    if operator == "Cast":
        options, type_of_output = {"to": kind.STRING}, kind.STRING
    nodes = [
        ("Cast", ["input_ids"], ["numbers"], {"to": kind.FLOAT}),
        (operator, given, ["sentence_embedding"], options),
    ]
    output = info_of("sentence_embedding", ["b", "d"], type_of_output)
    save_graph(folder / "onnx" / "model.onnx", nodes, [output], shape=np.array(shape))
    encoder, _ = load(folder)
    with pytest.raises(TaskError, match=r"model\.onnx: ") as caught:
        encoder.encode(["de1 de2", "en7 en8"])
    assert "\n" not in str(caught.value)
