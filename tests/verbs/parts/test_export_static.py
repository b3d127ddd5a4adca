from __future__ import annotations

import re
import shutil

import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.static import StaticBackbone
from tests.tiny import tiny_encoder

pytest.importorskip("sentence_transformers")


def test_token_vectors_are_trained_written_and_compared(done, word_vocabulary, prepared, tmp_path):
    tiny_encoder(word_vocabulary).save(tmp_path / "model")
    settings = (
        "run.max_steps=40",
        "run.global_batch_size=32",
        "run.device=cpu",
        "run.precision=fp32",
        "run.threads=1",
        "optimizer.learning_rate=0.05",
        "data.valid_pairs=32",
    )
    arguments = f"export {tmp_path}/model -o {tmp_path}/out --static --dtype int8"
    out = done(arguments, f"--corpus {prepared}", *(f"--set {key}" for key in settings)).out
    slow, fast = map(float, re.search(r"^mean +([\d.]+) +([\d.]+)$", out, re.MULTILINE).groups())
    assert slow < 30
    assert fast > 90
    assert re.search(r"[\d,]+ times as many texts per second: .*; +-[\d.]+ points of P@1 lost", out)
    encoder = Encoder.load(tmp_path / "out")
    assert isinstance(encoder.backbone, StaticBackbone)
    assert "| method | infonce |" in (tmp_path / "out" / "README.md").read_text()
    assert (tmp_path / "out-training" / "run" / "best").is_dir()


def test_a_corpus_without_texts_to_compare_on(done, word_vocabulary, prepared, tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(prepared, corpus)
    shutil.rmtree(corpus / "valid_text")
    tiny_encoder(word_vocabulary).save(tmp_path / "model")
    arguments = f"export {tmp_path}/model -o {tmp_path}/out --static --corpus {corpus}"
    settings = "--set run.max_steps=2 --set run.global_batch_size=8 --set data.valid_pairs=8"
    out = done(arguments, settings, "--set run.threads=1 --no-verify").out
    assert "written; not checked" in out
    assert "times as many" not in out
