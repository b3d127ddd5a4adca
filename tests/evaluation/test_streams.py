from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.streams import keep_vectors, stream_vectors
from interlingua.retrieval.topk.approximate import CodedVectors, rescored_topk
from interlingua.retrieval.topk.exact import exact_topk


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
    vectors = stream_vectors(
        lambda texts: np.array([[3.0, 4.0], [0.0, 0.0]]), ["a", "b"], normalize=True
    )
    assert vectors.tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, 0.0]]


def test_no_texts():
    with pytest.raises(DataError, match="texts to embed"):
        stream_vectors(lambda texts: np.zeros((0, 1)), [])
    with pytest.raises(DataError, match="texts to embed"):
        keep_vectors(lambda texts: np.zeros(0, np.int64), lambda rows: np.zeros((0, 1)), [])


@pytest.fixture(params=[True, False], ids=["normalized", "as given"])
def both(request, number_encoder):
    """The same texts as a separate file and as rows of the cache, some repeated or reordered."""
    texts = [f"text {number}" for number in [5, 3, *range(40), 7, 7]]
    with CachedEncoder(number_encoder) as cached:
        cached.encode(["text 90", "text 12"])
        streamed = stream_vectors(cached.encode, texts, normalize=request.param, portion=9)
        kept = keep_vectors(cached.keep, cached.kept, texts, normalize=request.param, portion=9)
        yield streamed, kept


def test_kept_vectors_read_as_the_stream_bit_for_bit(both):
    streamed, kept = both
    assert (kept.shape, kept.ndim, len(kept), kept.dtype) == (streamed.shape, 2, 44, streamed.dtype)
    places = [
        slice(None),
        slice(3, 30),
        slice(0, 44, 7),
        np.array([9, 2, 2, 40]),
        -1,
        slice(10, 10),
    ]
    for place in places:
        assert np.array_equal(kept[place], streamed[place])
    assert np.array_equal(np.asarray(kept), streamed)
    assert np.asarray(kept, dtype=np.float64).dtype == np.float64
    assert np.array_equal(np.stack(list(kept)), streamed)


def test_a_search_among_kept_vectors_equals_one_in_a_map(both):
    streamed, kept = both
    queries = np.ascontiguousarray(streamed[4:9]) + np.float32(0.1)
    for block in (5, 100):
        expected = exact_topk(queries, streamed, k=10, columns=block)
        found = exact_topk(queries, kept, k=10, columns=block)
        assert np.array_equal(found.similarities, expected.similarities)
        assert np.array_equal(found.indices, expected.indices)
    for precision in ("int8", "ubinary"):
        tables = [(CodedVectors.of(vectors, precision), vectors) for vectors in both]
        one, other = (
            rescored_topk(queries, codes, vectors, k=5, rescore=9) for codes, vectors in tables
        )
        assert np.array_equal(one.similarities, other.similarities)
        assert np.array_equal(one.indices, other.indices)
