from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.subject import Subject
from interlingua.analysis.word_order import _SENTENCES, WordOrder
from interlingua.encoder.model_info import ModelInfo


class Two:
    def __init__(self, first, second):
        self.table = dict(zip(_SENTENCES, (first, second), strict=True))

    def encode(self, texts, *, language=None):
        assert language == "eng_Latn"
        return np.array([self.table[text] for text in texts], dtype=np.float32)


@pytest.mark.parametrize(
    ("second", "cosine"),
    [([3.0, 4.0], 0.6), ([0.0, 2.0], 0.0), ([7.0, 0.0], 1.0), ([-1.0, 0.0], -1.0)],
)
def test_the_cosine(tmp_path, second, cosine):
    found = WordOrder().run(
        Subject(Two([2.0, 0.0], second), ModelInfo(name="m", digest=None, library="")), tmp_path
    )
    assert found["word_order_cosine"].value == pytest.approx(cosine)
    assert "LASER 0.90, LaBSE 0.95, SBERT-distill 0.97, EMS 0.97" in found.notes[0]


def test_the_sentences_are_the_papers():
    assert all(sentence == sentence.lower() for sentence in _SENTENCES)
    words = [sorted(sentence.rstrip("?").split()) for sentence in _SENTENCES]
    assert set(words[0]) ^ set(words[1]) == {"steal", "saved", "save", "stole"}


def test_a_bag_of_words_hardly_tells_them_apart(tmp_path):
    words = sorted({word for sentence in _SENTENCES for word in sentence.rstrip("?").split()})
    counts = [
        [sentence.rstrip("?").split().count(word) for word in words] for sentence in _SENTENCES
    ]
    found = WordOrder().run(
        Subject(Two(*counts), ModelInfo(name="m", digest=None, library="")), tmp_path
    )
    assert found["word_order_cosine"].value > 0.85
