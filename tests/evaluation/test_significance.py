from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score

from interlingua.evaluation import significance
from interlingua.evaluation.metrics.correlation import spearman
from interlingua.evaluation.metrics.precision import pair_average_precision
from interlingua.evaluation.scores import Items
from interlingua.evaluation.significance import mean_score, paired_bootstrap


def items(*values, gold=None):
    return Items(
        np.array(values, dtype=float), None if gold is None else np.array(gold, dtype=float)
    )


def test_equal_encoders_do_not_differ():
    one = {"a": items(1, 0, 1, 1)}
    assert paired_bootstrap([one], [one], ["a"]) == (0.0, 0.0, 0.0, 1.0)


def test_means_of_items_and_of_correlations():
    assert mean_score([items(1, 0), items(1, 1)]) == 0.75
    gold = [1, 2, 3, 4]
    assert mean_score([items(1, 2, 4, 3, gold=gold)]) == pytest.approx(0.8)


def test_the_p_value_is_that_of_the_sign_test_where_one_side_always_wins():
    # 8 of 20 items differ, all in favor of the second: a resample shows no gain only if it draws
    # none of the 8
    first, second = {"a": items(*[0] * 8, *[1] * 12)}, {"a": items(*[1] * 20)}
    found = paired_bootstrap([first], [second], ["a"], resamples=20_000)
    assert found.mean == pytest.approx(0.4)
    assert found.p_value == pytest.approx(2 * (1 - 8 / 20) ** 20, abs=2e-4)
    assert paired_bootstrap([second], [first], ["a"], resamples=20_000).mean == pytest.approx(-0.4)


def test_the_interval_is_the_normal_one_for_many_items():
    rng = np.random.default_rng(0)
    first, second = rng.random(4000), rng.random(4000) + 0.02
    found = paired_bootstrap([{"a": Items(first)}], [{"a": Items(second)}], ["a"])
    difference = second - first
    error = difference.std(ddof=1) / np.sqrt(4000)
    assert found.mean == pytest.approx(difference.mean())
    assert (found.low, found.high) == pytest.approx(
        (found.mean - 1.96 * error, found.mean + 1.96 * error), abs=0.0015
    )
    t_test = stats.ttest_rel(first, second).pvalue
    assert found.p_value == pytest.approx(t_test, abs=0.004)


def test_a_group_is_the_mean_of_its_subsets_those_of_unequal_sizes_drawn_each_on_its_own():
    rng = np.random.default_rng(0)
    first = {name: Items(rng.random(n)) for name, n in (("a", 400), ("b", 100))}
    second = {
        name: Items(kept.values + rng.normal(0.01, 0.2, len(kept.values)))
        for name, kept in first.items()
    }
    found = paired_bootstrap([first], [second], ["a", "b"])
    gains = [second[name].values - first[name].values for name in "ab"]
    assert found.mean == pytest.approx(np.mean([gain.mean() for gain in gains]))
    error = np.sqrt(sum(gain.var(ddof=1) / len(gain) for gain in gains)) / 2
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_correlations_are_resampled_with_their_judgments():
    rng = np.random.default_rng(0)
    gold = rng.random(200)
    good, bad = gold + 0.1 * rng.random(200), gold + 3 * rng.random(200)
    found = paired_bootstrap(
        [{"s": Items(bad, gold)}], [{"s": Items(good, gold)}], ["s"], resamples=300
    )
    assert found.mean == pytest.approx(spearman(good, gold) - spearman(bad, gold))
    assert found.low > 0
    assert found.p_value == pytest.approx(2 / 301)


def test_average_precision_is_resampled_with_the_labels():
    rng = np.random.default_rng(0)
    positive = rng.random(200) < 0.4
    good, bad = positive + rng.random(200), 0.1 * positive + rng.random(200)
    found = paired_bootstrap(
        [{"s": Items(bad, positive)}], [{"s": Items(good, positive)}], ["s"], resamples=300
    )
    assert found.mean == pytest.approx(
        pair_average_precision(good, positive) - pair_average_precision(bad, positive)
    )
    assert found.low > 0.2
    assert found.p_value == pytest.approx(2 / 301)


def test_seeds_are_averaged_item_by_item():
    seeds = [{"a": items(1, 0, 1, 0)}, {"a": items(0, 1, 1, 0)}]
    other = {"a": items(1, 1, 1, 1)}
    assert paired_bootstrap(seeds, [other], ["a"]).mean == 0.5


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"a": items(1, 0, 1)},
        {"a": items(1, 0, gold=[1, 2])},
    ],
)
def test_items_that_are_not_the_same_are_not_compared(other):
    assert paired_bootstrap([{"a": items(1, 0)}], [other], ["a"]) is None


def test_other_judgments_are_other_items():
    first, second = {"a": items(1, 0, gold=[1, 2])}, {"a": items(1, 0, gold=[1, 3])}
    assert paired_bootstrap([first], [second], ["a"]) is None
    assert paired_bootstrap([first], [first], []) is None


