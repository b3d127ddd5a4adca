from __future__ import annotations

import pytest

from interlingua.encoder import schema
from interlingua.encoder.schema import (
    ANYTHING,
    FLAG,
    INSIDE,
    Either,
    ListOf,
    MapOf,
    Maybe,
    ObjectOf,
    Text,
    check,
    check_modules,
    number,
    shown,
    whole,
)
from interlingua.errors import CheckpointError

NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (whole(1, 9), [1, 9], [0, 10, 1.0, True, "1", None, int("9" * 400)]),
        (number(0, 1), [0, 1, 0.5], [-0.1, 1.1, NAN, float("inf"), True, "0", None]),
        (number(0, below=1), [0, 0.99], [1, 2]),
        (Text(), ["", "é"], [1, None, "\ud800", ["a"]]),
        (INSIDE, ["", "1_Pooling", "a/b"], ["/etc", "..", "a/../b", "\\x", "a\0", 5, None]),
        (FLAG, [True, False], [0, 1, "true", None]),
        (Maybe(FLAG), [True, None], [0]),
        (Either((Text(), FLAG)), ["a", True], [1, None]),
        (ListOf(whole(0, 1), longest=2), [[], [0, 1]], [[2], [0, 0, 0], {}, None]),
        (MapOf(Text()), [{}, {"a": "b"}], [{"a": 1}, [], None]),
        (
            ObjectOf({"a": whole(1, 2)}),
            [{"a": 1, "other": object()}],
            [{}, {"a": None}, {"a": 3}, []],
        ),
        (ANYTHING, [None, [], 5], []),
    ],
)
def test_each_kind_takes_what_it_is_and_nothing_else(kind, good, bad):
    assert [kind.problem(value, "k") for value in good] == [None] * len(good)
    for value in bad:
        problem = kind.problem(value, "k")
        assert problem is not None, value
        assert problem[0].startswith("k")


def test_the_error_names_file_key_value_and_what_was_expected():
    kind = ObjectOf({"a": ListOf(ObjectOf({"b": whole(1, 5)}), longest=3)})
    with pytest.raises(CheckpointError, match=r"^x\.json: a\[1\]\.b is -3, .*1 to 5"):
        check({"a": [{"b": 1}, {"b": -3}]}, kind, "x.json")
    with pytest.raises(CheckpointError, match="content is 5"):
        check(5, kind, "x.json")
    assert len(shown("x" * 10_000)) < 100
    assert len(shown(int("9" * 400))) < 100


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
    assert schema.BACKBONE.problem(large, "") is None
    tokenizer = {"model_max_length": int(1e30), "pad_token": {"content": "<pad>"}}
    assert schema.TOKENIZER.problem(tokenizer, "") is None


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
        with pytest.raises(CheckpointError, match=r"modules\.json lists the modules"):
            check_modules(modules(*bad), before, "m")


@pytest.mark.parametrize(
    "kind", ["my.models.Transformer", "Transformer", "sentence_transformers.models.LSTM", "", "."]
)
def test_modules_of_other_packages_are_not_supported(kind):
    with pytest.raises(CheckpointError, match="supported; supported are"):
        check_modules([("", kind)], ("Transformer",), "m")
