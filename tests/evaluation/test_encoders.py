from __future__ import annotations

import dataclasses
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError, ConfigError
from interlingua.evaluation import encoders
from interlingua.evaluation.encoders import (
    backend_settings,
    encode_and_identity,
    encode_by_name,
    load_encoder,
    model_name,
)
from interlingua.evaluation.metrics.retrieval import normalized


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"backend": "onx"},
            "backend 'onx' is not one of interlingua, sentence-transformers, onnx, openai, vectors, fu",
        ),
        ({"dtype": "int4"}, "dtype 'int4' is not one of float32, bfloat16, float16, int8"),
        ({"pooling": "sum"}, "pooling 'sum' is not one of"),
        ({"device": "toaster"}, "device 'toaster' can't be used here"),
        ({"device": "cuda:77"}, "device 'cuda:77' can't be used here"),
        ({"pooling": "cls", "backend": "sentence-transformers"}, "sentence-transformers brings its own pooling; drop"),
        ({"dtype": "float16", "backend": "function"}, "the backend function brings its own dtype; drop the dtype"),
        ({"device": "cpu", "backend": "vectors"}, "the backend vectors brings its own device; drop the device option"),
        ({"dim": 8, "backend": "onnx"}, "the backend onnx brings its own dim; drop the dim option"),
        ({"options": {"threads": 2}}, "--set interlingua: unknown key 'threads'"),
    ],
)
def test_choices_that_dont_go_are_said_before_anything_is_loaded(choice, message):
    with pytest.raises(ConfigError, match=message):
        load_encoder("nowhere", **choice)


def test_no_such_model(tmp_path):
    with pytest.raises(CheckpointError, match="no such model directory"):
        load_encoder(str(tmp_path / "none"))


@pytest.fixture
def prompted(tmp_path, word_vocabulary):
    """A model that puts "en1 " before every text unless told otherwise."""
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    encoder = Encoder.from_scratch(config, word_vocabulary)
    settings = {"prompts": {"query": "en1 ", "passage": "en2 "}, "default_prompt": "query", "normalize": False}
    encoder.settings = dataclasses.replace(encoder.settings, **settings)
    encoder.save(tmp_path / "prompted")
    return str(tmp_path / "prompted")


def test_other_pooling_and_dtype(prompted):
    vectors = {}
    for options in ({}, {"pooling": "cls"}, {"dtype": "bfloat16"}):
        encoder, info = load_encoder(prompted, **options)
        vectors[info.overrides] = encoder.encode(["de1 de2 de3"], prompt="")[0]
        assert (info.pooling, info.dtype) == (options.get("pooling", "mean"), options.get("dtype", "float32"))
    plain, cls, half = vectors.values()
    assert list(vectors) == [(), ("pooling=cls",), ("dtype=bfloat16",)]
    assert np.dot(plain, cls) < 0.99
    assert 0.999 < np.dot(plain, half) < 1 - 1e-9


def test_fewer_elements(prompted):
    encoder, info = load_encoder(prompted, dim=8)
    assert (encoder.dim, encoder.whole_dim, info.dim, info.overrides) == (8, 32, 8, ("dim=8",))
    assert np.array_equal(encoder.encode(["de1 de2"]), Encoder.load(prompted).encode(["de1 de2"], dim=8))
    with pytest.raises(ConfigError, match="dim is 33, but the model's vectors have 32"):
        load_encoder(prompted, dim=33)


def test_where_the_pooling_is_known_from(prompted, tmp_path):
    assert load_encoder(prompted)[1].pooling_from == "model"
    assert load_encoder(prompted, pooling="mean")[1].pooling_from == "asked"
    plain = tmp_path / "plain"
    shutil.copytree(prompted, plain)
    for name in ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"):
        (plain / name).unlink()
    shutil.rmtree(plain / "1_Pooling")
    info = load_encoder(str(plain))[1]
    assert (info.pooling, info.pooling_from, info.normalized) == ("mean", "assumed", False)


