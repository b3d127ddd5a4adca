from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.debiasing import debias_fit
from interlingua.analysis.debiasing.debias_fit import (
    LabeledVectors,
    fit_and_measure,
    panel,
    ranks_to_try,
)
from interlingua.errors import DataError
from interlingua.storage.arrays import normalize_rows

LANGUAGES = ("deu_Latn", "eng_Latn", "jpn_Jpan", "tha_Thai")


def vectors_of(*, lines=120, width=24, offset=1.5, noise=0.3, seed=0, parallel=True):
    """Draw meanings that four languages share, plus an offset per language for a map to remove."""
    rng = np.random.default_rng(seed)
    meanings = np.tile(rng.normal(size=(lines, width)), (4, 1))
    offsets = np.repeat(offset * rng.normal(size=(4, width)), lines, axis=0)
    rows = meanings + offsets + noise * rng.normal(size=(4 * lines, width))
    groups = np.tile(np.arange(lines), 4) if parallel else np.arange(4 * lines)
    return LabeledVectors(
        vectors=normalize_rows(rows.astype(np.float32)),
        languages=list(np.repeat(LANGUAGES, lines)),
        groups=groups,
    )


@pytest.mark.parametrize("method", ["project", "erase"])
def test_mixed_pool_rises_and_language_is_not_recognized(method):
    found = fit_and_measure(vectors_of(), method=method)
    assert found.before.pool.mixed_pool < 0.75
    assert found.after.pool.mixed_pool > 0.95
    assert found.after.pool.same_language < found.before.pool.same_language
    assert found.before.recognized > 0.9
    assert found.after.recognized < 0.6
    assert found.after.variance_share < 0.1 < found.before.variance_share


def test_rank_is_the_best_of_the_mixed_pool():
    found = fit_and_measure(vectors_of())
    assert found.ranks.keys() == {0, 1, 2, 3}
    best = max(pool.mixed_pool for pool in found.ranks.values())
    assert found.ranks[found.language_map.rank].mixed_pool == best
    assert found.after.pool.mixed_pool == pytest.approx(best)


def test_vectors_without_language_keep_all_directions():
    """Check that centering without removal is chosen if a removal improves nothing."""
    found = fit_and_measure(vectors_of(offset=0.0, noise=0.01))
    assert found.language_map.rank == 0


def test_no_translations_remove_all_directions_and_leave_retrieval_unknown():
    found = fit_and_measure(vectors_of(parallel=False))
    assert found.language_map.rank == 3
    assert found.ranks == {}
    assert np.isnan(found.before.pool.own_pool)
    assert found.after.recognized < 0.6


def test_lines_that_are_no_translations_are_noticed():
    """Use files of equal length with unrelated lines."""
    data = vectors_of(noise=3.0)
    shuffled = np.random.default_rng(2).permutation(len(data.groups))
    found = fit_and_measure(
        LabeledVectors(vectors=data.vectors, languages=data.languages, groups=data.groups[shuffled])
    )
    assert np.isnan(found.before.pool.own_pool)


def test_held_out_groups_are_not_estimated_on():
    found = fit_and_measure(vectors_of(lines=200), held_out_share=0.25)
    assert found.fitted + found.held_out == 800
    assert found.held_out % 4 == 0
    assert 120 < found.held_out < 280


def test_a_sample_of_the_held_out_keeps_rare_languages(monkeypatch):
    """Sort languages behind the rare one, where a wrong sample takes them for its neighbors."""
    data = vectors_of(lines=200, parallel=False)
    rare = np.array([row % 200 < 8 or row // 200 != 1 for row in range(800)])
    monkeypatch.setattr(debias_fit, "MOST_MEASURED", 30)
    for seed in range(5):
        found = fit_and_measure(data.where(rare), held_out_share=0.5, seed=seed)
        assert 30 <= found.held_out <= 34
        assert found.before.recognized > 0.9


def test_other_prompts_join_the_estimate():
    """Move all vectors by a prompt, which moves the center of the estimate."""
    first, moved = vectors_of(), vectors_of()
    moved.vectors[:] += 2
    alone = fit_and_measure(first, method="center").language_map
    both = fit_and_measure(first, also=[moved], method="center").language_map
    np.testing.assert_allclose(both.bias, alone.bias - 1, atol=1e-5)


def test_shift_maps_held_out_sentences_by_their_language():
    found = fit_and_measure(vectors_of(), method="shift")
    assert found.after.pool.mixed_pool > 0.95


def test_a_language_in_one_part_only_is_refused():
    data = vectors_of()
    languages = [*data.languages[:-1], "xho_Latn"]
    with pytest.raises(DataError, match="xho_Latn"):
        fit_and_measure(
            LabeledVectors(vectors=data.vectors, languages=languages, groups=data.groups)
        )


def test_variance_share_and_recognition_by_hand():
    rows = np.array([[0, 0], [0, 2], [4, 0], [4, 2]], dtype=np.float32)
    data = LabeledVectors(vectors=rows, languages=["a", "a", "b", "b"], groups=np.arange(4))
    found = panel(data, np.array([[0.0, 1.0], [4.0, 1.0]]))
    assert found.variance_share == pytest.approx(4 / 5)
    assert found.recognized == 1.0


def test_ranks_of_many_languages_are_an_even_choice():
    assert ranks_to_try(3) == [0, 1, 2]
    tried = ranks_to_try(200)
    assert len(tried) == 24
    assert (tried[0], tried[-1]) == (0, 199)
