from __future__ import annotations

import itertools

import numpy as np

from interlingua.runtime.seeds import generator, seed_for, stream_key


def test_a_stream_is_named_by_seed_and_purpose_alone():
    assert stream_key(7, "mask", 3) == stream_key(7, "mask", 3)
    np.testing.assert_array_equal(
        generator(7, "mask", 3).random(5), generator(7, "mask", 3).random(5)
    )


def test_streams_never_change_between_versions():
    # Frozen: a resumed run would otherwise see other batches after an upgrade.
    assert stream_key(0, "slot order") == 0xFFBAC457072D29985363CA6E72302C4E
    assert generator(0, "slot order").integers(0, 1000, 4).tolist() == [398, 435, 883, 771]


def test_different_names_have_different_keys():
    names = [(0,), (1,), (0, "a"), (0, "b"), (0, "a", 1), (0, "a", "1"), (0, "a1"), (1, "a")]
    keys = [stream_key(*name) for name in names]
    assert all(x != y for x, y in itertools.combinations(keys, 2))


def test_integer_seeds_fit_torch():
    seeds = [seed_for(seed, "dropout", step) for seed in range(10) for step in range(100)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert len(set(seeds)) == 1000
