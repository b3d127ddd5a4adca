from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.retrieval.topk import bounds
from interlingua.retrieval.topk.bounds import (
    BlockPrecision,
    Frame,
    dot_float32,
    dot_float64,
    lengths,
    product_error,
    view,
)


def sides(seed, n=40, m=60, d=33, shift=2.0):
    """Draw two sides and a frame with axes, its means slightly off."""
    rng = np.random.default_rng(seed)
    x, y = (
        rng.standard_normal((size, d)).astype(np.float32) + np.float32(shift) for size in (n, m)
    )
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    return x, y, Frame(x.mean(axis=0) + np.float32(0.1), y.mean(axis=0), axes)


@pytest.mark.parametrize("turned", [True, False])
def test_the_terms_make_up_the_inner_product(turned):
    x, y, frame = sides(0)
    frame = frame if turned else frame._replace(axes=None)
    of_x = view(torch.from_numpy(x), frame, of_x=True)
    of_y = view(torch.from_numpy(y), frame, of_x=False)
    total = of_x.rest @ of_y.rest.T + of_x.term[:, None] + of_y.term
    np.testing.assert_allclose(total.numpy(), x @ y.T, rtol=1e-4, atol=1e-3)
    for seen, factor, other in ((of_x, x, frame.y), (of_y, y - frame.y, frame.x)):
        np.testing.assert_allclose(
            seen.size, np.linalg.norm(factor, axis=1) * np.linalg.norm(other), rtol=1e-5
        )
        assert bool((seen.error > 0).all()) == turned
    if turned:
        np.testing.assert_allclose(
            of_x.rest.numpy(), (x - frame.x) @ frame.axes, rtol=1e-4, atol=1e-4
        )


def test_what_turning_rounds_away_is_less_than_its_bound_and_grows_with_the_vector():
    x, _, frame = sides(3)
    errors = []
    for size in (1.0, 1000.0):
        larger = Frame(size * frame.x, size * frame.y, frame.axes)
        seen = view(torch.from_numpy(x * np.float32(size)), larger, of_x=True)
        exact = (x * np.float32(size) - larger.x).astype(np.float64) @ frame.axes
        lost = np.linalg.norm(seen.rest.numpy() - exact, axis=1)
        assert (lost <= seen.error.numpy()).all()
        errors.append(seen.error.numpy())
    np.testing.assert_allclose(errors[1], 1000 * errors[0], rtol=1e-3)


def test_stages_are_of_64_coordinates_and_there_is_one_where_there_are_no_axes():
    of = {d: Frame(np.zeros(d), np.zeros(d), np.eye(d)).stages for d in (5, 64, 65, 130)}
    assert of == {5: [5], 64: [64], 65: [64, 65], 130: [64, 128, 130]}
    assert Frame(np.zeros(130), np.zeros(130)).stages == [130]


@pytest.mark.parametrize("step", [2.0**-3, 2.0**-6, 2.0**-9])
def test_no_bound_of_any_stage_is_passed_and_no_product_is_farther_off_than_the_slack(step):
    x, y, frame = sides(1)
    stages = [5, 20, 33]
    parts = [view(torch.from_numpy(x), frame, of_x=True)]
    parts += [view(torch.from_numpy(y), frame, of_x=False)]
    rounded = [(seen.rest / step).round() * step for seen in parts]
    own, other = (
        BlockPrecision.of(seen, near, stages) for seen, near in zip(parts, rounded, strict=True)
    )
    true = x.astype(np.float64) @ y.T.astype(np.float64)
    for s, stage in enumerate(stages):
        products = (
            rounded[0][:, :stage] @ rounded[1][:, :stage].T + parts[0].term[:, None] + parts[1].term
        ).numpy()
        bound = products + np.outer(own.tails[:, s], other.tails[:, s])
        of_x, of_y = own.slack(other, 33, s), other.slack(own, 33, s)
        assert (true <= bound + of_x[:, None]).all()
        assert (true <= bound + of_y).all()
        assert np.allclose(
            own.tails[:, s], np.linalg.norm(parts[0].rest.numpy()[:, stage:], axis=1), rtol=1e-4
        )
    off = np.abs(products - true)
    assert (off <= of_x[:, None]).all()
    assert (off <= of_y).all()
    assert of_x.max() < 4 * step * 33  # and is no idle bound
    for field in ("errors", "tails", "lengths", "sizes"):
        np.testing.assert_array_equal(
            getattr(own.part(slice(3, 7)), field), getattr(own, field)[3:7]
        )
    copied = BlockPrecision.empty(40, 3)
    copied.put(slice(0, 40), own)
    np.testing.assert_array_equal(copied.errors, own.errors)


