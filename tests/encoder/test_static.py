from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.static import (
    StaticBackbone,
    make_backbone,
    static_model_config,
    without,
)
from interlingua.errors import ConfigError

TEXTS = [
    "The cat sits on the mat.",
    "Yes.",
    "",
    "猫がマットの上に座っている。",
    "the the the " * 300,
]


def means(encoder, texts):
    """Compute the mean row of each text's own tokens, one text at a time; zeros for none."""
    table = encoder.backbone.word_embeddings.weight.detach().numpy()
    special = encoder.special_ids.tolist()
    rows = [[i for i in encoder.vocabulary.encode([text])[0] if i not in special] for text in texts]
    return np.stack([table[row].sum(axis=0) / max(1, len(row)) for row in rows])


def test_a_texts_vector_is_the_mean_of_its_tokens(static):
    expected = means(static, TEXTS)
    np.testing.assert_allclose(
        static.encode(TEXTS, normalize_embeddings=False), expected, atol=1e-6
    )
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(
        static.encode(TEXTS), expected / np.maximum(lengths, 1e-12), atol=1e-6
    )
    for normalize in (True, False):
        one = np.concatenate(
            [static.encode([text], normalize_embeddings=normalize) for text in TEXTS]
        )
        np.testing.assert_allclose(
            one, static.encode(TEXTS, normalize_embeddings=normalize), atol=1e-6
        )


def test_the_fast_path_is_the_pooling_of_token_states(static):
    ids = static.vocabulary.encode(TEXTS)
    batch = TokenBatch.from_lists(ids, ("",) * len(ids))
    slow = static.tokens(batch).pool("mean", include_special=False)
    torch.testing.assert_close(static(batch), slow)
    static.settings = dataclasses.replace(static.settings, include_special=True)
    torch.testing.assert_close(static(batch), static.tokens(batch).pool("mean"))
    expected = F.normalize(static(batch)).detach().numpy()
    expected[TEXTS.index("")] = 0
    np.testing.assert_allclose(static.encode(TEXTS), expected, atol=1e-6)


@pytest.mark.parametrize("pooling", ["max", "cls"])
def test_other_poolings_work_too(static, pooling):
    static.settings = dataclasses.replace(static.settings, pooling=pooling)
    ids = static.vocabulary.encode(TEXTS)
    batch = TokenBatch.from_lists(ids, ("",) * len(ids))
    expected = static.tokens(batch).pool(pooling, include_special=False).detach().numpy()
    expected[TEXTS.index("")] = 0
    np.testing.assert_allclose(
        static.encode(TEXTS, normalize_embeddings=False), expected, atol=1e-6
    )


def test_gradients_reach_the_rows_of_a_texts_tokens_alone(static):
    ids = static.vocabulary.encode(TEXTS[:2])
    static(TokenBatch.from_lists(ids, ("", ""))).sum().backward()
    moved = static.backbone.word_embeddings.weight.grad.abs().sum(dim=1).nonzero()[:, 0].tolist()
    assert set(moved) == {token for row in ids for token in row} - set(static.special_ids.tolist())


def test_no_text_is_too_long_and_counts_are_kept(static):
    report = EncodeReport()
    static.encode(["the " * 5000], report=report)
    assert not report.cut_rows
    assert report.tokens > 5000


def test_a_copy_and_a_smaller_vocabulary_give_the_same_vectors(static):
    copy = static.clone()
    assert isinstance(copy.backbone, StaticBackbone)
    assert copy.digest() == static.digest()
    used = {token for row in static.vocabulary.encode(TEXTS) for token in row}
    small = static.trim(used)
    assert small.vocabulary.size < static.vocabulary.size
    np.testing.assert_allclose(small.encode(TEXTS), static.encode(TEXTS), atol=1e-6)


def test_backbones_by_their_config():
    assert type(make_backbone(static_model_config(10, 4))) is StaticBackbone
    assert type(make_backbone(BackboneConfig.preset("ems-tiny", vocab_size=10))) is Backbone
    with pytest.raises(ConfigError, match="only 5 word"):
        Encoder(StaticBackbone(static_model_config(5, 4)), _Vocabulary())


class _Vocabulary:
    size = 6


def test_tokens_that_are_left_out_move_the_borders():
    ids, starts = without(
        torch.tensor([5, 6, 7, 8, 9]),
        torch.tensor([0, 2, 3, 5]),
        torch.tensor([True, False, False, True, True]),
    )
    assert ids.tolist() == [5, 8, 9]
    assert starts.tolist() == [0, 1, 1]
