from __future__ import annotations

import sys

import numpy as np
import pytest

from interlingua.errors import DataError, MissingExtraError
from interlingua.evaluation.metrics.ranking import (
    ranking_metrics,
    reciprocal_rank_fusion,
    top,
    write_trec_run,
)

RUNS = {"q1": ["d3", "d1", "d7"], "q2": ["d2", "d9", "d4"], "q3": ["d5", "d6", "d8"], "q4": []}
RUN = {
    query: {passage: 1.0 / rank for rank, passage in enumerate(ranked, 1)}
    for query, ranked in RUNS.items()
}
QRELS = {"q1": {"d1": 1}, "q2": {"d2": 1, "d4": 1, "d11": 1}, "q3": {"d1": 1}, "q4": {"d2": 1}}


def naive(qrels, run):
    """Compute the definitions in a double loop."""
    values = {"mrr_at_100": {}, "recall_at_100": {}, "ndcg_at_10": {}}
    for query, relevance in qrels.items():
        scores = run.get(query, {})
        ranked = sorted(scores, reverse=True)  # trec_eval: of equal scores the later id
        ranked = sorted(ranked, key=lambda passage: -scores[passage])[:100]
        relevant = {passage for passage, grade in relevance.items() if grade > 0}
        hits = [rank for rank, passage in enumerate(ranked, 1) if passage in relevant]
        gains = [
            relevance.get(passage, 0) / np.log2(1 + rank)
            for rank, passage in enumerate(ranked[:10], 1)
        ]
        ideal = [
            g / np.log2(1 + rank)
            for rank, g in enumerate(sorted(relevance.values(), reverse=True)[:10], 1)
        ]
        values["mrr_at_100"][query] = 1 / hits[0] if hits else 0.0
        values["recall_at_100"][query] = len(hits) / len(relevant)
        values["ndcg_at_10"][query] = sum(gains) / sum(ideal)
    return values


def test_a_case_worked_by_hand():
    values = ranking_metrics(QRELS, RUN)
    assert values["mrr_at_100"] == {"q1": 0.5, "q2": 1.0, "q3": 0.0, "q4": 0.0}
    assert values["recall_at_100"] == {"q1": 1.0, "q2": pytest.approx(2 / 3), "q3": 0.0, "q4": 0.0}
    assert values["ndcg_at_10"]["q1"] == pytest.approx(1 / np.log2(3))
    assert values["ndcg_at_10"]["q2"] == pytest.approx((1 + 0.5) / (1 + 1 / np.log2(3) + 0.5))
    assert np.mean([*values["mrr_at_100"].values()]) == 0.375


def test_a_query_without_a_ranking_counts_as_0():
    assert ranking_metrics(QRELS, {"q1": RUN["q1"]})["mrr_at_100"] == {
        "q1": 0.5,
        "q2": 0,
        "q3": 0,
        "q4": 0,
    }
    assert ranking_metrics(QRELS, {})["recall_at_100"] == dict.fromkeys(QRELS, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_naive_definitions_agree(seed):
    rng = np.random.default_rng(seed)
    passages = [f"d{i}" for i in range(150)]
    run, qrels = {}, {}
    for q in range(30):
        scores = rng.integers(0, 60, 150) / 64  # many ties, exact in single precision
        run[f"q{q}"] = dict(zip(passages, scores.tolist(), strict=True))
        chosen = rng.choice(150, rng.integers(1, 15), replace=False)
        qrels[f"q{q}"] = {passages[i]: int(rng.integers(0, 4)) for i in chosen} | {
            passages[chosen[0]]: 2
        }
    expected = naive(qrels, run)
    for metric, of_query in ranking_metrics(qrels, run).items():
        assert of_query == {
            query: pytest.approx(value) for query, value in expected[metric].items()
        }, metric


def test_what_stands_beyond_100_does_not_count():
    run = {"q": {f"d{i:03}": -float(i) for i in range(120)}}
    assert ranking_metrics({"q": {"d099": 1}}, run)["mrr_at_100"]["q"] == pytest.approx(0.01)
    values = ranking_metrics({"q": {"d100": 1}}, run)
    assert (values["mrr_at_100"]["q"], values["recall_at_100"]["q"]) == (0.0, 0.0)


def test_the_order_of_equals_and_near_equals_is_trec_evals():
    assert list(top({"a": 1.0, "b": 1.0, "c": 1.0 + 1e-9})) == ["c", "b", "a"]
    assert (
        ranking_metrics({"q": {"b": 1}}, {"q": {"a": 1.0, "b": 1.0 - 1e-9}})["mrr_at_100"]["q"]
        == 1.0
    )


def test_fusion_worked_by_hand():
    first = {"q": {"a": 0.9, "b": 0.8, "c": 0.1}}
    second = {"q": {"c": 7.0, "b": 3.0}, "r": {"d": 1.0}}
    fused = reciprocal_rank_fusion([first, second])
    assert fused["q"] == {
        "c": pytest.approx(1 / 63 + 1 / 61),
        "b": pytest.approx(2 / 62),
        "a": pytest.approx(1 / 61),
    }
    assert list(fused["q"]) == ["c", "b", "a"]
    assert fused["r"] == {"d": 1 / 61}
    assert list(reciprocal_rank_fusion([first, second], depth=1)["q"]) == ["c"]
    third_in_both = [{"q": {"a": 3, "x": 2, "b": 1}}, {"q": {"c": 3, "y": 2, "b": 1}}]
    assert next(iter(reciprocal_rank_fusion(third_in_both)["q"])) == "b"
    assert next(iter(reciprocal_rank_fusion(third_in_both, k=0)["q"])) == "c"  # 1 against 2/3


def test_run_files_give_trec_eval_the_same_numbers(tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(0)
    scores = (rng.standard_normal((5, 130)) / 3).astype(np.float32)
    run = {
        f"q{q}": {f"d{i}": float(score) for i, score in enumerate(row)}
        for q, row in enumerate(scores)
    }
    qrels = {f"q{q}": {f"d{i}": 1 for i in rng.choice(130, 4)} for q in range(5)}
    write_trec_run(tmp_path / "runs" / "x.trec", run, tag="ours")
    lines = (tmp_path / "runs" / "x.trec").read_text().splitlines()
    assert len(lines) == 500
    assert lines[0].split()[:2] == ["q0", "Q0"]
    assert [lines[0].split()[i] for i in (3, 5)] == ["1", "ours"]
    with (tmp_path / "runs" / "x.trec").open() as file:
        theirs = pytrec_eval.RelevanceEvaluator(
            qrels, {"recip_rank", "recall.100", "ndcg_cut.10"}
        ).evaluate(pytrec_eval.parse_run(file))
    ours = ranking_metrics(qrels, run)
    names = {"recip_rank": "mrr_at_100", "recall_100": "recall_at_100", "ndcg_cut_10": "ndcg_at_10"}
    for query, values in theirs.items():
        assert {names[name]: value for name, value in values.items()} == {
            metric: pytest.approx(of_query[query]) for metric, of_query in ours.items()
        }


def test_ids_that_a_run_file_cant_hold(tmp_path):
    with pytest.raises(DataError, match=r"id 'a b' .*TREC"):
        write_trec_run(tmp_path / "x.trec", {"q": {"a b": 1.0}}, tag="t")
    assert not (tmp_path / "x.trec").exists()


def test_without_ir_measures_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[retrieval\]'"):
        ranking_metrics(QRELS, RUN)
