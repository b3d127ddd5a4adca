from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.post_pooling import Dense
from interlingua.errors import ConfigError, MissingExtraError
from interlingua.exporters.gguf import write_gguf
from interlingua.exporters.graphs import export_graphs
from interlingua.exporters.runtimes import LlamaCppRuntime
from interlingua.exporters.sentence_transformers import ExportSettings
from interlingua.exporters.verify import SAMPLES
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.builders import closeness, with_layers
from tests.encoder.conftest import FRAME, ROLES
from tests.encoder.growing import trained_wordpiece
from tests.encoder.shapes import JINA_BERT

gguf = pytest.importorskip("gguf")
TEXTS = [text for texts in SAMPLES.values() for text in texts]
SHORT = [text for text in TEXTS if len(text) < 200]


def unigram(normalizer=None):
    """Build a vocabulary like XLM-R's: pieces with a space mark, <s> and </s>, a final mask."""
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=names, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens(["<mask>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return Vocabulary(tokenizer.to_str(), special_tokens={**ROLES, **FRAME})


def word_piece(**options):
    return trained_wordpiece(TEXTS, 400, **options)


def encoder_of(vocabulary, pooling="mean", **shape):
    torch.manual_seed(0)
    config = BackboneConfig(
        vocab_size=vocabulary.size,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=96,
        pad_token_id=vocabulary.pad_id,
        max_position_embeddings=80,
        **shape,
    )
    encoder = Encoder.from_scratch(config, vocabulary, pooling, initialization="bert").eval()
    for parameter in encoder.backbone.parameters():
        if parameter.ndim == 2:
            parameter.data *= 10  # vectors that differ by more than rounding
    return encoder


@pytest.mark.parametrize(
    ("dtype", "file"), [("float32", "F32"), ("float16", "F16"), ("int8", "Q8_0")]
)
def test_llama_cpp_gives_the_vectors_of_the_export(tmp_path, dtype, file):
    pytest.importorskip("xllamacpp")
    encoder = encoder_of(unigram(), type_vocab_size=2)
    encoder.settings = dataclasses.replace(encoder.settings, prompts={"query": "ask: "})
    encoder.save(tmp_path / "model")
    settings = ExportSettings(dtype=dtype)
    found = export_graphs(tmp_path / "model", tmp_path / "out", ("gguf",), settings)
    assert list(found.lowest) == ["llama.cpp"]
    there = LlamaCppRuntime(tmp_path / "out", tmp_path / "out" / f"model-{file}.gguf")
    own = encoder.encode(SHORT, prompt="query")
    assert closeness(there.encode(SHORT, prompt="query"), own) > 1 - there.tolerance
    others = there.encode([*SHORT[1:], SHORT[0]], prompt="query")
    assert (others * own).sum(axis=1).max() < 0.999


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("make", [unigram, word_piece])
def test_tokenizers_and_poolings_of_llama_cpp(tmp_path, make, pooling):
    pytest.importorskip("xllamacpp")
    model_type = "xlm-roberta" if make is unigram else "bert"
    encoder = encoder_of(make(), pooling, model_type=model_type)
    encoder.save(tmp_path / "out", weights=False)
    write_gguf(encoder, tmp_path / "out" / "model-F32.gguf", name="m", dtype="float32")
    there = LlamaCppRuntime(tmp_path / "out", tmp_path / "out" / "model-F32.gguf")
    # With WordPiece llama.cpp keeps vowel signs (Hindi, Thai) and syllables (Korean), which BERT's
    # takes apart.
    codes = [code for code in SAMPLES if make is unigram or code.endswith(("Latn", "Cyrl", "Grek"))]
    texts = [text for code in codes for text in SAMPLES[code]]
    assert closeness(there.encode(texts, prompt=None), encoder.encode(texts)) > 1 - 1e-3


def test_matrices_are_stored_in_the_dtype_and_the_rest_in_float32(tmp_path):
    encoder = encoder_of(unigram())
    write_gguf(encoder, tmp_path / "m.gguf", name="m", dtype="float16")
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    kinds = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert kinds["blk.1.attn_q.weight"] == kinds["token_embd.weight"] == "F16"
    others = ("blk.1.attn_q.bias", "token_types.weight", "token_embd_norm.weight")
    assert {kinds[name] for name in others} == {"F32"}
    assert len(kinds) == len(encoder.backbone.state_dict()) + 1  # token types
    tensors = {tensor.name: tensor.data for tensor in reader.tensors}
    query = encoder.backbone.layers[1].query.weight.detach().numpy()
    assert np.array_equal(tensors["blk.1.attn_q.weight"], query.astype(np.float16))


def test_the_card_names_the_file(tmp_path):
    encoder_of(unigram()).save(tmp_path / "model")
    settings = ExportSettings(dtype="float16", check=False)
    export_graphs(tmp_path / "model", tmp_path / "out", ("gguf",), settings)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "model-F16.gguf" in card
    assert "library_name: gguf" in card


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"pooling": "max"}, "pooling"),
        ({"include_special": False}, "pooling"),
        ({"truncate_dim": 8}, "truncate-dim"),
    ],
)
def test_settings_that_llama_cpp_lacks_are_refused(tmp_path, change, named):
    encoder = encoder_of(unigram())
    encoder.settings = dataclasses.replace(encoder.settings, **change)
    with pytest.raises(ConfigError, match=named):
        write_gguf(encoder, tmp_path / "m.gguf", name="m")


def test_shapes_that_llama_cpp_lacks_are_refused(encoder, static_encoder, tmp_path):
    refused = {
        "token vectors": static_encoder,
        "found jina_bert": encoder_of(unigram(), **JINA_BERT),
        "gelu": encoder,
        "layers after pooling": with_layers(encoder_of(unigram()), Dense(64, 64)),
        "keeps case": encoder_of(word_piece(lowercase=False)),
        "NFKC": encoder_of(unigram(normalizers.NFKC())),
    }
    for named, model in refused.items():
        with pytest.raises(ConfigError, match=named):
            write_gguf(model, tmp_path / "m.gguf", name="m")
    assert not (tmp_path / "m.gguf").exists()


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[gguf\]"):
        write_gguf(encoder_of(unigram()), tmp_path / "m.gguf", name="m")
