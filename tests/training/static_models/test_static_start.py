from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import ConfigError
from interlingua.training.static_models.static_start import (
    FREQUENT,
    principal,
    spelling,
    static_start,
)


class Teacher:
    """Teacher that embeds a spelling by its letters, around a point far from 0."""

    dim = 26

    def encode(self, texts):
        self.asked = list(texts)
        counts = [[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts]
        return np.asarray(counts, dtype=np.float32) + 5


@pytest.fixture
def counts(plain_vocabulary):
    return np.random.default_rng(0).integers(0, 1000, plain_vocabulary.size)


def test_tokens_are_spelled_and_the_common_part_is_taken_away(plain_vocabulary, counts):
    teacher = Teacher()
    encoder = static_start(teacher, plain_vocabulary, counts)
    assert len(teacher.asked) == plain_vocabulary.size
    assert any("at" in text for text in teacher.asked)
    assert not any("▁" in text for text in teacher.asked)
    table = encoder.backbone.word_embeddings.weight.detach().numpy()
    assert not table[list(plain_vocabulary.special_ids)].any()
    assert np.sqrt((table**2).sum(axis=1).mean()) == pytest.approx(1)
    weighted = table / (FREQUENT / (FREQUENT + (counts + 1) / (counts + 1).sum()))[:, None]
    kept = np.ones(len(table), dtype=bool)
    kept[list(plain_vocabulary.special_ids)] = False
    given = teacher.encode(teacher.asked)[kept]
    centered = given - (counts + 1) @ teacher.encode(teacher.asked) / (counts + 1).sum()
    scale = np.linalg.norm(weighted[kept]) / np.linalg.norm(centered)
    # a rotation: all inner products are as the teacher has them
    np.testing.assert_allclose(
        weighted[kept] @ weighted[kept].T, scale**2 * centered @ centered.T, atol=1e-4
    )


def test_frequent_tokens_weigh_less(plain_vocabulary):
    counts = np.zeros(plain_vocabulary.size, dtype=np.int64)
    frequent = plain_vocabulary.encode(["cat"])[0][-1]

    def length(counts):
        encoder = static_start(Teacher(), plain_vocabulary, counts)
        return encoder.backbone.word_embeddings.weight[frequent].norm().item()

    rare = length(counts)
    counts[frequent] = 10_000
    often = length(counts)
    assert often < rare / 10


def test_fewer_dimensions_are_the_ones_of_largest_variance(plain_vocabulary, counts):
    draw = np.random.default_rng(1)
    rotation = np.linalg.qr(draw.normal(size=(4, 4)))[0]
    points = draw.normal(size=(500, 4)) * [1, 5, 3, 0.1] @ rotation
    found = principal(points, np.full(500, 1 / 500), 2)
    assert found.std(axis=0) == pytest.approx([5, 3], rel=0.1)
    assert static_start(Teacher(), plain_vocabulary, counts, dim=7).dim == 7
    with pytest.raises(ConfigError, match=r"dim: .* 26, .*found 27"):
        static_start(Teacher(), plain_vocabulary, counts, dim=27)


@pytest.mark.parametrize(
    ("token", "text"), [("▁cat", "cat"), ("##ing", "ing"), ("a▁b", "a b"), ("#1", "#1")]
)
def test_signs_of_word_borders_are_no_text(token, text):
    assert spelling(token) == text
