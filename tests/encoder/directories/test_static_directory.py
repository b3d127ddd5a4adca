from __future__ import annotations

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from interlingua.encoder.directories.model_directory import is_ours
from interlingua.encoder.directories.static_directory import int8_rows, static_folder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.static import StaticBackbone
from interlingua.errors import CheckpointError
from tests.encoder.builders import add_module
from tests.encoder.test_static import TEXTS


@pytest.mark.parametrize(
    ("dtype", "closeness"),
    [(None, 0), (torch.float16, 1e-6), (torch.bfloat16, 1e-4), (torch.int8, 1e-4)],
)
def test_what_is_saved_is_read_back_and_sentence_transformers_reads_the_same(
    static, tmp_path, dtype, closeness
):
    stock = pytest.importorskip("sentence_transformers")
    static.settings = dataclasses.replace(static.settings, prompts={"query": "ask: "})
    static.save(tmp_path / "m", dtype=dtype)
    back = Encoder.load(tmp_path / "m")
    assert isinstance(back.backbone, StaticBackbone)
    assert back.settings == static.settings
    assert (back.digest() == static.digest()) == (dtype is None)
    for prompt in (None, "query"):
        kept = (back.encode(TEXTS, prompt=prompt) * static.encode(TEXTS, prompt=prompt)).sum(axis=1)
        # A blank text has the zero vector, with a prompt too.
        assert (kept > 1 - closeness - 1e-6).sum() == len(TEXTS) - 1
    theirs = stock.SentenceTransformer(str(tmp_path / "m"), device="cpu")
    theirs = theirs.float() if dtype is not None else theirs
    np.testing.assert_allclose(theirs.encode(TEXTS), back.encode(TEXTS), atol=1e-5)


def test_the_directory_is_ours_and_light(static, tmp_path):
    static.save(tmp_path / "m")
    static.save(tmp_path / "m", dtype=torch.int8)
    assert is_ours(tmp_path / "m")
    stored = load_file(tmp_path / "m" / "model.safetensors")
    dtypes = {name: tensor.dtype for name, tensor in stored.items()}
    assert dtypes == {"embeddings": torch.int8, "weights": torch.float32}
    static.save(tmp_path / "empty", weights=False)
    assert not (tmp_path / "empty" / "model.safetensors").exists()
    assert static_folder(tmp_path / "empty") == tmp_path / "empty"


def test_other_makers_tables(static, tmp_path):
    stock = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    table = static.backbone.word_embeddings.weight.detach()
    module = StaticEmbedding(static.vocabulary.tokenizer, embedding_weights=table)
    theirs = stock.SentenceTransformer(modules=[module], device="cpu")
    theirs.save(str(tmp_path / "theirs"))
    np.testing.assert_allclose(
        Encoder.load(tmp_path / "theirs").encode(TEXTS), static.encode(TEXTS), atol=1e-6
    )
    folder = tmp_path / "model2vec"
    folder.mkdir()
    (definition,) = (tmp_path / "theirs").rglob("tokenizer.json")
    shutil.copy(definition, folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    shared = {
        "embeddings": torch.cat([table, table[:1]]).half(),
        "mapping": torch.arange(len(table)),
        "weights": torch.full((len(table),), 2.0),
    }
    save_file(shared, folder / "model.safetensors")
    found = Encoder.load(folder)
    assert found.settings.normalize
    np.testing.assert_allclose(found.encode(TEXTS), static.encode(TEXTS), atol=2e-3)


def test_what_is_broken_is_named(static, tmp_path):
    static.save(tmp_path / "m")
    save_file({"other": torch.zeros(2, 2)}, tmp_path / "m" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"embedding\.weight .*1 tensors"):
        Encoder.load(tmp_path / "m")
    static.save(tmp_path / "m")
    add_module(tmp_path / "m", "LSTM")
    with pytest.raises(CheckpointError, match="module LSTM"):
        Encoder.load(tmp_path / "m")


def test_no_table_is_no_static_model(encoder, tmp_path):
    encoder.save(tmp_path / "m")
    assert static_folder(tmp_path / "m") is None
    assert static_folder(tmp_path) is None


def test_rows_are_rounded_to_the_nearest():
    rounded, scales = int8_rows(torch.tensor([[127.0, -63.6, 1], [0, 0, 0], [2.54, 0.011, 0]]))
    assert rounded.tolist() == [[127, -64, 1], [0, 0, 0], [127, 1, 0]]
    assert scales.tolist() == pytest.approx([1, 1, 0.02])
