import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.samples.splits import hold_out

rows = st.lists(st.tuples(st.integers(0, 12), st.integers(8, 20), st.integers(0, 3)), max_size=60)


def arrays(triples):
    sources, targets, groups = np.array(triples or np.zeros((0, 3)), np.int64).T
    return sources.astype(np.uint64), targets.astype(np.uint64), groups


@settings(deadline=None)
@given(rows, st.integers(0, 5), st.floats(0, 1), st.integers(0, 9))
def test_each_sentence_is_held_out_once_and_never_an_empty_one(triples, per_group, max_share, seed):
    sources, targets, groups = arrays(triples)
    held = hold_out(sources, targets, groups, per_group=per_group, max_share=max_share, seed=seed)
    assert 0 not in {*sources[held], *targets[held]}
    for group in set(groups.tolist()):
        inside = held & (groups == group)
        assert inside.sum() <= min(per_group, max_share * (groups == group).sum())
        assert len(set(sources[inside])) == len(set(targets[inside])) == inside.sum()


def star(languages, sentences):
    """Pair each language's own words with the same English sentences, like catalogues."""
    english = text_keys([f"english {i}" for i in range(sentences)])
    foreign = [
        text_keys([f"language {k} word {i}" for i in range(sentences)]) for k in range(languages)
    ]
    return (
        np.concatenate(foreign),
        np.tile(english, languages),
        np.repeat(np.arange(languages), sentences),
    )


def test_language_pairs_hold_out_translations_of_the_same_sentences():
    sources, targets, groups = star(20, 500)
    held = hold_out(sources, targets, groups, per_group=40)
    assert held.sum() == 20 * 40
    assert len(set(targets[held].tolist())) == 40
    assert (hold_out(targets, sources, groups, per_group=40) == held).all()


def test_seeds_differ_and_repeat():
    sources, targets, groups = star(3, 400)
    first, again, other = (
        hold_out(sources, targets, groups, per_group=50, seed=seed) for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first & other).sum() < 50


def test_only_eligible_rows_are_held_out_and_the_share_is_of_all_rows():
    sources, targets, groups = star(2, 100)
    eligible = np.arange(200) % 4 == 0
    held = hold_out(sources, targets, groups, per_group=1000, max_share=0.2, eligible=eligible)
    assert not (held & ~eligible).any()
    assert np.bincount(groups[held]).tolist() == [20, 20]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_groups_need_not_be_sorted(order):
    sources, targets, groups = star(3, 60)
    shuffled = np.random.default_rng(order[0]).permutation(len(sources))
    held = hold_out(sources[shuffled], targets[shuffled], groups[shuffled], per_group=5)
    straight = hold_out(sources, targets, groups, per_group=5)
    assert set(sources[shuffled][held].tolist()) == set(sources[straight].tolist())
