from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.vector_format import Int8Ranges
from interlingua.errors import DataError


def as_array(ranges):
    return np.array([ranges.minimum, ranges.maximum])


def test_measured_ranges_are_those_of_the_vectors_and_saved(encoder, sentences, tmp_path):
    encoder.calibrate_ranges(iter(sentences), dims=(encoder.dim, 8))
    ranges = encoder.settings.int8_ranges
    for width in (encoder.dim, 8):
        expected = Int8Ranges.of(encoder.encode(sentences, truncate_dim=width))
        assert np.allclose(as_array(ranges[width]), as_array(expected), atol=1e-6)
    encoder.save(tmp_path / "model")
    assert Encoder.load(tmp_path / "model").settings.int8_ranges == ranges
    codes = encoder.encode(sentences, precision="int8", truncate_dim=8)
    assert (codes.min(), codes.max()) == (-128, 127)


def test_ranges_are_measured_for_the_trained_widths(encoder, sentences):
    encoder.settings = EncodingSettings(max_tokens=64, matryoshka_dims=(encoder.dim, 16, 4))
    encoder.calibrate_ranges(sentences)
    assert list(encoder.settings.int8_ranges) == [encoder.dim, 16, 4]
    with pytest.raises(DataError, match="no texts"):
        encoder.calibrate_ranges([])
