from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.post_pooling import Dense, Normalize
from interlingua.errors import ConfigError, DataError
from interlingua.exporters.principal_components import in_components
from interlingua.exporters.shrink import ShrinkOptions, shrink
from tests.encoder.builders import with_layers


@pytest.fixture
def texts():
    """A hundred different sentences."""
    rng = np.random.default_rng(0)
    words = ["The", "cat", "sits", "on", "the", "mat", "one", "two", "Die", "Katze", "auf"]
    return [" ".join(rng.choice(words, 7)) for _ in range(100)]


def test_cosines_stay_and_elements_fall_in_size(encoder, texts):
    before = encoder.encode(texts)
    after = in_components(encoder, texts).encode(texts)
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-5)
    sizes = np.square(after).mean(axis=0)
    assert np.all(sizes[:-1] >= sizes[1:] - 1e-7)
    singular = np.linalg.svd(before, compute_uv=False)
    np.testing.assert_allclose(sizes, np.square(singular) / len(texts), atol=1e-6)


def test_cut_vectors_keep_cosines_better_than_the_first_elements_do(encoder, texts):
    whole = encoder.encode(texts)
    cut = in_components(encoder, texts).encode(texts, truncate_dim=8)
    first = whole[:, :8]
    cosines = whole @ whole.T
    assert np.abs(cut @ cut.T - cosines).mean() < np.abs(first @ first.T - cosines).mean()


def test_the_rotation_comes_before_the_cut_and_the_ranges(encoder, texts, tmp_path):
    (tmp_path / "en.txt").write_text("\n".join(texts) + "\n")
    files = [tmp_path / "en.txt"]
    small = shrink(encoder, ShrinkOptions(components_of=files, truncate_dim=8, ranges_of=files))
    turned = in_components(encoder, texts)
    np.testing.assert_allclose(small.encode(texts), turned.encode(texts, truncate_dim=8), atol=1e-5)
    small.save(tmp_path / "small")
    loaded = Encoder.load(tmp_path / "small")
    np.testing.assert_allclose(loaded.encode(texts), small.encode(texts), atol=1e-6)
    assert loaded.encode(texts, precision="int8").dtype == np.int8


@pytest.mark.parametrize(
    ("last", "kinds"),
    [
        (Dense.of(np.diag(np.linspace(1, 3, 32)), np.zeros(32)), ("Dense",)),
        (Dense(32, 32, bias=False), ("Dense",)),
        (Dense(32, 32, activation="tanh"), ("Dense", "Dense")),
        (Normalize(), ("Normalize", "Dense")),
    ],
    ids=["affine", "without a bias", "with an activation", "a scaling"],
)
def test_a_rotation_comes_last_and_joins_an_affine_layer(encoder, texts, last, kinds):
    layered = with_layers(encoder, last)
    turned = in_components(layered, texts)
    before, after = layered.encode(texts), turned.encode(texts)
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-5)
    assert turned.post_pooling.kinds == kinds


def test_too_few_texts_and_cut_vectors_are_refused(encoder, texts):
    with pytest.raises(DataError, match="31 texts"):
        in_components(encoder, texts[:31])
    encoder.settings = dataclasses.replace(encoder.settings, truncate_dim=8)
    with pytest.raises(ConfigError, match="truncated to 8"):
        in_components(encoder, texts)
