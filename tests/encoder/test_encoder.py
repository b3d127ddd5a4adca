from __future__ import annotations

import copy
import gc
import logging
import pickle
import weakref

import numpy as np
import pytest
import torch

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder import snapshots
from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encoder import Encoder, choose_device
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import CheckpointError, ConfigError
from interlingua.vocabulary.trimming import ids_in_use
from tests.encoder.shapes import tiny_encoder

KINDS = ["ems", "bert", "roberta", "xlm-roberta"]


def make_encoder(kind, plain, framed):
    if kind == "ems":
        torch.manual_seed(2)
        config = BackboneConfig.preset("ems-tiny", vocab_size=plain.size)
        return Encoder.from_scratch(config, plain).eval()
    shape = {
        "num_hidden_layers": 2,
        "max_position_embeddings": 50,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
    }
    return tiny_encoder(framed, seed=2, model_type=kind, **shape)


@pytest.fixture(params=KINDS)
def any_encoder(request, plain_vocabulary, framed_vocabulary):
    return make_encoder(request.param, plain_vocabulary, framed_vocabulary)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
@pytest.mark.parametrize("include_special", [True, False])
def test_packed_is_padded_for_every_pooling(
    framed_encoder, sentences, pooling, include_special, tmp_path
):
    """Compare with the rectangle of Hugging Face: padded states, masked by hand."""
    transformers = pytest.importorskip("transformers")
    encoder = framed_encoder
    encoder.settings = EncodingSettings(
        pooling=pooling, include_special=include_special, max_tokens=64
    )
    batch = TokenBatch.from_lists(encoder.vocabulary.encode(sentences), [""] * len(sentences))
    ids, mask = batch.padded(encoder.vocabulary.pad_id)
    encoder.save(tmp_path / "m")
    model = transformers.AutoModel.from_pretrained(tmp_path / "m", add_pooling_layer=False).eval()
    states = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    if not include_special:
        frame = [encoder.vocabulary.tokenizer.token_to_id(token) for token in ("<s>", "</s>")]
        mask = mask & ~torch.isin(ids, torch.tensor(frame))
    expected = {
        "cls": states[:, 0],
        "mean": (states * mask[..., None]).sum(1) / mask.sum(1)[:, None],
        "max": states.masked_fill(~mask[..., None], -torch.inf).amax(1),
    }[pooling]
    assert (encoder(batch) - expected).abs().max() < 1e-5


def test_a_model_directory_is_read_back_bit_for_bit(any_encoder, sentences, tmp_path):
    any_encoder.save(tmp_path / "m")
    back = Encoder.load(tmp_path / "m")
    assert back.digest() == any_encoder.digest()
    assert back.settings == any_encoder.settings
    assert back.backbone.config == any_encoder.backbone.config
    assert np.array_equal(back.encode(sentences), any_encoder.encode(sentences))
    assert not back.training
    assert all(parameter.requires_grad for parameter in back.parameters())


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_through_sentence_transformers(
    kind, pooling, plain_vocabulary, framed_vocabulary, sentences, tmp_path, caplog
):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    encoder = make_encoder(kind, plain_vocabulary, framed_vocabulary)
    limit = 20
    encoder.settings = EncodingSettings(
        pooling=pooling, max_tokens=limit, prompts={"query": "cat: "}
    )
    assert any(len(ids) > limit for ids in encoder.vocabulary.encode(sentences))
    encoder.save(tmp_path / "m")
    logging.Logger.warning_once.cache_clear()  # transformers' own
    stock = sentence_transformers.SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
    for prompt in ("", "query"):
        theirs = stock.encode(sentences, prompt_name=prompt or None)
        assert (encoder.encode(sentences, prompt=prompt) * theirs).sum(1).min() > 1 - 1e-5
    assert stock.get_embedding_dimension() == encoder.dim
    assert stock.max_seq_length == limit


def test_transformers_reads_the_tokenizer(framed_encoder, sentences, tmp_path):
    transformers = pytest.importorskip("transformers")
    framed_encoder.save(tmp_path / "m")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    assert tokenizer(sentences)["input_ids"] == framed_encoder.vocabulary.encode(sentences)
    assert tokenizer.pad_token == "<pad>"
    assert tokenizer.cls_token_id == tokenizer(sentences[0])["input_ids"][0]


def test_weights_can_be_stored_in_half_precision(encoder, sentences, tmp_path):
    encoder.save(tmp_path / "whole")
    encoder.save(tmp_path / "half", dtype=torch.float16)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.7 * sizes[1]
    back = Encoder.load(tmp_path / "half")
    assert back.backbone.word_embeddings.weight.dtype == torch.float32
    assert (back.encode(sentences) * encoder.encode(sentences)).sum(1).min() > 1 - 1e-5


def test_saving_replaces_all_of_the_old_folder_that_is_ours(encoder, framed_encoder, tmp_path):
    framed_encoder.save(tmp_path / "m")
    (tmp_path / "m" / "notes.txt").write_text("mine")
    (tmp_path / "m" / "9_Dense").mkdir()
    encoder.save(tmp_path / "m")
    assert Encoder.load(tmp_path / "m").digest() == encoder.digest()
    assert (tmp_path / "m" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "m" / "9_Dense").exists()


