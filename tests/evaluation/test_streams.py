from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.streams import stream_vectors


def test_portions_come_back_as_one_read_only_map():
    asked = []

    def encode(texts):
        asked.append(len(texts))
        return np.array([[float(text), 2.0] for text in texts])

    vectors = stream_vectors(encode, (str(n) for n in range(10)), portion=4)
    assert asked == [4, 4, 2]
    assert isinstance(vectors, np.memmap)
    assert vectors.tolist() == [[n, 2.0] for n in range(10)]
    with pytest.raises(ValueError, match="read-only"):
        vectors[0] = 0


def test_vectors_of_length_1():
    vectors = stream_vectors(lambda texts: np.array([[3.0, 4.0], [0.0, 0.0]]), ["a", "b"], normalize=True)
    assert vectors.tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, 0.0]]


def test_no_texts():
    with pytest.raises(DataError, match="no texts to embed"):
        stream_vectors(lambda texts: np.zeros((0, 1)), [])
