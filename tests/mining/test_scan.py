from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.mining.scan import Block, Centres, Precision, exact, rest_and_term


def sides(seed, n=40, m=60, d=33, shift=2.0):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal((size, d)).astype(np.float32) + np.float32(shift) for size in (n, m))
    return x, y, Centres(x.mean(axis=0) + np.float32(0.1), y.mean(axis=0))


def test_the_terms_make_up_the_inner_product():
    x, y, centres = sides(0)
    cpu = torch.device("cpu")
    rest_x, term_x = rest_and_term(Block(x, 0), centres, of_x=True, device=cpu)
    rest_y, term_y = rest_and_term(Block(y, 0), centres, of_x=False, device=cpu)
    total = rest_x @ rest_y.T + term_x[:, None] + term_y
    np.testing.assert_allclose(total.numpy(), x @ y.T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("step", [2.0**-3, 2.0**-6, 2.0**-9])
def test_no_product_of_rounded_vectors_is_farther_off_than_the_slack(step):
    x, y, centres = sides(1)
    cpu = torch.device("cpu")
    parts = [rest_and_term(Block(side, 0), centres, of_x=of_x, device=cpu) for side, of_x in ((x, True), (y, False))]
    rounded = [(rest / step).round() * step for rest, _ in parts]
    precision = [Precision.of(rest, near, term) for (rest, term), near in zip(parts, rounded, strict=True)]
    products = (rounded[0] @ rounded[1].T + parts[0][1][:, None] + parts[1][1]).numpy()
    off = np.abs(products - x.astype(np.float64) @ y.T.astype(np.float64))
    of_x, of_y = precision[0].slack(precision[1], 33), precision[1].slack(precision[0], 33)
    assert (off <= of_x[:, None]).all()
    assert (off <= of_y).all()
    assert of_x.max() < 4 * step * 33  # and is no idle bound
    np.testing.assert_array_equal(precision[0].part(slice(3, 7)).errors, precision[0].errors[3:7])


def test_exact_values_are_those_of_float64_for_any_number_of_pairs():
    x, y, _ = sides(2)
    rng = np.random.default_rng(2)
    rows, columns = rng.integers(0, len(x), 2500), rng.integers(0, len(y), 2500)
    expected = [np.float32(sum(float(a) * float(b) for a, b in zip(x[i], y[j], strict=True)))
                for i, j in zip(rows, columns, strict=True)]  # fmt: skip
    assert exact(x, y, rows, columns).tolist() == expected
    assert exact(x, y, rows[:0], columns[:0]).tolist() == []
