"""Language fairness of the pools of all languages; the other metrics are in test_passages.py."""

from __future__ import annotations

import pytest

from interlingua.evaluation.report.rendering import result_terminal_tables
from interlingua.evaluation.tasks.retrieval.retrieval import TyDiGoldP, XQuAD
from tests.evaluation.tasks.retrieval.test_passages import evaluate, write_language

FAIRNESS = "language_fairness_at_20"


@pytest.fixture
def xquad(tmp_path):
    """A question in Swahili and in English.

    20 passages of each language, the right ones at 0 and 45 degrees.
    """
    folder = tmp_path / "xquad"
    for code, start in (("sw", 0), ("en", 45)):
        write_language(
            folder, code, [(f"q {start}", 0)], [f"{code} {start + n}" for n in range(20)]
        )
        path = folder / f"{code}.questions.tsv"
        path.write_text(path.read_text().replace(f"{code}-", "same-"))
    return folder


def test_rankings_of_one_language_are_unfair(xquad):
    result = evaluate(XQuAD(), xquad)
    scores = {subset.name: subset.scores for subset in result.subsets}
    assert scores["sw"][FAIRNESS] == pytest.approx(
        0.5
    )  # all 20 in Swahili, which has half of the answers
    assert result.tables["language_share_of_first_20"]["sw-sw"] == pytest.approx(1)
    assert result.tables["language_share_of_first_20"]["sw-en"] == 0
    # around 45: 20 English ones at 45 to 64, Swahili's nearest is 26 degrees away
    assert scores["en"][FAIRNESS] == pytest.approx(0.5)
    assert result.tables["language_share_of_relevant"] == dict.fromkeys(
        ("en-en", "en-sw", "sw-en", "sw-sw"), 0.5
    )
    _, by_group, matrix = result_terminal_tables(result)
    assert matrix.title == "language share of first 20, %"
    assert by_group.caption == "language share of relevant, %: 50.0 in all cells"


def test_a_language_alone_has_no_fairness(xquad):
    result = evaluate(XQuAD(languages=["sw"]), xquad)
    assert FAIRNESS not in result.subsets[0].scores
    assert result.tables == {}


def test_sets_with_answers_in_one_language_have_none(tmp_path):
    for code in ("sw", "en"):
        write_language(
            tmp_path / "tydiqa_goldp", f"{code}.dev", [("q 15", 0)], [f"{code} 0", f"{code} 40"]
        )
    result = evaluate(TyDiGoldP(), tmp_path)
    assert not any(FAIRNESS in subset.scores for subset in result.subsets)
