"""Token ids and formats of a request: those that ``encode`` makes of the same texts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.serving.model import ServedModel, language_code, shape_vectors


@pytest.fixture
def model(encoder):
    return ServedModel(encoder, "tiny")


TEXTS = ["en1 en2 en3", "de4", "", " ".join(f"en{n}" for n in range(30))]


def vectors_of(model, tokenized, **form):
    return shape_vectors(model.embed(tokenized.sequences, None), model.vector_format(**form))


@pytest.mark.parametrize(
    "form", [{}, {"normalize": False}, {"dim": 8}, {"dim": 8, "normalize": False}]
)
@pytest.mark.parametrize("prompt", [None, "query", "de2: "])
def test_vectors_are_those_of_encode(model, prompt, form):
    found = vectors_of(model, model.tokenize(TEXTS, prompt=prompt), **form)
    # A blank text has the zero vector in encode, and is refused before it comes here.
    found[TEXTS.index("")] = 0
    expected = model.encoder.encode(
        TEXTS,
        prompt=prompt,
        normalize_embeddings=form.get("normalize", True),
        truncate_dim=form.get("dim"),
    )
    assert np.abs(found - expected).max() < 1e-6


def test_the_server_s_prompt_is_the_default(encoder):
    model = ServedModel(encoder, "tiny", prompt="query")
    assert model.tokenize(["en1"]).sequences == model.tokenize(["en1"], prompt="query").sequences
    assert model.tokenize(["en1"]).sequences != model.tokenize(["en1"], prompt="").sequences
    with pytest.raises(ConfigError, match="prompt 'other'"):
        ServedModel(encoder, "tiny", prompt="other")


def test_long_texts_are_cut_and_counted_or_refused(model):
    tokenized = model.tokenize(TEXTS)
    assert tokenized.truncated == 1
    assert max(map(len, tokenized.sequences)) == 12
    assert tokenized.tokens == sum(map(len, tokenized.sequences))
    with pytest.raises(DataError, match="row 3"):
        model.tokenize(TEXTS, auto_truncate=False)


def test_token_ids_give_the_vectors_of_their_text(model):
    ids = model.encoder.vocabulary.tokenizer.encode("en1 en2", add_special_tokens=False).ids
    wrapped = model.wrap_tokens([ids])
    assert wrapped.sequences == model.tokenize(["en1 en2"]).sequences
    with pytest.raises(DataError, match="row 1"):
        model.wrap_tokens([[0], [model.encoder.vocabulary.size]])
    with pytest.raises(DataError, match="row 0"):
        model.wrap_tokens([[-1]])


def test_half_characters_are_refused(model):
    with pytest.raises(DataError, match="row 1"):
        model.tokenize(["en1", "\ud800"])


def test_more_dimensions_than_there_are(model):
    with pytest.raises(ConfigError, match=r"dim: .*found 4096"):
        model.vector_format(dim=4096)


def test_token_ids_have_no_language(encoder, monkeypatch):
    model = ServedModel(encoder, "tiny")
    monkeypatch.setattr(type(model), "takes_any_language", False)
    with pytest.raises(ConfigError, match="send texts"):
        model.wrap_tokens([[1]])


def test_languages_by_any_name():
    assert [language_code(name) for name in (None, "de", "German")] == [
        None,
        "deu_Latn",
        "deu_Latn",
    ]


def test_a_model_with_its_own_width(encoder):
    narrow = dataclasses.replace(encoder.settings, truncate_dim=16)
    model = ServedModel(encoder, "tiny")
    before, encoder.settings = encoder.settings, narrow
    try:
        assert vectors_of(model, model.tokenize(["en1"])).shape == (1, 16)
        assert model.dim == 16
    finally:
        encoder.settings = before
