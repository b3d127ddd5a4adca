from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from interlingua.arrays import normalize_rows
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError


def test_other_pooling_and_dtype(prompted):
    vectors = {}
    for options in ({}, {"pooling": "cls"}, {"dtype": "bfloat16"}):
        encoder, info = load_encoder(prompted, **options)
        vectors[info.overrides] = encoder.encode(["de1 de2 de3"], prompt="")[0]
        assert (info.pooling, info.dtype) == (
            options.get("pooling", "mean"),
            options.get("dtype", "float32"),
        )
    plain, cls, half = vectors.values()
    assert list(vectors) == [(), ("pooling=cls",), ("dtype=bfloat16",)]
    assert np.dot(plain, cls) < 0.99
    assert 0.999 < np.dot(plain, half) < 1 - 1e-9


def test_fewer_elements(prompted):
    encoder, info = load_encoder(prompted, dim=8)
    assert (encoder.dim, encoder.whole_dim, info.dim, info.overrides) == (8, 32, 8, ("dim=8",))
    assert np.array_equal(
        encoder.encode(["de1 de2"]), Encoder.load(prompted).encode(["de1 de2"], dim=8)
    )
    with pytest.raises(ConfigError, match=r"dim is 33, .* 32"):
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


def test_a_model_with_two_towers_embeds_questions_by_its_own(prompted, tmp_path, word_vocabulary):
    torch.manual_seed(5)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    questions = Encoder.from_scratch(config, word_vocabulary)
    passages = Encoder.load(prompted)
    DualEncoder(passages, questions).save(tmp_path / "towers")
    encoder, info = load_encoder(str(tmp_path / "towers"))
    texts = ["de1 de2", "en7"]
    assert np.array_equal(encoder.encode(texts), passages.encode(texts))
    np.testing.assert_allclose(
        normalize_rows(encoder.encode_queries(texts)),
        normalize_rows(questions.encode(texts)),
        atol=1e-6,
    )
    assert info.digest not in (passages.digest(), questions.digest())
    assert not hasattr(load_encoder(prompted)[0], "encode_queries")
    with pytest.raises(ConfigError, match=r"two towers .* dim"):
        load_encoder(str(tmp_path / "towers"), dim=4)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_two_towers_are_measured_in_the_dtype(tmp_path, prompted, word_vocabulary, dtype):
    passages, questions = Encoder.load(prompted), Encoder.load(prompted)
    with torch.no_grad():
        for weight in questions.parameters():
            weight.mul_(0.9)
    DualEncoder(passages, questions).save(tmp_path / "towers")
    encoder, info = load_encoder(str(tmp_path / "towers"), dtype=dtype)
    texts = ["de1 de2", "en7"]
    how = {"dtype": dtype, "normalize": passages.settings.normalize}
    assert info.dtype == dtype
    np.testing.assert_array_equal(
        encoder.encode_passages(texts), passages.encode(texts, prompt="passage", **how)
    )
    np.testing.assert_array_equal(
        encoder.encode_queries(texts), questions.encode(texts, prompt="query", **how)
    )
    assert not np.array_equal(
        encoder.encode_passages(texts),
        load_encoder(str(tmp_path / "towers"))[0].encode_passages(texts),
    )