def test_options_of_the_backend_are_told_from_those_of_tasks():
    settings = ["stsb.split=dev", "openai.dimensions=256", 'openai.base_url = "http://x/v1"', "retrieval.bm25=true"]
    own, left = backend_settings(settings, "openai")
    assert own == {"dimensions": 256, "base_url": "http://x/v1"}
    assert left == ["stsb.split=dev", "retrieval.bm25=true"]
    assert backend_settings([], "onnx") == ({}, [])
    with pytest.raises(ConfigError, match=r"the backend is onnx; drop the option or say --backend openai"):
        backend_settings(settings, "onnx")


def test_names(tmp_path):
    (tmp_path / "ems" / "best").mkdir(parents=True)
    (tmp_path / "me5").mkdir()
    assert model_name(str(tmp_path / "ems" / "best")) == "ems-best"
    assert model_name(str(tmp_path / "me5")) == "me5"
    assert model_name("intfloat/multilingual-e5-small") == "intfloat/multilingual-e5-small"


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
        normalized(encoder.encode_queries(texts)), normalized(questions.encode(texts)), atol=1e-6
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
    np.testing.assert_array_equal(encoder.encode_passages(texts), passages.encode(texts, prompt="passage", **how))
    np.testing.assert_array_equal(encoder.encode_queries(texts), questions.encode(texts, prompt="query", **how))
    assert not np.array_equal(
        encoder.encode_passages(texts), load_encoder(str(tmp_path / "towers"))[0].encode_passages(texts)
    )


def test_the_run_that_made_the_model_is_known(prompted, tmp_path):
    run = tmp_path / "run"
    Encoder.load(prompted).save(run / "best")
    (run / "config.toml").write_text('[method]\nname = "ems"\n[run]\nseed = 4\n')
    (run / "metrics.jsonl").write_text('{"kind": "final", "step": 9, "exposure": {"deu_Latn-eng_Latn": 90}}\n')
    training = load_encoder(str(run / "best"))[1].training
    assert {key: training[key] for key in ("method", "seed", "step", "pairs")} == {
        "method": "ems", "seed": 4, "step": 9, "pairs": 90,
    }  # fmt: skip
    assert load_encoder(prompted)[1].training is None


PLAIN = {"backend": "interlingua", "dtype": None, "device": "cpu", "settings": (), "prompt": None, "batch_tokens": 100}


def test_vectors_and_what_tells_the_model(prompted):
    texts = ["de1 de2", "en3"]
    encode, identity = encode_and_identity(str(prompted), **PLAIN)
    expected = Encoder.load(prompted).encode(texts)
    np.testing.assert_array_equal(encode(texts), expected)
    assert identity != encode_and_identity(str(prompted), **PLAIN | {"prompt": "ru1 "})[1]
    assert identity != encode_and_identity(str(prompted), **PLAIN | {"dtype": "bfloat16"})[1]
    encode, nothing = encode_and_identity(str(prompted), **PLAIN, identified=False)
    np.testing.assert_array_equal(encode(texts), expected)
    assert nothing == ""
    with pytest.raises(ConfigError, match=r"--set a\.b=1: expected BACKEND\.OPTION=VALUE"):
        encode_and_identity(str(prompted), **PLAIN | {"settings": ["a.b=1"]})


def test_a_model_that_goes_by_its_name_is_loaded_once_where_it_works(prompted, monkeypatch):
    texts, loaded, real = ["de1 de2", "en3"], [], encoders.encode_function
    monkeypatch.setattr(encoders, "encode_function", lambda *at, **how: loaded.append(at) or real(*at, **how))
    monkeypatch.chdir(Path(prompted).parent)
    encoders._kept.cache_clear()
    encode, identity = encode_and_identity(Path(prompted).name, **PLAIN, elsewhere=True)
    assert identity == encode_and_identity(str(prompted), **PLAIN)[1]
    monkeypatch.chdir("/")  # another machine's working directory
    sent = pickle.loads(pickle.dumps(encode))
    for _ in range(2):
        np.testing.assert_array_equal(sent(texts), Encoder.load(prompted).encode(texts))
    assert loaded == [(str(prompted),)]
    np.testing.assert_array_equal(
        encode_by_name(texts, model=str(prompted), device="cpu", normalize=False),
        Encoder.load(prompted).encode(texts, normalize=False),
    )
    encoders._kept.cache_clear()
