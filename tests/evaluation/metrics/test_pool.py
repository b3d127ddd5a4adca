from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.metrics.pool import accuracy_by_pair, search_pool
from interlingua.evaluation.metrics.retrieval import nearest_both_ways
from tests.evaluation.parallel_made import random_vectors, unit
from tests.progress_records import Recorded


def naive(vectors, k):
    """Compute every number by comparing one query with one candidate at a time."""
    count, n, _ = vectors.shape
    alone, among_all = np.zeros((2, count, n, count), bool)
    own, own_without = np.zeros((2, count, n), bool)
    occurrences = np.zeros((count, n), int)
    for a in range(count):
        for i in range(n):
            cosines = {
                (c, j): float(vectors[a, i] @ vectors[c, j]) for c in range(count) for j in range(n)
            }
            del cosines[a, i]
            for place in sorted(cosines, key=lambda at: -cosines[at])[:k]:
                occurrences[place] += 1
            lines = {place: cosine for place, cosine in cosines.items() if place[1] != i}
            for b in set(range(count)) - {a}:
                mine = cosines[b, i]
                alone[a, i, b] = all(mine > cosine for (c, _), cosine in lines.items() if c == b)
                among_all[a, i, b] = all(mine > cosine for cosine in lines.values())
            own[a, i] = max(cosines, key=cosines.get)[0] == a
            own_without[a, i] = max(lines, key=lines.get)[0] == a
    return alone, among_all, own, own_without, occurrences


@pytest.mark.parametrize(("rows", "columns"), [(2048, 4096), (3, 2), (1, 5)])
@pytest.mark.parametrize("shared", [0.0, 1.0, 3.0])
def test_against_one_by_one(rows, columns, shared):
    vectors = random_vectors(4, 9, 6, shared=shared)
    found = search_pool(vectors, k=5, rows=rows, columns=columns)
    for ours, theirs in zip(found[:5], naive(vectors, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_it_is_the_retrieval_of_the_evaluation():
    vectors = random_vectors(3, 40, 8)
    found = search_pool(vectors)
    there, back = nearest_both_ways(vectors[0], vectors[2])[:2]
    np.testing.assert_array_equal(found.found_alone[0, :, 2], there == np.arange(40))
    np.testing.assert_array_equal(found.found_alone[2, :, 0], back == np.arange(40))


def test_worked_by_hand():
    """Use two languages of two lines: the first at 0 and 10 degrees, the second at 30 and 90."""
    degrees = np.radians([[0, 10], [30, 90]])
    found = search_pool(
        np.stack([np.cos(degrees), np.sin(degrees)], axis=2).astype(np.float32), k=1
    )
    # 0 meets 30; 10 does too, and not 90
    assert found.found_alone[0, :, 1].tolist() == [True, False]
    # 30 meets 10 and not 0; 90 meets 10
    assert found.found_alone[1, :, 0].tolist() == [False, True]
    # to 0 its neighbor 10 is nearer than 30
    assert found.found_among_all[0, :, 1].tolist() == [False, False]
    # to 90 its neighbor 30 is nearer than 10
    assert found.found_among_all[1, :, 0].tolist() == [False, False]
    assert found.own_language.tolist() == [[True, True], [False, True]]
    assert found.own_language_without_translations.tolist() == [[True, True], [False, True]]
    assert found.occurrences.tolist() == [[1, 2], [1, 0]]


@pytest.mark.parametrize("lines", [3, 70])
def test_identical_vectors_are_never_nearer(lines):
    found = search_pool(unit(np.ones((3, lines, 4))))
    assert not any(part.any() for part in found[:4])
    assert found.occurrences.sum() == 3 * lines * found.k


def test_k_is_at_most_the_others():
    found = search_pool(random_vectors(2, 2, 3), k=10)
    assert found.k == 3
    assert found.occurrences.tolist() == [[3, 3], [3, 3]]


def test_nan_is_one_line():
    vectors = random_vectors()
    vectors[1, 2, 0] = np.nan
    with pytest.raises(DataError, match="NaN"):
        search_pool(vectors)


def test_progress_ends_at_the_end():
    told = Recorded()
    search_pool(random_vectors(3, 7), rows=4, progress=told)
    assert told.counts[1:] == [(4, 21), (7, 21), (11, 21), (14, 21), (18, 21), (21, 21)]


@pytest.mark.parametrize(("rows", "columns"), [(2048, 4096), (3, 2)])
def test_the_nearest_other_line_is_that_of_a_naive_search(rows, columns):
    vectors = random_vectors(4, 9, 6)
    found = search_pool(vectors, rows=rows, columns=columns)
    flat = vectors.reshape(-1, 6)
    lines = np.tile(np.arange(9), 4)
    for place, nearest in enumerate(found.nearest_other.reshape(-1)):
        cosines = np.where(lines == lines[place], -np.inf, flat @ flat[place])
        assert nearest == cosines.argmax()


def test_without_neighbors_the_rest_is_the_same():
    vectors = random_vectors(3, 8, 5)
    with_them, without = search_pool(vectors, k=4), search_pool(vectors, k=0)
    for first, second in zip(with_them[:4], without[:4], strict=True):
        np.testing.assert_array_equal(first, second)
    assert not without.occurrences.any()


def test_accuracies_are_means_over_targets():
    pool = search_pool(random_vectors(3, 10, 4))
    for mean, found in (
        (pool.accuracy_alone, pool.found_alone),
        (pool.accuracy_among_all, pool.found_among_all),
    ):
        assert mean[1, 4] == (float(found[1, 4, 0]) + float(found[1, 4, 2])) / 2


def test_tables_name_every_ordered_pair():
    pool = search_pool(random_vectors(3, 10, 4))
    tables = accuracy_by_pair(pool, "abc")
    assert list(tables["accuracy_own_pool"]) == ["a-b", "a-c", "b-a", "b-c", "c-a", "c-b"]
    assert tables["accuracy_own_pool"]["c-a"] == pool.found_alone[2, :, 0].mean()
    assert tables["accuracy_mixed_pool"]["b-c"] == pool.found_among_all[1, :, 2].mean()
