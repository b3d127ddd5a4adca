from __future__ import annotations

import sys

import numpy as np
import pytest

from interlingua.errors import CheckpointError, ConfigError, MissingExtraError
from interlingua.evaluation.encoders import FunctionEncoder, import_function, load_encoder, model_name


@pytest.fixture
def function_module(tmp_path, monkeypatch):
    (tmp_path / "my_embedder.py").write_text(
        "import numpy as np\ndef embed(texts):\n    return np.array([[len(t), 1.0] for t in texts])\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "my_embedder:embed"
    sys.modules.pop("my_embedder", None)


def test_a_function_is_an_encoder(function_module):
    encoder, info = load_encoder(function_module, backend="function", name="lengths")
    vectors = encoder.encode(["a", "bcd"], prompt="q: ", language="eng_Latn")
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[4.0, 1.0], [6.0, 1.0]]
    assert (info.name, info.revision, encoder.dim) == ("lengths", "no_revision_available", 2)
    assert FunctionEncoder(len).info.name == "len"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("my_embedder", "expected module:function"),
        ("no_such_module:embed", "can't be imported: No module named 'no_such_module'"),
        ("my_embedder:nothing", "can't be imported: module 'my_embedder' has no attribute 'nothing'"),
        ("my_embedder:number", "is no function but a int"),
    ],
)
def test_a_function_that_cant_be_had(function_module, spec, message):
    with pytest.raises(ConfigError, match=message):
        import_function(spec)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"backend": "onnx"}, "backend 'onnx' is not one of interlingua, sentence-transformers, function"),
        ({"dtype": "int8"}, "dtype 'int8' is not one of float32, bfloat16, float16"),
        ({"pooling": "sum"}, "pooling 'sum' is not one of"),
        ({"pooling": "cls", "backend": "sentence-transformers"}, "brings its own pooling; drop"),
        ({"dtype": "float16", "backend": "function"}, "brings its own dtype and device; drop"),
    ],
)
def test_choices_that_dont_go_are_said_before_anything_is_loaded(choice, message):
    with pytest.raises(ConfigError, match=message):
        load_encoder("nowhere", **choice)


def test_no_such_model(tmp_path):
    with pytest.raises(CheckpointError, match="no such model directory"):
        load_encoder(str(tmp_path / "none"))


def test_names(tmp_path):
    (tmp_path / "ems" / "best").mkdir(parents=True)
    (tmp_path / "me5").mkdir()
    assert model_name(str(tmp_path / "ems" / "best")) == "ems-best"
    assert model_name(str(tmp_path / "me5")) == "me5"
    assert model_name("intfloat/multilingual-e5-small") == "intfloat/multilingual-e5-small"


def test_sentence_transformers_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'interlingua\[sentence-transformers\]'"):
        load_encoder(str(tmp_path), backend="sentence-transformers")
