from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.batches.language_mixture import ParallelPlan, apportion, named_pair
from interlingua.batches.sentences import join
from interlingua.batches.token_store import TokenStore, TokenStoreWriter
from interlingua.corpus.samples.sampling import Caps
from interlingua.errors import ConfigError, DataError
from tests.batches.conftest import assert_same

COUNTS = (120, 37, 5)


def plan(store, **settings):
    return ParallelPlan(store, **{"global_batch_size": 12, "seed": 3, **settings})


def draws(found, count):
    """Return (language pair, row) of the first ``count`` places."""
    pair_indices, rows = found.rows_at(np.arange(count))
    return list(zip(pair_indices.tolist(), rows.tolist(), strict=True))


def test_a_batch_holds_the_rows_it_names(store):
    found = plan(store)
    batch = found.batch_at(2)
    pair_indices, rows = found.rows_at(np.arange(24, 36))
    first = batch.a.input_ids[batch.a.cu_seqlens[:-1].long()]
    assert first.tolist() == (1000 * pair_indices + rows).tolist()
    assert batch.b.input_ids[batch.b.cu_seqlens[:-1].long()].tolist() == (first + 300).tolist()
    assert list(zip(batch.a.languages, batch.b.languages, strict=True)) == [
        store.language_pairs[i] for i in pair_indices
    ]
    assert (batch.step, batch.first_row, batch.seed) == (2, 0, 3)


def test_a_step_is_the_same_whenever_and_by_whomever_it_is_asked(store):
    steps = [plan(store, temperature=3.0).batch_at(step) for step in range(30)]
    resumed = plan(store, temperature=3.0)
    for step in (29, 0, 13, 29):
        batch = resumed.batch_at(step)
        assert_same(batch.a, steps[step].a)
        assert_same(batch.b, steps[step].b)
        assert batch[2:] == steps[step][2:]


def test_seeds_give_different_orders(store):
    assert draws(plan(store, seed=1), 162) != draws(plan(store, seed=2), 162)


def test_epochs_are_in_different_orders(store):
    found = draws(plan(store), 2 * 162)
    assert found[:162] != found[162:]
    assert [pair for pair, _ in found[:162]] != [pair for pair, _ in found[162:]]


@pytest.mark.parametrize("world_size", [2, 3, 4, 12])
def test_ranks_together_have_the_global_batch(store, world_size):
    found = plan(store, temperature=2.0)
    for step in (0, 13, 14):  # 13 * 12 .. 14 * 12 crosses the end of an epoch of 162
        whole = found.batch_at(step)
        parts = [
            found.batch_at(step, rank=rank, world_size=world_size) for rank in range(world_size)
        ]
        assert_same(join(*(part.a for part in parts)), whole.a)
        assert_same(join(*(part.b for part in parts)), whole.b)
        assert [part.first_row for part in parts] == [
            rank * 12 // world_size for rank in range(world_size)
        ]


def test_an_uneven_share_is_refused(store):
    with pytest.raises(ConfigError, match=r"12 .*divided.* 5"):
        plan(store).batch_at(0, rank=0, world_size=5)


def test_proportional_sampling_shows_every_row_once_an_epoch(store):
    found = draws(plan(store), 162)
    assert sorted(found) == [
        (pair, row) for pair, count in enumerate(COUNTS) for row in range(count)
    ]


@settings(max_examples=25, deadline=None)
@given(temperature=st.floats(0.5, 100), seed=st.integers(0, 2**40))
def test_every_row_is_seen_once_in_each_pass_of_its_pair(store, temperature, seed):
    found = plan(store, temperature=temperature, seed=seed)
    epochs = 4
    by_pair = Counter(draws(found, epochs * found.epoch_size))
    for pair, count in enumerate(COUNTS):
        share = found.shares[store.language_pairs[pair]]
        passes, rest = divmod(epochs * share, count)
        times = [by_pair[pair, row] for row in range(count)]
        # Whole passes show each row once; the pass that has started shows some rows once more, each
        # once.
        assert min(times) >= passes
        assert max(times) <= passes + 1
        assert sum(times) == passes * count + rest


@pytest.mark.parametrize("temperature", [1.0, 3.0, float("inf")])
def test_exposure_is_exact(store, temperature):
    found = plan(store, temperature=temperature)
    assert sum(found.shares.values()) == found.epoch_size == 162
    seen = Counter()
    for step in range(60):
        assert found.exposure(step) == {pair: seen[pair] for pair in store.language_pairs}
        batch = found.batch_at(step)
        seen.update(zip(batch.a.languages, batch.b.languages, strict=True))
    whole = found.exposure(27)  # 27 * 12 = 2 epochs of 162
    assert whole == {pair: 2 * share for pair, share in found.shares.items()}