def test_translations_of_a_sentence_are_drawn_together():
    """Check that ten languages with equal right and wrong sentences count like one."""
    rng = np.random.default_rng(0)
    worse, better = (Items((rng.random(300) < share).astype(float)) for share in (0.5, 0.6))
    names = [f"l{n}" for n in range(10)]
    one = paired_bootstrap([{"l0": worse}], [{"l0": better}], ["l0"])
    ten = paired_bootstrap([dict.fromkeys(names, worse)], [dict.fromkeys(names, better)], names)
    assert ten == pytest.approx(one)
    assert one.high - one.low > 0.1
    # and languages that have nothing in common are as sure as ten times the sentences
    first = {name: Items(rng.random(300)) for name in names}
    second = {name: Items(rng.random(300)) for name in names}
    found = paired_bootstrap([first], [second], names)
    error = np.sqrt(sum((second[n].values - first[n].values).var(ddof=1) / 300 for n in names)) / 10
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.15)


def test_correlations_in_two_languages_are_drawn_together():
    rng = np.random.default_rng(0)
    gold = rng.random(100)
    good, bad = Items(gold + rng.random(100), gold), Items(gold + 3 * rng.random(100), gold)
    one = paired_bootstrap([{"a": bad}], [{"a": good}], ["a"], resamples=200)
    two = paired_bootstrap(
        [{"a": bad, "b": bad}], [{"a": good, "b": good}], ["a", "b"], resamples=200
    )
    assert two == pytest.approx(one)


@pytest.mark.parametrize("kept", [significance.KEPT_DRAWS, 0])
def test_what_is_kept_changes_no_number(monkeypatch, kept):
    monkeypatch.setattr(significance, "KEPT_DRAWS", kept)
    rng = np.random.default_rng(2)
    sides = []
    for _ in range(2):
        positive = np.random.default_rng(3).random(50) < 0.4
        sides.append(
            {"a": Items(rng.random(50), positive), "b": Items(rng.random(50), np.arange(50.0))}
        )
    found = [
        paired_bootstrap(sides[:1], sides[1:], ["a", "b"], resamples=40, seed=7) for _ in range(2)
    ]
    draws = np.random.default_rng([7, 50]).multinomial(50, np.full(50, 1 / 50), size=40)
    gains = []
    for drawn in draws:
        rows = np.repeat(np.arange(50), drawn)
        scores = []
        for side in sides:
            labels, judged = side["a"], side["b"]
            by_label = average_precision_score(labels.gold[rows], labels.values[rows])
            scores.append(
                (by_label + stats.spearmanr(judged.values[rows], judged.gold[rows]).statistic) / 2
            )
        gains.append(scores[1] - scores[0])
    assert found[0] == found[1]
    assert (found[0].low, found[0].high) == pytest.approx(
        tuple(np.quantile(gains, [0.025, 0.975])), abs=1e-12
    )


def test_a_subset_is_resampled_once_for_its_row_its_group_and_the_mean(monkeypatch):
    scored = []
    plain = significance.resampled_spearman
    monkeypatch.setattr(
        significance, "resampled_spearman", lambda x, *rest: scored.append(x) or plain(x, *rest)
    )
    rng = np.random.default_rng(4)
    sides = [{name: Items(rng.random(30), np.arange(30.0)) for name in "ab"} for _ in range(3)]
    for subsets in (["a"], ["b"], ["a", "b"]):
        for other in sides[1:]:
            assert paired_bootstrap(sides[:1], [other], subsets, resamples=20) is not None
    assert len(scored) == 6
    assert len({id(values) for values in scored}) == 6


def test_ratios_of_sums_are_resampled_as_drawing_items_would():
    # F1 by sentence: 2 c over extracted plus gold
    rng = np.random.default_rng(0)
    gold = rng.random(500) < 0.3
    sides = []
    for share in (0.5, 0.8):
        found = rng.random(500) < np.where(gold, share, 0.1)
        sides.append(Items(2.0 * (found & gold), None, found + 1.0 * gold))
    f1 = [2 * (one.values / 2).sum() / one.weights.sum() for one in sides]
    assert mean_score([sides[0]]) == pytest.approx(f1[0])
    found = paired_bootstrap([{"s": sides[0]}], [{"s": sides[1]}], ["s"])
    assert found.mean == pytest.approx(f1[1] - f1[0])
    drawn = []
    for _ in range(2000):
        rows = rng.integers(500, size=500)
        drawn.append(
            np.subtract(*(one.values[rows].sum() / one.weights[rows].sum() for one in sides[::-1]))
        )
    assert (found.low, found.high) == pytest.approx(
        tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.012
    )
    assert paired_bootstrap([{"s": sides[0]}], [{"s": Items(sides[1].values)}], ["s"]) is None
