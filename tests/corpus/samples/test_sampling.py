import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.corpus.samples.sampling import Caps, exposure_table, quotas, temperature_weights
from interlingua.errors import ConfigError

FOUR = {"a": 900, "b": 100, "c": 10, "d": 0}
counts = st.dictionaries(
    st.text("abc", min_size=1, max_size=4), st.integers(1, 10**7), min_size=1, max_size=12
)


@pytest.mark.parametrize(
    ("temperature", "caps", "expected"),
    [
        (1, {}, [0.9, 0.09, 0.01]),
        (2, {}, [30 / 42.6491, 9.4868 / 42.6491, 3.1623 / 42.6491]),
        (math.inf, {}, [1 / 3, 1 / 3, 1 / 3]),
        # a is cut to 0.5; the other half goes to b and c, 9 : 1
        (1, {"max_share": 0.5}, [0.5, 0.45, 0.05]),
        # a is cut to 0.4, then b (0.54 of the rest) too; c gets what is left
        (1, {"max_share": 0.4}, [0.4, 0.4, 0.2]),
        # c is lifted to 0.05; a and b share the rest, 10 : 1
        (1, {"min_share": 0.05}, [0.95 * 10 / 11, 0.95 / 11, 0.05]),
        # c is lifted to 0.1, which takes b below it as well
        (1, {"min_share": 0.1}, [0.8, 0.1, 0.1]),
        (1, {"min_share": 0.1, "max_share": 0.6}, [0.6, 0.3, 0.1]),
        # a counts as 90: 90, 90, 10 of 190
        (1, {"max_pairs": 90}, [9 / 19, 9 / 19, 1 / 19]),
    ],
)
def test_hand_worked_shares(temperature, caps, expected):
    shares = temperature_weights({"a": 900, "b": 90, "c": 10}, temperature, Caps(**caps))
    assert list(shares) == ["a", "b", "c"]
    assert list(shares.values()) == pytest.approx(expected, rel=1e-4)


@settings(deadline=None)
@given(
    counts, st.floats(0.5, 100), st.floats(0, 1), st.floats(0, 1), st.none() | st.integers(1, 10**6)
)
def test_shares_are_clipped_multiples_of_the_weights_and_sum_to_one(
    n, temperature, low, high, max_pairs
):
    k = len(n)
    caps = Caps(min_share=low / k, max_share=1 / k + high * (1 - 1 / k), max_pairs=max_pairs)
    shares = temperature_weights(n, temperature, caps)
    assert sum(shares.values()) == pytest.approx(1)
    assert all(caps.min_share - 1e-9 <= share <= caps.max_share + 1e-9 for share in shares.values())
    weights = {
        name: min(count, max_pairs or count) ** (1 / temperature) for name, count in n.items()
    }
    # all that are not at a cap share one factor, and the order of the weights is the order of the
    # shares
    free = [
        shares[x] / weights[x]
        for x in n
        if caps.min_share * 1.0001 < shares[x] < caps.max_share * 0.9999
    ]
    assert free == pytest.approx([free[0]] * len(free)) if free else True
    ordered = [shares[name] for name in sorted(n, key=lambda name: weights[name])]
    assert all(a <= b + 1e-9 for a, b in pairwise(ordered))


@settings(deadline=None)
@given(counts)
def test_a_low_temperature_takes_the_largest_and_a_high_one_all(n):
    assert sum(temperature_weights(n, 1e6).values()) == pytest.approx(1)
    assert max(temperature_weights(n, 1e6).values()) == pytest.approx(1 / len(n), rel=1e-3)
    cold = temperature_weights(n, 1e-3)
    assert sum(cold.values()) == pytest.approx(1)
    has_equal_counts = len(set(n.values())) < len(n)
    assert has_equal_counts or max(cold, key=cold.get) == max(n, key=n.get)


def test_empty_pairs_get_nothing():
    assert temperature_weights({"a": 0, "b": 5}, 5, Caps(min_share=0.2)) == {"a": 0.0, "b": 1.0}


@pytest.mark.parametrize(
    "wrong",
    [{"min_share": 0.6, "max_share": 0.5}, {"max_share": 1.2}, {"min_share": -1}, {"max_pairs": 0}],
)
def test_caps_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Caps(**wrong)


@pytest.mark.parametrize(
    ("n", "temperature", "caps", "message"),
    [
        ({"a": 1, "b": 1}, 1, {"max_share": 0.4}, "2 language pairs cannot share"),
        ({"a": 1, "b": 1}, 1, {"min_share": 0.6}, "2 language pairs cannot share"),
        ({"a": 1}, 0, {}, "temperature: .* found 0"),
        ({"a": 1}, math.nan, {}, "temperature: .* found nan"),
        ({"a": 0}, 1, {}, "nothing can be sampled"),
        ({}, 1, {}, "nothing can be sampled"),
    ],
)
def test_what_cannot_be_done_is_said(n, temperature, caps, message):
    with pytest.raises(ConfigError, match=message):
        temperature_weights(n, temperature, Caps(**caps))


def test_exposure_table():
    rows = exposure_table({"a": 100, "b": 0, "c": 10}, {"a": 0.75, "b": 0.0, "c": 0.25}, 1000)
    assert [tuple(row) for row in rows] == [
        ("a", 100, 0.75, 750, 7.5),
        ("c", 10, 0.25, 250, 25),
        ("b", 0, 0, 0, 0),
    ]


@pytest.mark.parametrize(
    ("counts", "total", "temperature", "held", "expected"),
    [
        ({"a": 5, "b": 5}, 20, 5.0, {}, {"a": 5, "b": 5}),
        ({"a": 900, "b": 100}, 100, 1.0, {}, {"a": 90, "b": 10}),
        ({"a": 900, "b": 100}, 100, float("inf"), {}, {"a": 50, "b": 50}),
        (FOUR, 300, float("inf"), {}, FOUR | {"a": 190}),
        ({"a": 400, "b": 100}, 300, 2.0, {}, {"a": 200, "b": 100}),
        ({"a": 400, "b": 100}, 300, 2.0, {"b": 40}, {"a": 260, "b": 40}),
        ({"a": 10_000, "b": 1}, 100, 1.0, {}, {"a": 100, "b": 1}),
    ],
)
def test_quotas(counts, total, temperature, held, expected):
    assert quotas(counts, total, temperature, held=counts | held) == expected
