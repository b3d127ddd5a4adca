"""Wrong pairs of the mined texts themselves: translations that are hidden from each other."""

from __future__ import annotations

import numpy as np
import torch

from interlingua.mining.calibration.calibrate import hidden_scores
from interlingua.mining.candidates import without_partners
from interlingua.mining.checks import NO_CHECKS, Checker
from interlingua.mining.pair_search import PairSearch
from interlingua.retrieval.topk.exact import Neighbors
from tests.mining import two_sides
from tests.mining.two_sides import as_pairs, mine_files


def test_a_partner_is_taken_out_and_the_last_other_fills_its_place():
    neighbors = Neighbors(
        torch.tensor([[0.9, 0.5, 0.4], [0.8, 0.7, 0.6], [0.3, 0.2, 0.1]]),
        torch.tensor([[4, 2, 7], [1, 5, 3], [6, 8, 9]]),
    )
    found = without_partners(neighbors, np.array([4, 3, -1]))
    assert found.indices.tolist() == [[2, 7, 7], [1, 5, 5], [6, 8, 9]]
    expected = torch.tensor([[0.5, 0.4, 0.4], [0.8, 0.7, 0.7], [0.3, 0.2, 0.1]])
    assert torch.equal(found.similarities, expected)


def test_hidden_translations_score_as_the_wrong_pairs_of_the_list_do(tmp_path):
    source, target, right = two_sides.sides(tmp_path, 300, 300)
    mined = mine_files(source, target, PairSearch(), tmp_path / "work", model="m")
    answers = np.array([pair in right for pair in as_pairs(mined)])
    again = mined.retrieve_without(mined.pairs[answers][::2])
    hidden = set(as_pairs(mined._replace(pairs=mined.pairs[answers][::2])))
    assert len(again) > 50
    assert not hidden & set(as_pairs(mined._replace(pairs=again)))
    scores = np.array(mined.pairs["score"])
    found = hidden_scores(
        mined,
        np.ones(len(scores), bool),
        scores[answers][:50],
        scores[~answers][:50],
        Checker(NO_CHECKS, ("deu_Latn", "eng_Latn"), tmp_path / "seen"),
    )
    assert abs(np.median(found) - np.median(scores[~answers])) < 0.1
    assert np.median(found) < np.median(scores[answers]) - 0.1
