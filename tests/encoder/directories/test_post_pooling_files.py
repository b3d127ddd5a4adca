from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.encoder.directories.post_pooling_files import ACTIVATION_CLASSES
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.post_pooling import _FUNCTIONS, Dense, Normalize
from interlingua.errors import CheckpointError
from tests.encoder.builders import edit_json, with_layers

SentenceTransformer = pytest.importorskip("sentence_transformers").SentenceTransformer
TEXTS = ["ru1 ru2", "de5 de6 de7", "en9"]


@pytest.fixture
def deep(encoder):
    torch.manual_seed(3)
    return with_layers(
        encoder, Normalize(), Dense(encoder.dim, 7), Dense(7, 6, bias=False, activation="tanh")
    )


@pytest.fixture
def folder(deep, tmp_path):
    deep.save(tmp_path / "m")
    return tmp_path / "m"


def test_saved_layers_load_with_the_same_digest(deep, folder):
    loaded = Encoder.load(folder)
    assert loaded.digest() == deep.digest()
    np.testing.assert_array_equal(loaded.encode(TEXTS), deep.encode(TEXTS))


def test_sentence_transformers_gives_the_same_vectors(deep, folder):
    stock = SentenceTransformer(str(folder), device="cpu")
    np.testing.assert_allclose(stock.encode(TEXTS), deep.encode(TEXTS), atol=1e-5)
    assert stock.get_embedding_dimension() == 6


def test_what_sentence_transformers_saves_loads_here(deep, folder, tmp_path):
    SentenceTransformer(str(folder), device="cpu").save_pretrained(str(tmp_path / "theirs"))
    np.testing.assert_allclose(
        Encoder.load(tmp_path / "theirs").encode(TEXTS), deep.encode(TEXTS), atol=1e-5
    )


def test_every_activation_goes_round(encoder, tmp_path):
    assert ACTIVATION_CLASSES.keys() == _FUNCTIONS.keys()
    for activation in _FUNCTIONS:
        deep = with_layers(encoder, Dense(encoder.dim, 4, activation=activation))
        deep.save(tmp_path / activation)
        stock = SentenceTransformer(str(tmp_path / activation), device="cpu")
        np.testing.assert_allclose(
            stock.encode(TEXTS), deep.encode(TEXTS), atol=1e-5, err_msg=activation
        )


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"use_residual": True}, "residual"),
        ({"module_input_name": "token_embeddings"}, "another input"),
        ({"activation_function": "my.Act"}, "my.Act"),
        ({"in_features": -1}, "in_features: expected"),
        ({"out_features": "7"}, "out_features: expected"),
        ({"in_features": 9}, "expected shape"),
    ],
)
def test_unsupported_options_are_refused(folder, change, match):
    edit_json(folder / "3_Dense" / "config.json", **change)
    with pytest.raises(CheckpointError, match=match):
        Encoder.load(folder)


def test_missing_weights_are_refused(folder):
    (folder / "3_Dense" / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="3_Dense"):
        Encoder.load(folder)
