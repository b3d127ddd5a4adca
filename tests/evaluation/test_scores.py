from __future__ import annotations

import pytest

from interlingua.evaluation.scores import SubsetScores, mean_scores


def test_means_over_languages_and_over_sentences():
    subsets = [
        SubsetScores(
            name=name,
            languages=("deu_Latn", "eng_Latn"),
            pairs=pairs,
            scores={"xsim": error, "other": 1.0},
        )
        for name, pairs, error in (("a", 100, 0.1), ("b", 300, 0.3))
    ]
    assert mean_scores(subsets) == {"xsim": pytest.approx(0.2), "other": 1.0}
    assert mean_scores(subsets, by_pairs=True) == {"xsim": pytest.approx(0.25), "other": 1.0}
