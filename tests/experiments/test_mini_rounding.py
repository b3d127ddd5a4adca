"""experiments/mini/rounding.py: eight bits with which the outputs of layers stay."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rounding(mini_script):
    return mini_script("rounding")


@pytest.fixture
def layer():
    """Weights with outliers, and correlated inputs with a large mean."""
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(20, 300)).astype(np.float32)
    weights[:, 7] *= 30
    mixing = rng.normal(size=(8, 300))
    inputs = rng.normal(size=(4000, 8)) @ mixing + 0.3 * rng.normal(size=(4000, 300)) + 2
    return weights, inputs


def nearest(weights):
    steps = np.abs(weights).max(axis=1, keepdims=True) / 127
    return np.rint(weights / steps) * steps


def moments(rounding, inputs):
    return rounding.Inputs(inputs.mean(axis=0), inputs.T @ inputs / len(inputs))


def one_by_one(rounding, weights, gram):
    """Round column by column, with the inverse of the remaining matrix."""
    steps = np.abs(weights).max(axis=1) / 127
    largest = np.abs(weights).argmax(axis=1)
    power = np.diagonal(gram)
    inverse = np.linalg.inv(gram + rounding.DAMPING * power.mean() * np.eye(len(power)))
    left = weights.astype(np.float64)
    for column in np.argsort(-power, kind="stable"):
        before = left[:, column].copy()
        codes = np.clip(np.rint(before / steps), -127, 127)
        codes = np.where(largest == column, 127 * np.sign(weights[:, column]), codes)
        share = inverse[column] / inverse[column, column]
        left -= np.outer(before - codes * steps, share)
        left[:, column] = codes * steps
        inverse = inverse - np.outer(inverse[:, column], share)
        # A column that is rounded takes no further error.
        inverse[column] = inverse[:, column] = 0
        inverse[column, column] = 1
    return left


@pytest.mark.parametrize("outliers", [True, False])
def test_blocks_give_the_result_of_single_columns(rounding, layer, outliers):
    weights, inputs = layer
    if not outliers:
        weights[:, 7] /= 30
    gram = moments(rounding, inputs * np.linspace(0.5, 2, 300)).gram
    rounded = rounding.round_matrix(weights, gram)
    np.testing.assert_allclose(rounded, one_by_one(rounding, weights, gram), atol=1e-5)
    np.testing.assert_allclose(np.abs(rounded).max(axis=1), np.abs(weights).max(axis=1), rtol=1e-6)


def test_a_row_of_zeros_stays(rounding, layer):
    weights, inputs = layer
    weights[3] = 0
    assert not rounding.round_matrix(weights, moments(rounding, inputs).gram)[3].any()


def test_equal_inputs_are_rounded_to_the_nearest_integer(rounding, layer):
    weights, _ = layer
    rounded = rounding.round_matrix(weights, np.eye(300))
    np.testing.assert_allclose(rounded, nearest(weights), rtol=1e-5, atol=1e-6)


def test_packing_adds_no_error(rounding, layer, mini_script):
    mini_script("ship")  # which knows where the package is
    from interlingua_mini.packing import pack, unpack

    weights, inputs = layer
    rounded = rounding.round_matrix(weights, moments(rounding, inputs).gram)
    assert rounded.flags.c_contiguous
    stored = unpack(pack({"weight": rounded}, four_bits=""))["weight"]
    np.testing.assert_allclose(stored, rounded, rtol=1e-6, atol=1e-6)


def test_outputs_stay_nearer_than_with_nearest_rounding(rounding, layer):
    weights, inputs = layer
    bias = np.zeros(20, np.float32)
    tensors = {"one.weight": weights, "one.bias": bias, "embeddings.weight": weights}
    found = {"one": moments(rounding, inputs)}
    rounded = rounding.round_layers(tensors, found)
    assert set(rounded) == set(tensors)
    np.testing.assert_array_equal(rounded["embeddings.weight"], weights)
    outputs = inputs @ weights.T
    simple = inputs @ nearest(weights).T - outputs
    careful = inputs @ rounded["one.weight"].T + rounded["one.bias"] - outputs
    assert np.square(careful).mean() < 0.1 * np.square(simple).mean()
    # The bias takes the mean of the error, so the columns need not.
    assert np.abs(careful.mean(axis=0)).max() < 1e-3 * np.abs(careful).max()
    whole = inputs @ rounding.round_matrix(weights, found["one"].gram).T - outputs
    assert careful.var() < 0.95 * whole.var()


def test_a_layer_without_inputs_is_an_error(rounding, layer):
    weights, inputs = layer
    tensors = {"one.weight": weights, "one.bias": np.zeros(20, np.float32)}
    found = moments(rounding, inputs)
    with pytest.raises(ValueError, match=r"differ: one$"):
        rounding.round_layers(tensors, {})
    with pytest.raises(ValueError, match=r"differ: two$"):
        rounding.round_layers(tensors, {"one": found, "two": found})


def test_texts_are_sentences_and_passages_of_both_sides(rounding, tmp_path):
    folder = tmp_path / "valid_text"
    folder.mkdir()
    rows = [f"de {row}\ten {row}" for row in range(40)]
    (folder / "deu-eng.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    texts = rounding.calibration_texts(tmp_path)
    assert "en 39" in texts
    assert "de 0 de 1 de 2 de 3 de 4 de 5" in texts
    assert len(texts) == 2 * (rounding.PASSAGES + rounding.SENTENCES)