def test_exact_values_are_those_of_float64_for_any_number_of_pairs():
    x, y, _ = sides(2)
    rng = np.random.default_rng(2)
    rows, columns = rng.integers(0, len(x), 2500), rng.integers(0, len(y), 2500)
    expected = [
        np.float32(sum(float(a) * float(b) for a, b in zip(x[i], y[j], strict=True)))
        for i, j in zip(rows, columns, strict=True)
    ]
    assert dot_float64(x, y, rows, columns).tolist() == expected
    assert dot_float64(x, y, rows[:0], columns[:0]).tolist() == []


@pytest.mark.parametrize("size", [1e-25, 1e-3, 1e3])
def test_products_in_float32_are_as_near_as_is_said(size):
    x, y, _ = sides(5, n=3000, d=200, shift=0.0)
    x *= np.float32(size)
    rows, columns = np.arange(3000), np.arange(3000) % len(y)
    longest = (float(lengths(torch.from_numpy(side)).max()) for side in (x, y))
    error = product_error(*longest, 200)
    off = np.abs(dot_float32(x, y, rows, columns) - dot_float64(x, y, rows, columns))
    assert off.max() <= error
    assert off.max() > 0
    assert error < max(1e-2 * size, 1e-21)
    assert dot_float32(x, y, rows[:0], columns[:0]).tolist() == []


@pytest.mark.parametrize("size", [1e-25, 1e-20])
def test_lengths_whose_squares_are_lost_are_no_nothing(size):
    x, _, frame = sides(3, shift=0.0)
    vectors = torch.from_numpy(x * np.float32(size))
    tiny = view(vectors, Frame(0 * frame.x, frame.y), of_x=True)
    own = BlockPrecision.of(tiny, torch.zeros_like(tiny.rest), [5, 33])
    assert (own.errors[:, -1] >= np.linalg.norm(x.astype(np.float64) * size, axis=1)).all()
    assert (own.tails[:, 0] >= np.linalg.norm(x[:, 5:].astype(np.float64) * size, axis=1)).all()
    assert (own.lengths > 0).all()


def test_a_pairs_value_is_the_same_wherever_it_stands(monkeypatch):
    """Use products of 1, 2**-24 and a few of 2**-54. Their rounding depends on the order."""
    rng = np.random.default_rng(4)
    x = rng.choice(
        np.float32([1, 2.0**-24, 2.0**-53, 2.0**-54]), (600, 45), p=[0.03, 0.03, 0.47, 0.47]
    )
    y = np.ones((1, 45), np.float32)
    sums = []
    for row in x.astype(np.float64):
        lanes = [0.0] * 16
        for c, product in enumerate(row.tolist()):
            lanes[c % 16] += product
        while len(lanes) > 1:
            lanes = [
                a + b
                for a, b in zip(lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :], strict=True)
            ]
        sums.append(float(np.float32(lanes[0])))
    assert sums != [float(np.float32(sum(row))) for row in x.astype(np.float64).tolist()]
    for together in (1, 7, 1024):
        monkeypatch.setattr(bounds, "_PAIRS_AT_ONCE", together)
        assert dot_float64(x, y, np.arange(600), np.zeros(600, np.int64)).tolist() == sums
