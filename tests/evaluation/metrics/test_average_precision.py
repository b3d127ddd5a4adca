from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.metrics.average_precision import (
    NO_PASSAGE,
    padded_rows,
    question_average_precision,
    ranks_without,
    relevant_ranks,
)


def random_case(seed, queries=23, candidates=150, width=6):
    """Draw vectors of small integers, with exact and often equal products."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (queries, width)).astype(np.float32)
    y = rng.integers(-2, 3, (candidates, width)).astype(np.float32)
    relevant = [
        rng.choice(candidates, rng.integers(1, 6), replace=False).tolist() for _ in range(queries)
    ]
    return x, y, relevant


def counts_of(relevant):
    return np.array([len(row) for row in relevant])


def test_worked_by_hand():
    """Put relevant passages at ranks 1, 3 and 6: (1/1 + 2/3 + 3/6) / 3; at rank 2 only: 1/2."""
    ranks = np.array([[6, 1, 3], [2, 0, 0], [0, 0, 0]])
    found = question_average_precision(ranks, np.array([3, 1, 0]))
    np.testing.assert_allclose(found, [(1 + 2 / 3 + 1 / 2) / 3, 0.5, 0.0])


def test_a_passage_missing_from_the_pool_counts_as_not_found():
    assert question_average_precision(np.array([[1, 0]]), np.array([2])).tolist() == [0.5]


@pytest.mark.parametrize("cells", [1, 400, 2**24])
@pytest.mark.parametrize("seed", [0, 1])
def test_ranks_against_sorting(cells, seed):
    x, y, relevant = random_case(seed)
    ranks = relevant_ranks(x, y, padded_rows(relevant), cells=cells)
    for query, of_query in enumerate(relevant):
        order = np.argsort(-(x[query] @ y.T), kind="stable").tolist()
        expected = [order.index(passage) + 1 for passage in of_query]
        assert ranks[query].tolist() == expected + [0] * (ranks.shape[1] - len(expected))


def test_trec_eval_computes_the_same_map():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    x, y, relevant = random_case(3)
    ours = question_average_precision(
        relevant_ranks(x, y, padded_rows(relevant)), counts_of(relevant)
    )
    # of equal scores trec_eval ranks the later id first: ids fall with the row
    ids = [f"d{len(y) - row:04}" for row in range(len(y))]
    run = {f"q{n}": dict(zip(ids, (x[n] @ y.T).tolist(), strict=True)) for n in range(len(x))}
    qrels = {f"q{n}": {ids[row]: 1 for row in of_query} for n, of_query in enumerate(relevant)}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run)
    np.testing.assert_allclose(ours, [theirs[f"q{n}"]["map"] for n in range(len(x))], atol=1e-7)


def test_scikit_learn_computes_the_same_where_nothing_is_equal():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((9, 5), np.float32), rng.standard_normal((80, 5), np.float32)
    relevant = [rng.choice(80, 3, replace=False).tolist() for _ in range(9)]
    ours = question_average_precision(
        relevant_ranks(x, y, padded_rows(relevant)), counts_of(relevant)
    )
    for query, of_query in enumerate(relevant):
        labels = np.isin(np.arange(80), of_query)
        assert ours[query] == pytest.approx(
            metrics.average_precision_score(labels, x[query] @ y.T), abs=1e-6
        )


def test_removing_is_ranking_without_them():
    x, y, relevant = random_case(5)
    table = padded_rows(relevant)
    first = np.zeros(table.shape, bool)
    first[:, 0] = True
    found = ranks_without(relevant_ranks(x, y, table), first)
    for query, of_query in enumerate(relevant):
        kept = np.delete(np.arange(len(y)), of_query[0])
        order = kept[np.argsort(-(x[query] @ y[kept].T), kind="stable")].tolist()
        assert found[query, 0] == 0
        assert found[query, 1 : len(of_query)].tolist() == [
            order.index(passage) + 1 for passage in of_query[1:]
        ]


def test_rows_of_unequal_length_are_filled():
    assert padded_rows([[3], [1, 2]]).tolist() == [[3, NO_PASSAGE], [1, 2]]
    assert padded_rows([[], []]).shape == (2, 0)


def test_identical_vectors_are_ranked_by_row():
    ranks = relevant_ranks(
        np.ones((1, 3), np.float32), np.ones((70, 3), np.float32), np.array([[69, 0, 5]])
    )
    assert ranks.tolist() == [[70, 1, 6]]


def test_nan_is_one_line():
    with pytest.raises(DataError, match="NaN"):
        relevant_ranks(
            np.ones((1, 2), np.float32), np.full((2, 2), np.nan, np.float32), np.array([[0]])
        )
