"""benchmarks/highway.py multiplies what it says, and does not compare unequal products."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.kernels import cross

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def highway(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("highway")


def plain_product(data, dtype):
    """Compute the product in float64, from panels."""
    panels, units, columns, together = data.weights.shape
    weights = data.weights.transpose(0, 2, 1, 3).reshape(panels * columns, units * together)
    weights = weights.astype(np.float64)
    x = data.x.astype(np.float64)
    if dtype == "float32":
        return x @ weights.T + data.bias
    whole = x @ (weights - 128).T
    return whole * data.x_scales[:, None] * data.scales + data.bias


@pytest.mark.skipif(cross.HERE != "x86_64" or shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_kernel_s_product_is_the_plain_one(highway, dtype, tmp_path):
    flags = [*cross.BUILD.FLAGS, *cross.FLAGS["x86_64"]["avx2"]]
    kernels = f"-I{ROOT / 'src' / 'interlingua' / 'kernels'}"
    source = ROOT / "benchmarks" / "highway_kernel.c"
    library = highway.build(["gcc", *flags, kernels], source, tmp_path / "kernel.so")
    if not library.supported():
        pytest.skip("this processor does not run avx2")
    data = highway.operands(dtype, 12, 64, 96, library.columns_of_a_panel())
    highway.multiply(library, dtype, data, 2)
    expected = plain_product(data, dtype)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(data.y, expected, atol=1e-5)


def test_unequal_products_are_an_error(highway):
    one = np.ones((2, 2), np.float32)
    near = np.nextafter(one, np.float32(2))
    highway.check({"by hand": one, "Highway": one}, "int8")
    highway.check({"by hand": one, "Highway": near}, "float32")
    for other, dtype in ((near, "int8"), (one + 2e-5, "float32")):
        with pytest.raises(SystemExit):
            highway.check({"by hand": one, "Highway": other}, dtype)
    with pytest.raises(SystemExit):
        highway.check({"by hand": 0 * one, "Highway": 0 * one}, "int8")