def test_temperature_and_caps_shift_the_shares(store):
    proportional, flat = plan(store), plan(store, temperature=float("inf"))
    assert tuple(proportional.shares.values()) == COUNTS
    assert tuple(flat.shares.values()) == (54, 54, 54)
    capped = plan(store, caps=Caps(max_share=0.5))
    assert next(iter(capped.shares.values())) == 81


def test_long_sides_are_cut(store):
    batch = plan(store, max_tokens=4).batch_at(0)
    whole = plan(store).batch_at(0)
    assert batch.a.max_seqlen == batch.b.max_seqlen == 4
    assert torch.equal(batch.a.lengths, whole.a.lengths.clamp(max=4))


def test_a_batch_larger_than_the_corpus_goes_round(store):
    batch = plan(store, global_batch_size=400).batch_at(1)
    assert batch.a.batch_size == 400


@pytest.mark.parametrize("name", ["global_batch_size", "max_tokens", "max_pairs"])
def test_impossible_sizes_are_refused(store, name):
    with pytest.raises(ConfigError, match=f"{name} 0.* at least 1"):
        plan(store, **{name: 0})


def test_an_empty_store_is_refused(tmp_path):
    with TokenStoreWriter(tmp_path / "s", vocabulary_size=9):
        pass
    with pytest.raises(DataError, match="no rows"):
        plan(TokenStore.open(tmp_path / "s"))


@settings(max_examples=100, deadline=None)
@given(weights=st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30), spare=st.integers(0, 1000))
def test_apportioned_shares_sum_and_stay_near(weights, spare):
    array, total = np.asarray(weights), len(weights) + spare
    shares = apportion(array, total)
    exact = array / array.sum() * total
    assert shares.sum() == total
    assert shares.min() >= 1
    assert (shares[exact >= 1] <= exact[exact >= 1] + 1).all()


def test_apportioning_by_hand():
    assert apportion(np.asarray([0.5, 0.3, 0.2]), 10).tolist() == [5, 3, 2]
    assert apportion(np.asarray([0.96, 0.02, 0.02, 0.0]), 10).tolist() == [8, 1, 1, 0]
    with pytest.raises(ConfigError, match=r"2 pairs .*divided among 3"):
        apportion(np.ones(3), 2)


@pytest.mark.parametrize("name", ["eng_Latn-jpn_Jpan", "jpn_Jpan-eng_Latn", "ja-en"])
def test_chosen_language_pairs_are_read_and_no_other(store, name):
    found = plan(store, language_pairs=(name,))
    assert found.epoch_size == 37
    assert sorted(draws(found, 37)) == [(1, row) for row in range(37)]
    assert found.seen(37) == {"eng_Latn-jpn_Jpan": 444}
    assert found.exposure(37) == {
        ("deu_Latn", "eng_Latn"): 0,
        ("eng_Latn", "jpn_Jpan"): 444,
        ("eng_Latn", "kat_Geor"): 0,
    }


def test_several_language_pairs_keep_their_proportions(store):
    shares = plan(store, language_pairs=("ka-en", "en-de", "fi-ja")).shares
    assert list(shares.values()) == [120, 0, 5]


def test_language_pairs_that_are_not_there(store):
    with pytest.raises(ConfigError, match=r"en-ko; .*deu_Latn-eng_Latn,"):
        plan(store, language_pairs=("en-ko",))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("en", "expected two languages"),
        ("en-eng_Latn", "expected two languages"),
        ("en-qqq", "'en-qqq': .*qqq"),
    ],
)
def test_names_that_are_no_language_pair(name, message):
    with pytest.raises(ConfigError, match=message):
        named_pair(name)


def test_only_so_many_pairs_of_each_language_pair(store):
    found = plan(store, max_pairs=20)
    assert found.epoch_size == 45
    assert list(found.shares.values()) == [20, 20, 5]
    seen = Counter(draws(found, 450))
    assert set(seen.values()) == {10}
    assert Counter(pair for pair, _ in seen) == {0: 20, 1: 20, 2: 5}
    rows = sorted(row for pair, row in seen if pair == 0)
    assert rows != list(range(20))
    others = set(draws(plan(store, max_pairs=20, temperature=5.0), 450))
    assert rows == sorted(row for pair, row in others if pair == 0)


def test_more_pairs_hold_those_of_fewer(store):
    read = [set(draws(plan(store, max_pairs=count), 300)) for count in (10, 30)]
    assert read[0] < read[1]
    assert read[0] != set(draws(plan(store, max_pairs=10, seed=4), 300))


def test_as_many_pairs_as_there_are_change_nothing(store):
    assert draws(plan(store, max_pairs=120), 400) == draws(plan(store), 400)


def test_what_is_expected_is_what_is_seen_after_whole_epochs(store):
    found = plan(store, temperature=3.0)
    assert found.expected(27) == found.seen(27)  # 2 epochs
    assert sum(found.expected(5).values()) == pytest.approx(5 * found.global_batch_size)
    assert tuple(found.available.values()) == tuple(store.counts)
    assert found.available.keys() == found.seen(1).keys()
