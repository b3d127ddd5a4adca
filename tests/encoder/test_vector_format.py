"""Cut and coded vectors: by hand, against sentence-transformers' own, and through a saved model."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.vector_format import (
    Int8Ranges,
    VectorFormat,
    dequantize_vectors,
    first_elements,
    quantize_vectors,
    ranges_by_width,
)
from interlingua.errors import CheckpointError, ConfigError, DataError

VECTORS = np.random.default_rng(0).standard_normal((50, 20)).astype(np.float32)


def as_array(ranges):
    return np.array([ranges.minimum, ranges.maximum])


def test_int8_steps_by_hand():
    """Use a range of 0 to 255, with steps of 1.

    Values beyond it, and the upper end, are set to the nearest step.
    """
    ranges = Int8Ranges((0.0,), (255.0,))
    found = quantize_vectors(
        np.array([[-3.0], [0.9], [1.0], [254.9], [255.0], [300.0]], np.float32), "int8", ranges
    )
    assert found[:, 0].tolist() == [-128, -128, -127, 126, 127, 127]
    restored = dequantize_vectors(found, 1, ranges)
    assert restored[:, 0].tolist() == [0, 0, 1, 254, 255, 255]


def test_a_dimension_that_is_the_same_everywhere_stays():
    ranges = Int8Ranges((0.25,), (0.25,))
    codes = quantize_vectors(np.full((2, 1), 0.25, np.float32), "int8", ranges)
    assert dequantize_vectors(codes, 1, ranges).tolist() == [[0.25], [0.25]]


def test_bits_by_hand():
    vector = np.array([[0.1, -0.1, 0.0, 2.0, -1.0, -1.0, -1.0, 1.0, 1.0]], np.float32)
    assert quantize_vectors(vector, "ubinary").tolist() == [[0b10010001, 0b10000000]]
    assert quantize_vectors(vector, "binary").tolist() == [[0b10010001 - 128, 0]]
    for precision in ("binary", "ubinary"):
        signs = dequantize_vectors(quantize_vectors(vector, precision), 9)
        assert signs.tolist() == [[1, -1, -1, 1, -1, -1, -1, 1, 1]]


@pytest.mark.parametrize("precision", ["int8", "binary", "ubinary"])
@pytest.mark.parametrize("width", [20, 16])
def test_codes_are_sentence_transformers(precision, width):
    theirs = pytest.importorskip("sentence_transformers.util").quantize_embeddings
    vectors, ranges = VECTORS[:, :width], Int8Ranges.of(VECTORS[:30, :width])
    found = quantize_vectors(vectors, precision, ranges)
    expected = theirs(vectors, precision, ranges=as_array(ranges))
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def test_int8_is_off_by_less_than_a_step():
    ranges = Int8Ranges.of(VECTORS)
    off = VECTORS - dequantize_vectors(quantize_vectors(VECTORS, "int8", ranges), 20, ranges)
    assert (off > -1e-6).all()
    assert (off < ranges.steps * (1 + 1e-4)).all()


def test_ranges_of_parts_join_to_those_of_all():
    assert Int8Ranges.of(VECTORS[:20]).joined(Int8Ranges.of(VECTORS[20:])) == Int8Ranges.of(VECTORS)


@pytest.mark.parametrize("normalize", [True, False])
def test_cut_vectors_are_scaled_anew(normalize):
    vectors = np.array([[3.0, 4.0, 12.0], [0.0, 0.0, 1.0]], np.float32)
    expected = np.array([[0.6, 0.8], [0, 0]] if normalize else [[3, 4], [0, 0]], np.float32)
    assert np.array_equal(first_elements(vectors, 2, normalize=normalize), expected)


def test_encode_cuts_and_codes(encoder, sentences):
    whole = encoder.encode(sentences)
    cut = encoder.encode(sentences, truncate_dim=8)
    assert np.allclose(cut, first_elements(whole, 8, normalize=True), atol=1e-6)
    raw = encoder.encode(sentences, truncate_dim=8, normalize_embeddings=False)
    assert np.array_equal(raw, encoder.encode(sentences, normalize_embeddings=False)[:, :8])
    bits = encoder.encode(sentences, truncate_dim=8, precision="ubinary")
    assert np.array_equal(bits, np.packbits(cut > 0, axis=1))


def test_coded_vectors_go_to_a_file(encoder, sentences, tmp_path):
    encoder.calibrate_ranges(sentences)
    for precision in ("int8", "binary"):
        mapped = encoder.encode(sentences, precision=precision, out=tmp_path / "codes.npy")
        assert mapped.dtype == np.int8
        assert np.array_equal(mapped, encoder.encode(sentences, precision=precision))


def test_a_model_of_cut_vectors_gives_them_everywhere(encoder, sentences, tmp_path):
    whole = encoder.encode(sentences)
    encoder.settings = EncodingSettings(max_tokens=encoder.settings.max_tokens, truncate_dim=8)
    encoder.save(tmp_path / "model")
    back = Encoder.load(tmp_path / "model")
    assert (back.dim, back.settings.truncate_dim) == (8, 8)
    assert np.allclose(back.encode(sentences), first_elements(whole, 8, normalize=True), atol=1e-6)
    assert back.encode(sentences, truncate_dim=4).shape[1] == 4
    with pytest.raises(ConfigError, match=r"dim: .* 8, found 16"):
        back.encode(sentences, truncate_dim=16)


def test_a_broken_file_of_ranges_is_named(encoder, tmp_path):
    encoder.save(tmp_path / "model")
    (tmp_path / "model" / "int8_ranges.json").write_text('{"8": [1, 2]}')
    with pytest.raises(CheckpointError, match=r"int8_ranges\.json"):
        Encoder.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "truncate_dim: .*found 0"),
        ({"dim": 21}, "truncate_dim: .* from 1 to 20, found 21"),
        ({"precision": "int4"}, "precision 'int4'"),
        ({"precision": "int8"}, "int8 ranges .*20 .*--ranges-of"),
        ({"precision": "int8", "normalize": False}, "length 1"),
    ],
)
def test_what_can_t_be_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        options = {"dim": None, "normalize": True, "precision": "float32", **options}
        VectorFormat.of(EncodingSettings(), 20, **options)(VECTORS)


@pytest.mark.parametrize(
    "codes", [np.zeros((2, 5), np.int8), np.zeros((2, 20), np.uint8), np.zeros((2, 3), np.int16)]
)
def test_codes_of_another_width_are_refused(codes):
    with pytest.raises(DataError, match="of width 20"):
        dequantize_vectors(codes, 20)


def test_int8_without_ranges_is_refused():
    with pytest.raises(ConfigError, match="ranges"):
        quantize_vectors(VECTORS, "int8")
    with pytest.raises(ConfigError, match="ranges"):
        dequantize_vectors(np.zeros((2, 20), np.int8), 20)


def test_stored_ranges_are_for_their_width():
    stored = {"2": {"minimum": [0, -1], "maximum": [0, 0.5]}}
    assert ranges_by_width(stored) == {2: Int8Ranges((0.0, -1.0), (0.0, 0.5))}
    uneven = {"minimum": [0], "maximum": [0, 1]}
    for wrong in ({"3": stored["2"]}, {"2": uneven}, {"02": stored["2"]}):
        with pytest.raises(ValueError, match="ranges for"):
            ranges_by_width(wrong)
    with pytest.raises(ValueError, match="below its start"):
        ranges_by_width({"1": {"minimum": [0.5], "maximum": [0.25]}})
