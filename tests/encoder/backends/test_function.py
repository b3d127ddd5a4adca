from __future__ import annotations

import sys

import numpy as np
import pytest

from interlingua.encoder.backends.function import FunctionEncoder, import_function
from interlingua.encoder.backends.load import load_encoder
from interlingua.errors import ConfigError
from interlingua.verbs.score import score


@pytest.fixture
def function_module(tmp_path, monkeypatch):
    (tmp_path / "my_embedder.py").write_text(
        "import numpy as np\ndef embed(texts):\n    return np.array([[len(t), 1.0] for t in"
        " texts])\nnumber = 3\n"
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
    assert (info.name, info.identity, encoder.dim) == ("lengths", None, 2)
    assert info.revision == "no_revision_available"
    assert FunctionEncoder(len).info.name == "len"


def test_a_function_with_an_argument_for_it_is_told_the_language():
    told = []

    def embed(texts, language):
        told.append(language)
        return np.ones((len(texts), 2))

    encoder = FunctionEncoder(embed)
    encoder.encode(["a"], language="eng_Latn")
    encoder.encode(["a"])
    assert told == ["eng_Latn", None]


def test_a_version_is_what_vectors_are_kept_under(function_module):
    identities = {
        load_encoder(function_module, backend="function", options={"version": version})[1].identity
        for version in ("1", "2")
    }
    assert identities == {"my_embedder:embed 1", "my_embedder:embed 2"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("my_embedder", "expected module:function"),
        ("no_such_module:embed", "No module named 'no_such_module'"),
        ("my_embedder:nothing", "no 'nothing'; use one of: embed"),
        ("my_embedder:number", "my_embedder:number.* found int"),
    ],
)
def test_a_function_that_cant_be_had(function_module, spec, message):
    with pytest.raises(ConfigError, match=message):
        import_function(spec)


def zero_for_numbers(texts):
    """Encode texts as their lengths, and numbers as zeros."""
    return np.array([[not text.isdecimal(), len(text) * text.isalpha()] for text in texts], float)


def test_vectors_of_zeros_are_warned_of_once(caplog):
    encoder = FunctionEncoder(zero_for_numbers)
    encoder.encode(["a", "12", "5", "b"])
    encoder.encode(["17"])
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("zero_for_numbers: 2 of 4 ")
    assert "'12'" in message


def test_a_verb_warns_of_vectors_of_zeros(caplog):
    pairs = [("Ein Haus", "a house"), ("123", "456"), ("ab", "cd")]
    options = {"checks": "none", "drop": "none"}
    languages = {"source_language": "de", "target_language": "en"}
    list(score(zero_for_numbers, pairs, **options, **languages).pairs)
    messages = [one.getMessage() for one in caplog.records if "zeros" in one.getMessage()]
    assert len(messages) == 1  # for both sides
