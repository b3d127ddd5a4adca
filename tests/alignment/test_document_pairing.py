"""Documents are paired by names or by their texts, and the rest is left without a partner."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.alignment.document_pairing import (
    OTHERS,
    OTHERS_WEIGHT,
    ScoredCandidates,
    choose_threshold,
    find_candidates,
    margins,
    match_documents,
    null_margins,
    pair_by_names,
    pair_documents,
    score_candidates,
    sentence_facts,
    sentence_weights,
)
from tests.alignment.invented_documents import contents, side, two_sides


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        (["guide.de.md", "a.md"], ["guide.en.md", "b.md"], [(0, 0)]),
        (["de/guide.md"], ["en/guide.md"], [(0, 0)]),
        (["guide_de.md", "x/index.de.html"], ["x/index.en.html", "guide_en.md"], [(0, 1), (1, 0)]),
        (["german/a.txt"], ["english/a.docx"], [(0, 0)]),
        # Two documents of one name: the name does not identify one.
        (["a.de.md", "a.de.txt"], ["a.en.md"], []),
        (["de.md", "c.md"], ["en.md", "d.md"], [(0, 0)]),
    ],
)
def test_equal_names_without_languages_are_pairs(source, target, pairs):
    sides = [
        side(contents(len(names)), language, names)[0]
        for names, language in ((source, "de"), (target, "en"))
    ]
    assert pair_by_names(*sides) == pairs


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_documents_find_their_translations(seed):
    sides, vectors, right = two_sides(40, 15, seed=seed)
    found = pair_documents(sides, vectors, match="texts")
    pairs = {(pair.source, pair.target) for pair in found.pairs}
    assert right <= pairs
    # The threshold allows for few wrong pairs, and not for none.
    assert len(pairs) <= 42
    assert len(found.sources) == len(found.targets) == 55 - len(pairs)
    taken = {pair.source for pair in found.pairs}
    assert not taken & {one.document for one in found.sources}
    assert all(one.score < found.threshold for one in (*found.sources, *found.targets))
    assert found.doubtful == []


def test_no_document_is_a_translation():
    sides, vectors, _ = two_sides(0, 30)
    found = pair_documents(sides, vectors, match="texts")
    assert len(found.pairs) <= 1
    assert len(found.sources) == len(found.targets) == 30 - len(found.pairs)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_few_documents_find_their_translations(count):
    sides, vectors, right = two_sides(count, 0, sentences=12)
    found = pair_documents(sides, vectors, match="texts")
    assert {(pair.source, pair.target) for pair in found.pairs} == right


def test_names_that_contradict_the_texts_are_doubtful():
    documents = contents(12)
    names = [f"{number}.md" for number in range(12)]
    x, of_x = side(documents, "de", names)
    # The last four names are exchanged.
    moved = [*documents[:8], *documents[10:], *documents[8:10]]
    y, of_y = side(moved, "en", names)
    found = pair_documents((x, y), (of_x, of_y))
    pairs = {(pair.source, pair.target): pair.by for pair in found.pairs}
    assert pairs == {
        **{(number, number): "names" for number in range(8)},
        **dict.fromkeys([(8, 10), (9, 11), (10, 8), (11, 9)], "texts"),
    }
    assert {(one.source, one.target) for one in found.doubtful} == {(n, n) for n in range(8, 12)}
    by_names = pair_documents((x, y), (of_x, of_y), match="names")
    assert [(pair.source, pair.target) for pair in by_names.pairs] == [(n, n) for n in range(12)]
    assert len(by_names.doubtful) == 4


def test_given_pairs_are_the_only_ones_and_wrong_ones_are_doubtful():
    x, of_x = side(contents(10), "de")
    y, of_y = side(contents(10), "en")
    found = pair_documents((x, y), (of_x, of_y), given=[(0, 0), (1, 2)])
    assert [(pair.source, pair.target, pair.by) for pair in found.pairs] == [
        (0, 0, "given"),
        (1, 2, "given"),
    ]
    assert [(pair.source, pair.target) for pair in found.doubtful] == [(1, 2)]


def test_a_threshold_that_is_given_is_used():
    sides, vectors, _ = two_sides(10, 5)
    assert pair_documents(sides, vectors, match="texts", threshold=9.0).pairs == []
    found = pair_documents(sides, vectors, match="texts", threshold=-9.0)
    assert len(found.pairs) == 15


def naive_margins(found, forbidden):
    """Compute the margins by the formula, candidate by candidate."""
    result = []
    rows = list(zip(found.x, found.y, found.scores, forbidden, strict=True))
    for place, (x, y, score, is_forbidden) in enumerate(rows):
        if is_forbidden:
            result.append(-np.inf)
            continue
        means = []
        for side_of_pair, own in ((0, x), (1, y)):
            others = [
                row[2]
                for at, row in enumerate(rows)
                if row[side_of_pair] == own and at != place and not row[3]
            ]
            best = sorted(others, reverse=True)[:OTHERS]
            means.append(np.mean(best) if best else found.scores.mean())
        rest = (1 - OTHERS_WEIGHT) * np.median(found.scores)
        result.append(score - rest - OTHERS_WEIGHT * sum(means) / 2)
    return np.array(result)


@pytest.mark.parametrize("seed", range(3))
def test_margins_are_those_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    keys = rng.choice(12 * 9, 60, replace=False)
    found = ScoredCandidates(np.sort(keys) // 9, np.sort(keys) % 9, rng.normal(size=60))
    forbidden = rng.random(60) < 0.2
    np.testing.assert_allclose(margins(found, forbidden), naive_margins(found, forbidden))
    accepted = match_documents(found, margins(found, forbidden), (12, 9))
    assert len(set(found.x[accepted])) == len(set(found.y[accepted])) == len(accepted)
    assert not forbidden[accepted].any()
    null, loss = null_margins(found, accepted, (12, 9))
    assert 0 < len(null) <= 9
    assert loss >= 0


def test_two_pairs_exchange_their_documents_if_both_together_score_higher():
    # The best pair, (0, 1), leaves (1, 0), which has little in common; (2, 2) stays.
    x, y = (axis.ravel() for axis in np.indices((3, 3)))
    values = np.array([0.26, 0.27, 0.1, 0.2, 0.24, 0.1, 0.1, 0.1, 0.5])
    found = ScoredCandidates(x, y, values)
    accepted = match_documents(found, values, (3, 3))
    assert [(int(x[row]), int(y[row])) for row in accepted] == [(2, 2), (0, 0), (1, 1)]


def test_a_good_pair_is_not_given_up_for_two_weak_ones():
    x, y = (axis.ravel() for axis in np.indices((2, 2)))
    values = np.array([0.3, 0.15, 0.1, -0.2])
    accepted = match_documents(ScoredCandidates(x, y, values), values, (2, 2))
    assert accepted.tolist() == [0, 3]


def test_partners_are_exchanged_only_where_both_new_pairs_are_candidates():
    found = ScoredCandidates(np.array([0, 0, 1]), np.array([0, 1, 1]), np.zeros(3))
    values = np.array([0.2, 0.9, 0.1])
    assert match_documents(found, values, (2, 2)).tolist() == [1]


def test_a_family_of_similar_documents_is_paired():
    # Pages of a family score high with each other, and each one highest with its translation.
    rng = np.random.default_rng(0)
    x, y = (axis.ravel() for axis in np.indices((100, 100)))
    is_family = (x < 20) & (y < 20)
    is_right = (x == y) & (x < 70)
    right = np.where(is_family, 0.15, 0.4) * is_right
    scores = rng.normal(0, 0.04, x.size) + 0.15 * is_family + right
    found = ScoredCandidates(x, y, scores)
    values = margins(found, np.zeros(x.size, bool))
    accepted = match_documents(found, values, (100, 100))
    kept = accepted[values[accepted] >= choose_threshold(found, accepted, values, (100, 100))]
    assert (is_right & is_family)[kept].sum() >= 14
    assert is_right[kept].mean() >= 0.95


def test_a_translation_in_the_sample_does_not_change_the_nearness():
    sides, vectors, _ = two_sides(20, 0)
    alone, other, _ = two_sides(0, 20)
    shared = sentence_facts(sides, vectors)[0].nearness.mean()
    apart = sentence_facts(alone, other)[0].nearness.mean()
    assert abs(shared - apart) < 0.03


def test_scores_do_not_depend_on_the_other_candidates():
    sides, vectors, _ = two_sides(6, 2)
    facts = sentence_facts(sides, vectors)
    x, y = find_candidates(*facts)
    assert len(x) == 64
    together = score_candidates(*facts, x, y).scores
    alone = [score_candidates(*facts, x[n : n + 1], y[n : n + 1]).scores[0] for n in range(64)]
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)


def test_a_sentence_of_all_documents_weighs_least():
    documents = contents(6)
    documents = [[document[0], *documents[0][1:2], *document[2:]] for document in documents]
    found, _ = side(documents, "de")
    weights = sentence_weights(found)
    shared = int(found.rows(0)[1])
    assert shared == int(found.rows(5)[1])
    length = len(found.numbered.texts[shared])
    like = [w for t, w in zip(found.numbered.texts, weights, strict=True) if len(t) == length]
    assert weights[shared] == min(like)


@pytest.mark.parametrize("seed", range(3))
def test_the_expected_share_of_wrong_pairs_is_small(seed):
    """Draw scores of right candidates that are usually, but not always, above wrong ones."""
    rng = np.random.default_rng(seed)
    count, shared = 120, 80
    x, y = (axis.ravel() for axis in np.indices((count, count)))
    is_right = (x == y) & (x < shared)
    scores = np.where(is_right, rng.normal(0.5, 0.1, x.size), rng.normal(0, 0.07, x.size))
    found = ScoredCandidates(x, y, scores)
    values = margins(found, np.zeros(x.size, bool))
    accepted = match_documents(found, values, (count, count))
    threshold = choose_threshold(found, accepted, values, (count, count))
    kept = accepted[values[accepted] >= threshold]
    assert is_right[kept].mean() >= 0.95
    assert is_right[kept].sum() >= 0.9 * shared
