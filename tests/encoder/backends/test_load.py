from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from interlingua.encoder.backends import load
from interlingua.encoder.backends.load import (
    backend_settings,
    encode_and_identity,
    encode_by_name,
    load_encoder,
    model_name,
)
from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError, ConfigError


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"backend": "onx"}, "backend 'onx'; .*'onnx'"),
        ({"dtype": "int4"}, "dtype 'int4'; .*float32, bfloat16, float16, tf32, int8"),
        ({"pooling": "sum"}, "pooling 'sum'"),
        ({"device": "toaster"}, "device 'toaster'"),
        ({"device": "cuda:77"}, "device 'cuda:77'"),
        ({"pooling": "cls", "backend": "sentence-transformers"}, "transformers .* own pooling"),
        ({"dtype": "float16", "backend": "function"}, "function .* own dtype"),
        ({"device": "cpu", "backend": "vectors"}, "vectors .* own device"),
        ({"dim": 8, "backend": "onnx"}, "onnx .* own dim"),
        ({"options": {"threads": 2}}, "--set interlingua: unknown key 'threads'"),
    ],
)
def test_choices_that_dont_go_are_said_before_anything_is_loaded(choice, message):
    with pytest.raises(ConfigError, match=message):
        load_encoder("nowhere", **choice)


def test_no_such_model(tmp_path):
    with pytest.raises(CheckpointError, match="model folder not found"):
        load_encoder(str(tmp_path / "none"))


def test_options_of_the_backend_are_told_from_those_of_tasks():
    settings = [
        "stsb.split=dev",
        "openai.dimensions=256",
        'openai.base_url = "http://x/v1"',
        "retrieval.bm25=true",
    ]
    own, left = backend_settings(settings, "openai")
    assert own == {"dimensions": 256, "base_url": "http://x/v1"}
    assert left == ["stsb.split=dev", "retrieval.bm25=true"]
    assert backend_settings([], "onnx") == ({}, [])
    with pytest.raises(ConfigError, match=r"backend is onnx; .*--backend openai"):
        backend_settings(settings, "onnx")


def test_names(tmp_path):
    (tmp_path / "ems" / "best").mkdir(parents=True)
    (tmp_path / "me5").mkdir()
    assert model_name(str(tmp_path / "ems" / "best")) == "ems-best"
    assert model_name(str(tmp_path / "me5")) == "me5"
    assert model_name("intfloat/multilingual-e5-small") == "intfloat/multilingual-e5-small"


def test_the_run_that_made_the_model_is_known(prompted, tmp_path):
    run = tmp_path / "run"
    Encoder.load(prompted).save(run / "best")
    (run / "config.toml").write_text('[method]\nname = "ems"\n[run]\nseed = 4\n')
    (run / "metrics.jsonl").write_text(
        '{"kind": "final", "step": 9, "exposure": {"deu_Latn-eng_Latn": 90}}\n'
    )
    training = load_encoder(str(run / "best"))[1].training
    expected = {"method": "ems", "seed": 4, "step": 9, "pairs": 90}
    assert {key: training[key] for key in expected} == expected
    assert load_encoder(prompted)[1].training is None


PLAIN = {"backend": "interlingua", "dtype": None, "device": "cpu", "settings": ()}
PLAIN |= {"prompt": None, "batch_tokens": 100}


def test_vectors_and_what_tells_the_model(prompted):
    texts = ["de1 de2", "en3"]
    encode, identity = encode_and_identity(prompted, **PLAIN)
    expected = Encoder.load(prompted).encode(texts)
    np.testing.assert_array_equal(encode(texts), expected)
    assert identity != encode_and_identity(prompted, **PLAIN | {"prompt": "ru1 "})[1]
    assert identity != encode_and_identity(prompted, **PLAIN | {"dtype": "bfloat16"})[1]
    encode, nothing = encode_and_identity(prompted, **PLAIN, identified=False)
    np.testing.assert_array_equal(encode(texts), expected)
    assert nothing == ""
    with pytest.raises(ConfigError, match=r"--set a\.b=1: expected BACKEND\.OPTION=VALUE"):
        encode_and_identity(prompted, **PLAIN | {"settings": ["a.b=1"]})


def test_a_model_that_goes_by_its_name_is_loaded_once_where_it_works(prompted, monkeypatch):
    texts, loaded, real = ["de1 de2", "en3"], [], Encoder.load
    monkeypatch.chdir(Path(prompted).parent)
    load._kept_encode_function.cache_clear()
    encode, identity = encode_and_identity(Path(prompted).name, **PLAIN, elsewhere=True)
    assert identity == encode_and_identity(prompted, **PLAIN)[1]
    monkeypatch.chdir("/")  # another machine's working directory
    sent, expected = pickle.loads(pickle.dumps(encode)), real(prompted).encode(texts)
    monkeypatch.setattr(Encoder, "load", lambda *at: loaded.append(at) or real(*at))
    for _ in range(2):
        np.testing.assert_array_equal(sent(texts), expected)
    assert loaded == [(prompted,)]
    np.testing.assert_array_equal(
        encode_by_name(texts, model=prompted, device="cpu", normalize_embeddings=False),
        Encoder.load(prompted).encode(texts, normalize_embeddings=False),
    )
    load._kept_encode_function.cache_clear()
