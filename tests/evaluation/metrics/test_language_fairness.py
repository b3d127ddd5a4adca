from __future__ import annotations

import numpy as np
import pytest

from interlingua.evaluation.metrics.language_fairness import (
    language_fairness,
    ranked_language_shares,
)


def ranking(*passages):
    return {passage: 1.0 - rank / 100 for rank, passage in enumerate(passages)}


def test_two_questions_worked_by_hand():
    qrels = {"q": {"en/1": 1, "de/1": 1}, "r": {"en/2": 1, "de/2": 1, "en/9": 0}}
    run = {
        "q": ranking("en/1", "en/5", "en/6", "de/1"),
        "r": ranking("en/2", "en/7", "de/2", "de/3"),
    }
    shares = ranked_language_shares(qrels, run, ["de", "en"])
    assert shares.ranked == {
        "en": pytest.approx((3 / 4 + 2 / 4) / 2),
        "de": pytest.approx((1 / 4 + 2 / 4) / 2),
    }
    assert shares.relevant == {"en": pytest.approx(0.5), "de": pytest.approx(0.5)}
    # |.625 - .5| and |.375 - .5|: a total variation distance of .125
    assert language_fairness(shares) == pytest.approx(0.875)


def test_only_the_first_of_a_ranking_count():
    qrels = {"q": {"en/1": 1, "de/1": 1}}
    shares = ranked_language_shares(
        qrels, {"q": ranking("en/1", "en/2", "de/1", "de/2")}, ["de", "en"], depth=2
    )
    assert shares.ranked == {"de": 0.0, "en": 1.0}
    assert language_fairness(shares) == pytest.approx(0.5)


def test_equal_scores_are_cut_in_trec_eval_order():
    run = {"q": {"de/1": 1.0, "en/1": 1.0, "th/1": 1.0}}
    shares = ranked_language_shares({"q": {"de/1": 1}}, run, ["de", "en", "th"], depth=1)
    assert shares.ranked == {"de": 0.0, "en": 0.0, "th": 1.0}


def test_limits_are_one_and_the_share_of_one_language():
    languages = [f"l{n}" for n in range(5)]
    qrels = {"q": {f"{language}/1": 1 for language in languages}}
    fair = ranked_language_shares(
        qrels, {"q": ranking(*(f"{language}/7" for language in languages))}, languages
    )
    assert language_fairness(fair) == pytest.approx(1)
    alone = ranked_language_shares(
        qrels, {"q": ranking(*(f"l0/{n}" for n in range(30)))}, languages
    )
    assert language_fairness(alone) == pytest.approx(1 / 5)


def test_a_question_without_a_ranking_is_left_out():
    qrels = {"q": {"en/1": 1}, "r": {"de/1": 1}}
    shares = ranked_language_shares(qrels, {"q": ranking("en/1")}, ["de", "en"])
    assert shares.relevant == {"de": 0.0, "en": 1.0}
    assert language_fairness(ranked_language_shares(qrels, {}, ["de", "en"])) == 0.0


def test_it_is_one_minus_total_variation_on_random_rankings():
    rng = np.random.default_rng(0)
    languages = ["a", "b", "c", "d"]
    passages = [f"{language}/{n}" for language in languages for n in range(40)]
    run = {}
    qrels = {}
    for number in range(12):
        run[f"q{number}"] = dict(zip(passages, rng.random(len(passages)).tolist(), strict=True))
        qrels[f"q{number}"] = {passages[i]: 1 for i in rng.choice(len(passages), 5, replace=False)}
    shares = ranked_language_shares(qrels, run, languages)
    counts = np.zeros(4)
    for scores in run.values():
        for passage in sorted(scores, key=scores.get)[::-1][:20]:
            counts[languages.index(passage[0])] += 1
    ranked = counts / counts.sum()
    relevant = (
        np.array(
            [sum(p[0] == language for q in qrels.values() for p in q) for language in languages]
        )
        / 60
    )
    assert language_fairness(shares) == pytest.approx(1 - np.abs(ranked - relevant).sum() / 2)
    assert sum(shares.ranked.values()) == pytest.approx(1)


def test_tables_have_a_row_for_the_language_of_the_questions():
    shares = ranked_language_shares(
        {"q": {"en/1": 1}}, {"q": ranking("en/1", "de/1")}, ["de", "en"]
    )
    assert shares.tables("th") == {
        "language_share_of_first_20": {"th-de": 0.5, "th-en": 0.5},
        "language_share_of_relevant": {"th-de": 0.0, "th-en": 1.0},
    }
