from __future__ import annotations

import pytest

from interlingua.errors import CheckpointError, DataError
from interlingua.vocabulary import model_files
from interlingua.vocabulary.model_files import check_modules, read_file

NAN = float("nan")
LONG = int("9" * 400)
SIZE = [0, 65_537, 1.0, True, "1", LONG]
TEXT = [1, "\ud800", ["a"]]
FLAG = [0, 1, "true"]
RATE = [-0.1, 1, NAN, float("inf"), True, "0", LONG]
PATH = ["/etc", "..", "a/../b", "\\x", "a\0", 5]
MODULE = {"type": "t", "path": ""}


@pytest.mark.parametrize(
    ("kind", "key", "good", "bad"),
    [
        ("BackboneFile", "hidden_size", [None, 1, 65_536], SIZE),
        ("BackboneFile", "hidden_dropout_prob", [None, 0, 0.99], RATE),
        ("BackboneFile", "layer_norm_eps", [1e-30, 1], [0, 1.1, NAN]),
        ("BackboneFile", "model_type", [None, "", "é"], TEXT),
        ("BackboneFile", "normalize", [None, True, False], FLAG),
        ("BackboneFile", "unknown", [1, LONG, {}], []),
        ("RotaryFile", "rope_scaling", [None], [{}, 1.0, "linear"]),
        ("RotaryFile", "rope_parameters", [None, {"rope_theta": 1, "a": 1}], [{"rope_theta": 0}]),
        ("ModernBertFile", "layer_types", [None, ["full_attention"]], [["a"], "full_attention"]),
        ("ModernBertFile", "layer_types", [["full_attention"] * 1000], [["full_attention"] * 1001]),
        ("PoolingFile", "pooling_mode", ["cls", ["cls", "max"]], [5, [5], ["a"] * 21, {}]),
        ("PromptsFile", "prompts", [None, {}, {"q": "a", "p": None}], [{"q": 1}, [], "q"]),
        ("PromptsFile", "__version__", [None, {"torch": 5}], [[], "1.0"]),
        ("PromptsFile", "interlingua", [{"matryoshka_dims": [1]}], [{"matryoshka_dims": [0]}]),
        ("TokenizerFile", "pad_token", ["<pad>", {"content": "<pad>"}], [1, {}, {"content": None}]),
        ("TokenizerFile", "model_max_length", [int(1e30), 512], [0, 10**41]),
        ("ShardsFile", "weight_map", [{"a": "b", "c": "d/e"}], [None, {"a": ".."}]),
    ],
)
def test_a_key_takes_what_it_is_and_nothing_else(kind, key, good, bad):
    for value in good:
        read_file(getattr(model_files, kind), {key: value}, "f")
    for value in bad:
        with pytest.raises(CheckpointError, match=rf"^f: {key}.* expected .*download the model"):
            read_file(getattr(model_files, kind), {key: value}, "f")


@pytest.mark.parametrize("path", PATH)
def test_a_module_is_inside_of_the_folder(path):
    assert read_file(model_files.Modules, [MODULE], "f")[0].path == ""
    with pytest.raises(CheckpointError, match=r"\[1\]\.path: "):
        read_file(model_files.Modules, [MODULE, MODULE | {"path": path}], "f")


def test_the_error_names_file_key_value_and_what_was_expected():
    ranges = {"2": {"minimum": [0, -1e31], "maximum": [0, 1]}}
    with pytest.raises(CheckpointError, match=r"^x\.json: 2\.minimum\[1\]: .* -1e\+30.* -1e\+31"):
        read_file(model_files.RangesByWidth, ranges, "x.json")
    with pytest.raises(CheckpointError, match=r"content: .*found 5"):
        read_file(model_files.BackboneFile, 5, "x.json")
    with pytest.raises(CheckpointError, match="in_features is missing"):
        read_file(model_files.DenseFile, {}, "x.json")
    with pytest.raises(DataError, match="save it again"):
        read_file(model_files.Modules, {}, "x.json", error=DataError, remedy="save it again")
    for long in ("x" * 10_000, LONG, [LONG]):
        with pytest.raises(CheckpointError) as caught:
            read_file(model_files.BackboneFile, {"hidden_size": long}, "x.json")
        assert len(str(caught.value)) < 250


def test_sizes_of_known_models_are_in_range():
    large = {
        "model_type": "xlm-roberta",
        "vocab_size": 250_002,
        "hidden_size": 4096,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "intermediate_size": 16_384,
        "max_position_embeddings": 8194,
        "pad_token_id": 1,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "hidden_dropout_prob": 0.1,
        "hidden_act": "gelu",
    }
    assert read_file(model_files.BackboneFile, large, "f").hidden_size == 4096


def modules(*kinds):
    return [("", f"sentence_transformers.models.{kind}") for kind in kinds]


def test_modules_stand_in_the_order_of_the_work():
    before = ("Transformer", "Pooling")
    for good in (
        ("Transformer",),
        before,
        (*before, "Dense", "Normalize", "Dense"),
        ("Transformer", "Normalize"),
    ):
        check_modules(modules(*good), before, "m")
    check_modules([("", "sentence_transformers.base.modules.transformer.Transformer")], before, "m")
    for bad in (
        (),
        ("Pooling",),
        (*before, "Pooling"),
        ("Transformer", "Dense", "Pooling"),
        ("Dense",),
    ):
        with pytest.raises(CheckpointError, match=r"modules\.json: expected"):
            check_modules(modules(*bad), before, "m")


@pytest.mark.parametrize(
    "kind", ["my.models.Transformer", "Transformer", "sentence_transformers.models.LSTM", "", "."]
)
def test_modules_of_other_packages_are_not_supported(kind):
    with pytest.raises(CheckpointError, match="modules of sentence-transformers"):
        check_modules([("", kind)], ("Transformer",), "m")
