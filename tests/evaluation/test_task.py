from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.evaluation.task import SubsetScores, mean_scores, options
from interlingua.evaluation.tasks.retrieval import TyDiGoldP
from interlingua.evaluation.tasks.xsim import XSim


def test_means_over_languages_and_over_sentences():
    subsets = [
        SubsetScores(name=name, languages=("deu_Latn", "eng_Latn"), pairs=pairs, scores={"xsim": error, "other": 1.0})
        for name, pairs, error in (("a", 100, 0.1), ("b", 300, 0.3))
    ]
    assert mean_scores(subsets) == {"xsim": pytest.approx(0.2), "other": 1.0}
    assert mean_scores(subsets, by_pairs=True) == {"xsim": pytest.approx(0.25), "other": 1.0}


def test_options_of_a_task_and_which_of_them_are_not_the_defaults():
    assert options(XSim()) == {"settings": {"languages": None, "compare": "index", "k": 4}, "changed": ()}
    assert options(XSim(languages=("de",), k=2)) == {
        "settings": {"languages": ["de"], "compare": "index", "k": 2},
        "changed": ("languages", "k"),
    }


def test_a_folder_to_write_to_is_no_setting():
    found = options(TyDiGoldP(runs=Path("somewhere"), bm25=True))
    assert "runs" not in found["settings"]
    assert found["changed"] == ("bm25",)
