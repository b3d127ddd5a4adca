"""Training heads: shapes, what feeds them, unknown languages."""

from __future__ import annotations

import pytest
import torch

from interlingua.errors import DataError
from interlingua.methods.heads.sentence_heads import (
    LanguageTags,
    ProjectionHead,
    TokenPredictionHead,
)

LANGUAGES = ("deu_Latn", "eng_Latn", "fra_Latn")


def tags(dropout=0.0):
    torch.manual_seed(0)
    return LanguageTags(LANGUAGES, 4, dropout=dropout)


def tags_of(head, languages):
    return head(head.rows(languages))


def test_a_tag_is_normalized_and_belongs_to_its_language():
    vectors = tags_of(tags(), ["fra_Latn", "deu_Latn", "fra_Latn"])
    assert torch.equal(vectors[0], vectors[2])
    assert not torch.equal(vectors[0], vectors[1])
    torch.testing.assert_close(vectors.mean(1), torch.zeros(3))
    torch.testing.assert_close(vectors.var(1, correction=0), torch.ones(3))


def test_tags_may_go_unnormalized():
    head = LanguageTags(LANGUAGES, 4, dropout=0.0, normalize=False)
    assert torch.equal(tags_of(head, ["eng_Latn", "deu_Latn"]), head.embedding.weight[[1, 0]])
    assert [name for name, _ in head.named_parameters()] == ["embedding.weight"]


def test_an_unknown_language_names_the_nearest():
    with pytest.raises(DataError, match=r"deu_Latm has no tag; .*'deu_Latn'"):
        tags().rows(["deu_Latm"])


def test_tag_dropout_acts_in_training_only():
    head = tags(dropout=0.9)
    assert (tags_of(head, ["deu_Latn"] * 50) == 0).any()
    assert not (tags_of(head.eval(), ["deu_Latn"] * 50) == 0).any()


def test_projection_is_linear_relu_linear():
    torch.manual_seed(0)
    head, x = ProjectionHead(6, 3), torch.randn(2, 6)
    hidden = (x @ head[0].weight.T + head[0].bias).clamp(min=0)
    torch.testing.assert_close(head(x), hidden @ head[2].weight.T + head[2].bias)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("with_tags", [False, True])
def test_token_prediction_widths(shared, with_tags):
    head = TokenPredictionHead(6, 11, tags=tags() if with_tags else None, shared=shared)
    languages = head.tags.rows(["deu_Latn", "eng_Latn"]) if with_tags else None
    features = head(torch.randn(2, 6), languages)
    width = 6 if shared or not with_tags else 10
    assert features.shape == (2, width)
    word_embeddings = torch.randn(11, 6)
    output = head.output_embeddings(word_embeddings)
    assert output.shape == (11, width)
    assert (output is word_embeddings) is shared


def test_features_are_normalized_after_the_activation():
    features = TokenPredictionHead(6, 11, tags=None)(torch.randn(3, 6), None)
    torch.testing.assert_close(features.var(1, correction=0), torch.ones(3), rtol=1e-3, atol=1e-3)
