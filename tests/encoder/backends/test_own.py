from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError

TEXTS = ["de1 de2", "en7"]


def test_other_pooling_and_dtype(prompted):
    vectors = {}
    for options in ({}, {"pooling": "cls"}, {"dtype": "bfloat16"}):
        encoder, info = load_encoder(prompted, **options)
        vectors[info.overrides] = encoder.encode(["de1 de2 de3"], prompt="")[0]
        assert info.pooling == options.get("pooling", "mean")
        assert info.dtype == options.get("dtype", "float32")
    plain, cls, half = vectors.values()
    assert list(vectors) == [(), ("pooling=cls",), ("dtype=bfloat16",)]
    assert np.dot(plain, cls) < 0.99
    assert 0.999 < np.dot(plain, half) < 1 - 1e-9


def test_fewer_elements(prompted):
    encoder, info = load_encoder(prompted, dim=8)
    assert (encoder.dim, encoder.whole_dim, info.dim, info.overrides) == (8, 32, 8, ("dim=8",))
    expected = Encoder.load(prompted).encode(TEXTS, truncate_dim=8)
    assert np.array_equal(encoder.encode(TEXTS), expected)
    with pytest.raises(ConfigError, match=r"dim: .* 32, found 33"):
        load_encoder(prompted, dim=33)


def test_where_the_pooling_is_known_from(prompted, tmp_path):
    assert load_encoder(prompted)[1].pooling_from == "model"
    assert load_encoder(prompted, pooling="mean")[1].pooling_from == "requested"
    plain = tmp_path / "plain"
    shutil.copytree(prompted, plain)
    for name in ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"):
        (plain / name).unlink()
    shutil.rmtree(plain / "1_Pooling")
    info = load_encoder(str(plain))[1]
    assert (info.pooling, info.pooling_from, info.normalized) == ("mean", "assumed", False)


@pytest.fixture
def towers(prompted, tmp_path):
    """The two encoders of a model, and its folder."""
    passages, questions = Encoder.load(prompted), Encoder.load(prompted)
    with torch.no_grad():
        for weight in questions.parameters():
            weight.mul_(0.9)
    DualEncoder(passages, questions).save(tmp_path / "towers")
    return passages, questions, str(tmp_path / "towers")


def test_a_model_with_two_towers_embeds_questions_by_its_own(prompted, towers):
    passages, questions, folder = towers
    encoder, info = load_encoder(folder)
    assert np.array_equal(encoder.encode(TEXTS), passages.encode(TEXTS))
    assert info.digest not in (passages.digest(), questions.digest())
    assert not hasattr(load_encoder(prompted)[0], "encode_queries")
    with pytest.raises(ConfigError, match=r"truncate_dim .*two towers"):
        load_encoder(folder, dim=4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_two_towers_are_measured_in_the_dtype(towers, dtype):
    passages, questions, folder = towers
    encoder, info = load_encoder(folder, dtype=dtype)
    how = {"dtype": dtype, "normalize_embeddings": passages.settings.normalize}
    assert info.dtype == dtype
    found = encoder.encode_passages(TEXTS)
    assert np.array_equal(found, passages.encode(TEXTS, prompt="passage", **how))
    asked = questions.encode(TEXTS, prompt="query", **how)
    assert np.array_equal(encoder.encode_queries(TEXTS), asked)
    plain = load_encoder(folder)[0].encode_passages(TEXTS)
    assert np.array_equal(found, plain) == (dtype == "float32")
