from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import TaskError
from interlingua.evaluation.cache import CachedEncoder


def test_each_text_is_embedded_once_and_comes_back_in_order(number_encoder):
    with CachedEncoder(number_encoder, prompt="query: ", batch_tokens=100) as cached:
        first = cached.encode(["one 1", "two 2", "one 1"], language="eng_Latn")
        again = cached.encode(["three 3", "two 2"], language="eng_Latn")
    assert number_encoder.texts == ["one 1", "two 2", "three 3"]
    assert number_encoder.calls == [("query: ", "eng_Latn", 100)] * 2
    expected = [number_encoder.vector(text).astype(np.float32) for text in ("1", "2", "1", "3", "2")]
    assert np.array_equal(np.concatenate([first, again]), expected)
    assert (cached.encoded_texts, cached.reused_texts) == (3, 2)


def test_a_text_in_two_languages_is_two_texts(number_encoder):
    with CachedEncoder(number_encoder) as cached:
        cached.encode(["OK 1"], language="eng_Latn")
        cached.encode(["OK 1"], language="deu_Latn")
    assert number_encoder.texts == ["OK 1", "OK 1"]


class Wrong:
    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts, **_):
        return self.vectors


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((1, 4)), r"shape \(1, 4\), expected \(2, d\)"),
        (np.ones(2), r"shape \(2,\), expected \(2, d\)"),
        (np.array([[1.0], [np.nan]]), r"NaN or infinity for 1 of 2 texts, first 'b'"),
    ],
)
def test_unusable_vectors_are_one_line(vectors, message):
    with CachedEncoder(Wrong(vectors)) as cached, pytest.raises(TaskError, match=message):
        cached.encode(["a", "b"])


def test_a_width_that_changes_is_noticed():
    encoder = Wrong(np.ones((1, 4)))
    with CachedEncoder(encoder) as cached:
        cached.encode(["a"])
        encoder.vectors = np.ones((1, 5))
        with pytest.raises(TaskError, match=r"shape \(1, 5\), expected \(1, 4\)"):
            cached.encode(["b"])
