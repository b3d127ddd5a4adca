from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.encoder.post_pooling import Dense, Normalize
from interlingua.errors import ConfigError, DataError
from interlingua.exporters.shrink import WHOLE_MODEL, ShrinkOptions, first_layers, shrink
from interlingua.exporters.verify import SAMPLES
from tests.encoder.builders import with_layers


@pytest.fixture
def texts(tmp_path):
    """Two languages' sentences in two files, and as a list."""
    (tmp_path / "en.txt").write_text("\n".join(SAMPLES["eng_Latn"]), encoding="utf-8")
    pairs = zip(SAMPLES["deu_Latn"], SAMPLES["fra_Latn"], strict=False)
    (tmp_path / "de-fr.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    kept = [*SAMPLES["eng_Latn"], *SAMPLES["deu_Latn"], *SAMPLES["fra_Latn"]]
    return [tmp_path / "en.txt", tmp_path / "de-fr.tsv"], kept


def test_vectors_of_the_texts_stay(encoder, texts):
    files, kept = texts
    small = shrink(encoder, ShrinkOptions(texts=files))
    assert small.vocabulary.size < encoder.vocabulary.size
    assert small.backbone.word_embeddings.weight.shape[0] == small.vocabulary.size
    np.testing.assert_allclose(small.encode(kept), encoder.encode(kept), atol=1e-6)
    assert encoder.backbone.word_embeddings.weight.shape[0] == encoder.vocabulary.size
    by_pattern = shrink(encoder, ShrinkOptions(texts=[files[0].parent / "*.t[xs][tv]"]))
    assert by_pattern.digest() == small.digest()


def test_a_pattern_of_nothing(encoder, tmp_path):
    with pytest.raises(DataError, match="no file matches"):
        shrink(encoder, ShrinkOptions(texts=[tmp_path / "*.tsv"]))


def test_the_first_layers_compute_what_they_did(encoder, texts):
    small = shrink(encoder, ShrinkOptions(layers=1))
    assert len(small.backbone.layers) == 1
    assert small.vocabulary is encoder.vocabulary
    for name, weight in small.backbone.state_dict().items():
        assert torch.equal(weight, encoder.backbone.state_dict()[name])
    with torch.no_grad():
        small.backbone.layers[0].value.weight.zero_()
    assert encoder.backbone.layers[0].value.weight.any()


def test_nothing_asked_is_the_same_encoder(encoder):
    assert shrink(encoder, WHOLE_MODEL) is encoder


@pytest.mark.parametrize("layers", [0, 9])
def test_layers_that_are_not_there(encoder, layers):
    with pytest.raises(
        ConfigError, match=f"layers: .* {len(encoder.backbone.layers)}, found {layers}"
    ):
        first_layers(encoder, layers)


def test_shorter_vectors_and_ranges_leave_the_encoder_as_it_was(encoder, texts):
    files, kept = texts
    before = encoder.settings
    small = shrink(encoder, ShrinkOptions(truncate_dim=8, ranges_of=files))
    assert encoder.settings == before
    assert small.dim == 8
    found = small.settings.int8_ranges[8]
    vectors = encoder.encode(kept, truncate_dim=8)
    np.testing.assert_allclose(found.minimum, vectors.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.maximum, vectors.max(axis=0), atol=1e-6)


def test_layers_after_pooling_stay_in_shorter_vectors(encoder, texts):
    files, kept = texts
    dense = Dense.of(np.diag(np.linspace(1, 3, 32)), np.linspace(-1, 1, 32))
    mapped = with_layers(encoder, Normalize(), dense)
    small = shrink(mapped, ShrinkOptions(truncate_dim=8, ranges_of=files))
    np.testing.assert_allclose(small.encode(kept), mapped.encode(kept, truncate_dim=8), atol=1e-6)
    assert np.abs(small.encode(kept) - encoder.encode(kept, truncate_dim=8)).max() > 0.1


@pytest.mark.parametrize("dim", [0, 33])
def test_elements_that_are_not_there(encoder, dim):
    with pytest.raises(ConfigError, match=f"truncate_dim: .* 32, found {dim}"):
        shrink(encoder, ShrinkOptions(truncate_dim=dim))
