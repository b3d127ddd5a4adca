"""Line-aligned texts and encoders made on the spot."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.analysis.subject import Subject
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.encoders import OwnEncoder
from interlingua.evaluation.provenance import ModelInfo
from tests.encoder.conftest import tiny_vocabulary

LINES = {
    "eng_Latn": ["The cat sits on the mat.", "One two three four.", "Yes.", "The cat is seven."],
    "deu_Latn": ["Die Katze sitzt auf der Matte.", "Eins zwei drei vier.", "Ja.", "Die Katze ist sieben."],
    "fra_Latn": ["Le chat est assis sur le tapis.", "Un deux trois quatre.", "Oui.", "Le chat a sept ans."],
}
LANGUAGES = tuple(sorted(LINES))


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def random_vectors(languages=3, lines=7, width=5, *, seed=0, shared=1.0):
    """Translations share a part; the rest is each one's own."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((1, lines, width))
    return unit(shared * common + rng.standard_normal((languages, lines, width)))


def write_lines(folder, lines=LINES):
    folder.mkdir(parents=True, exist_ok=True)
    for code, texts in lines.items():
        (folder / f"{code}.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_lines(tmp_path / "flores200_devtest")


@pytest.fixture
def framed_encoder():
    """Three layers over a vocabulary that puts <s> and </s> around a text, pooling its first token."""
    torch.manual_seed(0)
    vocabulary = tiny_vocabulary(frame=True)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    return Encoder.from_scratch(config, vocabulary, "cls").eval()


@pytest.fixture
def subject(framed_encoder):
    own = OwnEncoder(framed_encoder, name="tiny")
    with CachedEncoder(own) as cached:
        yield Subject(cached, own.info, "", framed_encoder, 64)


class Fixed:
    """Looks vectors up by text."""

    def __init__(self, vectors, lines=LINES):
        self.table = {
            text: vector for rows, texts in zip(vectors, (lines[c] for c in sorted(lines)), strict=True)
            for vector, text in zip(rows, texts, strict=True)
        }  # fmt: skip
        self.dim = vectors.shape[2]

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        return np.stack([self.table[text] for text in texts])


def fixed_subject(vectors):
    return Subject(Fixed(vectors), ModelInfo(name="fixed", digest=None, library="test"))
