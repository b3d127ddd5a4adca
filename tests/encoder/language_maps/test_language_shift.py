from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.language_shift import SHIFT_FILE, LanguageShift
from interlingua.encoder.post_pooling import Normalize
from interlingua.errors import CheckpointError, ConfigError
from interlingua.exporters.sentence_transformers import export_model
from tests.encoder.builders import with_layers

TEXTS = ["The cat sits on the mat.", "Yes."]


@pytest.fixture
def shifted(encoder):
    torch.manual_seed(1)
    shift = LanguageShift(["deu_Latn", "eng_Latn"], torch.randn(2, encoder.dim) / 10)
    return with_layers(encoder, Normalize(), shift=shift)


def test_encode_subtracts_the_mean_of_the_language(shifted, encoder):
    expected = encoder.encode(TEXTS) - shifted.language_shift.means[0].numpy()
    np.testing.assert_allclose(
        shifted.encode(TEXTS, language="de", normalize_embeddings=False), expected, atol=1e-6
    )
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(shifted.encode(TEXTS, language="deu"), expected / lengths, atol=1e-6)


def test_encode_without_a_known_language_is_refused(shifted):
    with pytest.raises(ConfigError, match="language"):
        shifted.encode(TEXTS)
    with pytest.raises(ConfigError, match="fra_Latn"):
        shifted.encode(TEXTS, language="fr")


def test_saved_shift_loads_with_the_same_digest(shifted, tmp_path):
    shifted.save(tmp_path / "m")
    loaded = Encoder.load(tmp_path / "m")
    assert loaded.digest() == shifted.digest() == shifted.clone().digest()
    np.testing.assert_array_equal(
        loaded.encode(TEXTS, language="en"), shifted.encode(TEXTS, language="en")
    )


def test_digest_depends_on_the_shift(shifted, encoder):
    before = shifted.digest()
    shifted.language_shift.means += 1
    assert shifted.digest() != before


def test_damaged_or_unfitting_shift_is_refused(shifted, tmp_path):
    shifted.save(tmp_path / "m")
    path = tmp_path / "m" / SHIFT_FILE
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CheckpointError, match=SHIFT_FILE):
        Encoder.load(tmp_path / "m")


def test_export_to_other_libraries_is_refused(shifted, tmp_path):
    shifted.save(tmp_path / "m")
    with pytest.raises(CheckpointError, match="per language"):
        export_model(tmp_path / "m", tmp_path / "out")
