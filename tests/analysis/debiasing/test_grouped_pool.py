from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.debiasing.grouped_pool import join_groups, measure_pool
from interlingua.analysis.language_bias import language_bias
from interlingua.evaluation.metrics.pool import search_pool


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_panel_on_aligned_lines(seed):
    rng = np.random.default_rng(seed)
    vectors = unit(
        rng.normal(size=(1, 40, 6))
        + 0.4 * rng.normal(size=(4, 40, 6))
        + 0.7 * rng.normal(size=(4, 1, 6))
    )
    measures = {m.name: m.value for m in language_bias(search_pool(vectors), list("abcd"))}
    shuffled = rng.permutation(160)
    languages, groups = np.repeat(np.arange(4), 40)[shuffled], np.tile(np.arange(40), 4)[shuffled]
    found = measure_pool(vectors.reshape(160, 6)[shuffled], languages, groups)
    assert found.own_pool == pytest.approx(measures["accuracy_own_pool"])
    assert found.mixed_pool == pytest.approx(measures["accuracy_mixed_pool"])
    assert found.same_language == pytest.approx(measures["same_language_bias"])
    assert found.drop == pytest.approx(measures["mixed_pool_drop"])


def test_pairs_equal_a_naive_loop():
    rng = np.random.default_rng(1)
    vectors, languages = unit(rng.normal(size=(60, 5))), rng.integers(0, 3, 60)
    pairs = [(i, j) for i, j in rng.integers(0, 60, (25, 2)) if languages[i] != languages[j]]
    groups = join_groups(pairs, 60)
    found, asked = np.zeros((2, 3, 3)), np.zeros((3, 3))
    scores = vectors @ vectors.T
    for q in range(60):
        for t in range(60):
            if q == t or groups[q] != groups[t] or languages[q] == languages[t]:
                continue
            others = [o for o in range(60) if groups[o] != groups[q]]
            asked[languages[q], languages[t]] += 1
            for setting, pool in enumerate(
                [[o for o in others if languages[o] == languages[t]], others]
            ):
                found[setting, languages[q], languages[t]] += all(
                    scores[q, t] > scores[q, o] for o in pool
                )
    expected = [(one[asked > 0] / asked[asked > 0]).mean() for one in found]
    measured = measure_pool(vectors, languages, groups)
    assert [measured.own_pool, measured.mixed_pool] == pytest.approx(expected)


def test_without_translations_accuracies_are_nan():
    found = measure_pool(unit(np.eye(4)), np.array([0, 0, 1, 1]), np.arange(4))
    assert np.isnan(found.own_pool)
    assert np.isnan(found.mixed_pool)


def test_groups_join_through_a_shared_sentence():
    assert join_groups([(0, 2), (2, 3)], 5).tolist() == [1, 0, 1, 1, 2]