def test_digest_sees_weights_and_vocabulary(encoder, plain_vocabulary, framed_vocabulary):
    before = encoder.digest()
    with torch.no_grad():
        encoder.backbone.layers[1].output.bias[3] += 1e-6
    assert encoder.digest() != before
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=framed_vocabulary.size)
    first = Encoder.from_scratch(config, framed_vocabulary)
    assert Encoder(first.backbone, plain_vocabulary).digest() != first.digest()


def test_from_scratch_follows_the_seed(plain_vocabulary):
    config = BackboneConfig.preset("ems-tiny", vocab_size=plain_vocabulary.size)
    digests = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        digests.append(Encoder.from_scratch(config, plain_vocabulary).digest())
    assert digests[0] == digests[1] != digests[2]


def test_a_vocabulary_too_large_is_refused(plain_vocabulary):
    config = BackboneConfig.preset("ems-tiny", vocab_size=plain_vocabulary.size - 1)
    with pytest.raises(ConfigError, match=f"vocabulary has {plain_vocabulary.size} entries"):
        Encoder.from_scratch(config, plain_vocabulary)


def test_trimming_keeps_the_vectors_of_kept_text(any_encoder, sentences, tmp_path):
    kept = sentences[:2]
    small = any_encoder.trim(ids_in_use(any_encoder.vocabulary, kept))
    assert small.vocabulary.size == small.backbone.config.vocab_size < any_encoder.vocabulary.size
    assert np.array_equal(small.encode(kept), any_encoder.encode(kept))
    small.save(tmp_path / "small")
    assert np.array_equal(Encoder.load(tmp_path / "small").encode(kept), any_encoder.encode(kept))
    with torch.no_grad():  # weights of its own
        small.backbone.layers[0].output.bias.add_(1)
    assert not np.array_equal(small.encode(kept), any_encoder.encode(kept))


def test_clone_has_weights_of_its_own(encoder):
    copy = encoder.clone()
    assert copy.digest() == encoder.digest()
    with torch.no_grad():
        encoder.backbone.word_embeddings.weight.add_(1)
    assert copy.digest() != encoder.digest()
    assert copy.vocabulary is encoder.vocabulary


@pytest.fixture
def made(monkeypatch):
    """The created snapshots, as weak references."""
    found, original = [], snapshots.freeze

    def noted(*arguments):
        frozen = original(*arguments)
        found.append(weakref.ref(frozen))
        return frozen

    monkeypatch.setattr(snapshots, "freeze", noted)
    return found


def test_weights_are_laid_out_once_until_they_change(encoder, sentences, made):
    before = encoder.encode(sentences)
    assert np.array_equal(encoder.encode(sentences), before)
    assert len(made) == 1
    copies = [encoder.clone(), copy.deepcopy(encoder)]
    with torch.no_grad():
        for layer in encoder.backbone.layers:
            layer.output.weight.mul_(2)
    assert np.abs(encoder.encode(sentences) - before).max() > 1e-3
    assert len(made) == 2
    for other in copies:
        assert np.array_equal(other.eval().encode(sentences), before)


def test_training_frees_what_was_laid_out(encoder, sentences, made):
    objective = torch.nn.ModuleDict({"student": encoder})
    encoder.encode(sentences)
    assert made[0]() is not None
    objective.train()
    gc.collect()
    assert made[0]() is None
    encoder.encode(sentences)
    gc.collect()
    assert made[1]() is None, "the weights of an encoder in training change all the time"


def test_what_was_laid_out_is_not_stored(encoder, sentences):
    keys, pickled = list(encoder.state_dict()), len(pickle.dumps(encoder))
    encoder.encode(sentences)
    assert list(encoder.state_dict()) == keys
    assert len(pickle.dumps(encoder)) == pickled


def test_unknown_and_mask_tokens_are_not_the_frame(framed_encoder):
    to_token = framed_encoder.vocabulary.tokenizer.id_to_token
    assert [*map(to_token, framed_encoder.special_ids.tolist())] == ["<pad>", "<s>", "</s>"]
    assert "special_ids" not in framed_encoder.state_dict()


def test_devices_that_are_not_there_are_named():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    for name in ("cuda:99", "tpu7"):
        with pytest.raises(ConfigError, match=f"device '{name}' cannot be"):
            choose_device(name)


def test_a_run_is_loaded_by_its_best_model_on_a_device(encoder, tmp_path):
    (tmp_path / "config.toml").write_text("")
    encoder.save(tmp_path / "best")
    loaded = Encoder.load(tmp_path, device="cpu")
    assert loaded.digest() == encoder.digest()
    assert Encoder.load(tmp_path, device="meta").device.type == "meta"
    with pytest.raises(ConfigError, match="device 'abacus'"):
        Encoder.load(tmp_path, device="abacus")


def test_a_model_of_zeros_is_refused(framed_encoder, tmp_path):
    with torch.no_grad():
        for weight in framed_encoder.backbone.parameters():
            weight.zero_()
    framed_encoder.save(tmp_path / "zeros")
    with pytest.raises(CheckpointError, match=r"word_embeddings\.weight"):
        Encoder.load(tmp_path / "zeros")
