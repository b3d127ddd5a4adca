import numpy as np
import pytest

from interlingua.getting_started.baselines import expected_accuracy, random_accuracy, tfidf_accuracy


def test_expected_accuracy_shares_ties():
    similarity = np.array([[0.9, 0.1, 0.9], [0.0, 0.0, 0.0], [0.2, 0.3, 0.1]])
    # query 0: two tie, one of them right; query 1: all three tie; query 2: wrong
    assert expected_accuracy(similarity) == pytest.approx((1 / 2 + 1 / 3 + 0) / 3)


def test_chance_is_what_a_blind_guess_expects():
    assert (
        expected_accuracy(np.zeros((7, 7)))
        == pytest.approx(random_accuracy(7))
        == pytest.approx(1 / 7)
    )


def test_character_ngrams_match_shared_spelling_and_nothing_else():
    english = [
        "information about the administrator",
        "the system of documents",
        "a musical instrument",
    ]
    romance = ["informazione amministratore", "sistema di documenti", "strumento musicale"]
    greek = ["πληροφορίες για τον διαχειριστή", "το σύστημα των εγγράφων", "ένα μουσικό όργανο"]
    assert tfidf_accuracy(romance, english) == (1.0, 1.0)
    assert tfidf_accuracy(greek, english) == pytest.approx((1 / 3, 1 / 3))
