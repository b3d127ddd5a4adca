from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
import torch

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError, ConfigError, MissingExtraError
from interlingua.evaluation.encoders import FunctionEncoder, import_function, load_encoder, model_name
from interlingua.evaluation.metrics.retrieval import normalized
from interlingua.evaluation.provenance import prompt_text


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
        ({"device": "toaster"}, "device 'toaster' can't be used here"),
        ({"device": "cuda:77"}, "device 'cuda:77' can't be used here"),
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


@pytest.mark.parametrize("prompt", [None, "passage", "en3 ", ""])
def test_sentence_transformers_reads_prompts_as_we_do(prompted, prompt):
    pytest.importorskip("sentence_transformers")
    ours, _ = load_encoder(prompted)
    theirs, info = load_encoder(prompted, backend="sentence-transformers")
    assert (
        prompt_text(theirs, prompt)
        == prompt_text(ours, prompt)
        == {None: "en1 ", "passage": "en2 "}.get(prompt, prompt)
    )
    texts = ["de1 de2", "en7 en8 en9", "de5"]
    unit = normalized(ours.encode(texts, prompt=prompt))
    np.testing.assert_allclose(normalized(theirs.encode(texts, prompt=prompt)), unit, atol=1e-5)
    assert (info.name, info.pooling, info.dim, info.max_tokens) == ("prompted", "mean", ours.dim, ours.info.max_tokens)


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
    with pytest.raises(ConfigError, match="two towers is measured in float32"):
        load_encoder(str(tmp_path / "towers"), dtype="bfloat16")


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
