"""Cosines between the tokens of two sentences: those of the states, special tokens left out."""

from __future__ import annotations

import numpy as np
import torch

from interlingua.batches.tokens import TokenBatch
from interlingua.serving.model import ServedModel
from interlingua.serving.routes.token_matches import token_cosines, tokenized_pair


def matched(model, *texts):
    """Return spans of both sentences' tokens, and the cosines."""
    pair = tokenized_pair(model, texts, (None, None))
    return *pair.spans, token_cosines(model, pair)


def test_cosines_are_those_of_the_states(encoder):
    model = ServedModel(encoder, "tiny")
    source, target, cosines = matched(model, "en1 en2", "de1 de2 de3")
    ids = [model.tokenize([text]).sequences[0] for text in ("en1 en2", "de1 de2 de3")]
    with torch.inference_mode():
        one, other = (
            encoder.tokens(TokenBatch.from_lists([sequence], ("",))).states for sequence in ids
        )
    expected = torch.nn.functional.cosine_similarity(one[:, None], other[None], dim=2)
    assert np.abs(cosines.numpy() - expected.numpy()).max() < 1e-5
    assert [token.text for token in source] == ["en1", "en2"]
    assert [(token.start, token.end) for token in target] == [(0, 3), (4, 7), (8, 11)]


def test_a_long_sentence_is_cut_where_the_model_cuts_it(encoder):
    source, _, cosines = matched(ServedModel(encoder, "tiny"), "en1 " * 40, "de1")
    assert cosines.shape == (len(source), 1)
    assert len(source) == 12


def test_a_sentence_equal_to_itself(encoder):
    cosines = matched(ServedModel(encoder, "tiny"), "en1 en2", "en1 en2")[2]
    assert np.allclose(cosines.diagonal(), 1, atol=1e-6)


def test_a_text_without_tokens_has_no_cosines(encoder):
    source, _, cosines = matched(ServedModel(encoder, "tiny"), " ", "en1 en2")
    assert source == []
    assert cosines.shape == (0, 2)


def test_any_dtype_of_the_server_is_computed_in(encoder):
    """Check "auto" too, which selects one of the others."""
    in_float32 = matched(ServedModel(encoder, "tiny"), "en1 en2", "de1")[2]
    for dtype in ("bfloat16", "int8", "auto"):
        model = ServedModel(encoder, "tiny", dtype=dtype)
        found = matched(model, "en1 en2", "de1")[2]
        assert np.abs(found.numpy() - in_float32.numpy()).max() < 0.05
        ids = model.tokenize(["en1 en2"]).sequences
        one, other = (
            ServedModel(encoder, "tiny", dtype=name).embed(ids, None)[0]
            for name in (dtype, "float32")
        )
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.99
