from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways, weighted_scores


def test_worked_by_hand():
    # cosines: x0 is nearest to y0, x1 to y0 as well; y0 is nearest to x0, y1 to x1. Lengths must
    # not matter.
    x = np.array([[10.0, 0.0], [3.0, 1.0]])
    y = np.array([[2.0, 0.1], [0.0, 5.0]])
    nearest_y, nearest_x = nearest_both_ways(x, y)
    assert nearest_y.tolist() == [0, 0]
    assert nearest_x.tolist() == [0, 1]
    assert is_right(nearest_y).mean() == 0.5
    assert is_right(nearest_x).mean() == 1.0


def test_naive_loop():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 6)), rng.standard_normal((40, 6))
    cosine = [[float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for b in y] for a in x]
    nearest_y, nearest_x = nearest_both_ways(x, y)
    assert nearest_y.tolist() == [max(range(40), key=lambda j: row[j]) for row in cosine]
    assert nearest_x.tolist() == [max(range(40), key=lambda i: cosine[i][j]) for j in range(40)]


def test_of_equal_candidates_the_first_is_taken_and_text_comparison_forgives_it():
    texts = ["yes", "no", "yes"]
    y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    nearest, _ = nearest_both_ways(y, y)
    assert nearest.tolist() == [0, 1, 0]
    assert is_right(nearest).tolist() == [True, True, False]
    assert is_right(nearest, texts).tolist() == [True, True, True]


def test_sentence_transformers_translation_evaluator_agrees():
    evaluation = pytest.importorskip("sentence_transformers.evaluation")
    from types import SimpleNamespace

    rng = np.random.default_rng(7)
    x = rng.standard_normal((200, 12)).astype(np.float32)
    y = x + 1.2 * rng.standard_normal((200, 12)).astype(np.float32)
    vectors = {
        f"{side}{i}": torch.tensor(row)
        for side, rows in (("s", x), ("t", y))
        for i, row in enumerate(rows)
    }
    sources, targets = [f"s{i}" for i in range(200)], [f"t{i}" for i in range(200)]
    judge = evaluation.TranslationEvaluator(sources, targets, write_csv=False)
    judge.embed_inputs = lambda model, sentences, **_: [vectors[sentence] for sentence in sentences]
    model = SimpleNamespace(model_card_data=SimpleNamespace(set_evaluation_metrics=lambda *_: None))
    theirs = judge(model)
    nearest_y, nearest_x = nearest_both_ways(x, y)
    assert is_right(nearest_y).mean() == theirs["src2trg_accuracy"]
    assert is_right(nearest_x).mean() == theirs["trg2src_accuracy"]
    assert 0.2 < theirs["src2trg_accuracy"] < 0.9


@pytest.mark.parametrize("seed", range(6))
def test_scikit_learn_agrees_on_weighted_scores(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 30, 50) if seed % 2 else rng.permutation(50)
    predicted = np.where(rng.random(50) < 0.6, gold, rng.integers(-3, 60, 50))
    f1, precision = weighted_scores(predicted, gold)
    how = {"average": "weighted", "zero_division": 0}
    assert f1.mean() == pytest.approx(metrics.f1_score(gold, predicted, **how))
    assert precision.mean() == pytest.approx(metrics.precision_score(gold, predicted, **how))
    assert (gold == predicted).mean() == pytest.approx(metrics.recall_score(gold, predicted, **how))
