"""Search among codes: the decoded vectors are searched exactly, and results are ranked exactly."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.vector_format import Int8Ranges, quantize_vectors
from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.topk import approximate
from interlingua.retrieval.topk.approximate import CodedVectors, rescored_topk
from interlingua.retrieval.topk.exact import exact_topk
from tests.retrieval.topk.scanners import assert_equal, crowded, oracle

QUERIES, CANDIDATES = crowded(0, 40, 300, 24)
CENTERED = tuple(side - CANDIDATES.mean(axis=0) for side in (QUERIES, CANDIDATES))


def naive_signs(vectors):
    return np.where(vectors > 0, 1.0, -1.0).astype(np.float32)


@pytest.mark.parametrize("precision", ["binary", "ubinary"])
def test_bits_are_searched_by_their_signs(precision):
    queries, candidates = CENTERED
    found = rescored_topk(queries, quantize_vectors(candidates, precision), None, k=7)
    values, indices = oracle(queries, naive_signs(candidates), 7)
    assert np.array_equal(found.indices, indices)
    assert np.array_equal(found.similarities, values)


def test_signs_on_both_sides_rank_by_the_hamming_distance():
    queries, candidates = CENTERED
    found = rescored_topk(queries, quantize_vectors(candidates, "ubinary"), None, k=7, signs=True)
    bits = [quantize_vectors(side, "ubinary") for side in (queries, candidates)]
    distances = np.array([[int(np.unpackbits(a ^ b).sum()) for b in bits[1]] for a in bits[0]])
    assert np.array_equal(found.indices, np.argsort(distances, axis=1, kind="stable")[:, :7])
    near = np.take_along_axis(distances, found.indices.numpy(), axis=1)
    assert np.array_equal(found.similarities, 24 - 2 * near)


def test_int8_is_searched_by_its_steps():
    ranges = Int8Ranges.of(CANDIDATES)
    codes = quantize_vectors(CANDIDATES, "int8", ranges)
    found = rescored_topk(QUERIES, codes, None, k=5, ranges=ranges)
    stands_for = (codes.astype(np.float32) + 128) * ranges.steps + ranges.starts
    assert np.array_equal(found.indices, oracle(QUERIES, stands_for, 5)[1])


@pytest.mark.parametrize("precision", ["int8", "binary"])
def test_with_all_candidates_rescored_the_search_is_exact(precision):
    codes = CodedVectors.of(CANDIDATES, precision)
    found = rescored_topk(QUERIES, codes, CANDIDATES, k=5, rescore=300)
    assert_equal([found], [exact_topk(QUERIES, CANDIDATES, k=5)])


def test_rescoring_ranks_what_was_found_by_the_vectors():
    """Use vectors with the query's signs: bits take the first, but the second is nearer."""
    query = np.array([[1.0, 0.1]], np.float32)
    vectors = np.array([[0.1, 1.0], [1.0, 0.1], [-1.0, -1.0]], np.float32)
    codes = CodedVectors.of(vectors, "binary")
    assert rescored_topk(query, codes, None, k=1).indices.tolist() == [[0]]
    assert rescored_topk(query, codes, vectors, k=1, rescore=2).indices.tolist() == [[1]]


def test_more_candidates_find_more():
    queries, candidates = CENTERED
    codes = CodedVectors.of(candidates, "binary")
    expected = exact_topk(queries, candidates, k=5).indices.numpy()
    shares = []
    for rescore in (5, 20, 80, 300):
        found = rescored_topk(queries, codes, candidates, k=5, rescore=rescore)
        both = zip(found.indices.tolist(), expected.tolist(), strict=True)
        shares.append(sum(len(set(a) & set(b)) for a, b in both) / expected.size)
    assert shares == sorted(shares)
    assert shares[0] < shares[-1] == 1.0


def test_ranges_are_measured_block_by_block(monkeypatch):
    monkeypatch.setattr(approximate, "BLOCK", 77)
    table = CodedVectors.of(CANDIDATES, "int8")
    assert table.ranges == Int8Ranges.of(CANDIDATES)
    assert np.array_equal(table.codes, quantize_vectors(CANDIDATES, "int8", table.ranges))


def test_vectors_of_another_table_are_refused():
    codes = CodedVectors.of(CANDIDATES, "binary")
    for vectors in (None, CANDIDATES[:10]):
        with pytest.raises(DataError, match="rescoring requires"):
            rescored_topk(QUERIES, codes, vectors, k=1, rescore=2)
    for codes, error, message in (
        (np.zeros((3, 2), np.uint8), DataError, "of width 24"),
        (np.zeros(3, np.uint8), DataError, "row of codes"),
        (np.zeros((3, 24), np.int8), ConfigError, "ranges"),
    ):
        with pytest.raises(error, match=message):
            rescored_topk(QUERIES, codes, None, k=1)
