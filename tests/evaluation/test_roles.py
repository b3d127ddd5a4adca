from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from interlingua.encoder.directory import EncodingSettings
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.roles import encode_in_role, has_two_towers, role_prompt

E5 = SimpleNamespace(settings=EncodingSettings(prompts={"query": "query: ", "passage": "passage: "}))
JINA = SimpleNamespace(settings=EncodingSettings(prompts={"document": "doc: "}))


@pytest.mark.parametrize(
    ("encoder", "role", "given", "prompt", "expected"),
    [
        (E5, "query", {}, None, "query"),
        (E5, "passage", {}, "query: ", "passage"),  # what the model calls for comes before the prompt for everything
        (E5, "passage", {"passage": ""}, "query: ", ""),
        (JINA, "passage", {}, None, "document"),
        (JINA, "query", {}, None, None),
        (object(), "query", {}, "q: ", "q: "),
        (object(), "query", {"passage": "p: "}, None, None),
    ],
)
def test_the_users_role_prompt_then_the_models_then_the_general_one(encoder, role, given, prompt, expected):
    assert role_prompt(encoder, role, given, prompt) == expected


class Towers:
    def __init__(self):
        self.said = []

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        self.said.append(("any", list(texts)))
        return np.ones((len(texts), 2))

    def encode_queries(self, texts, *, language=None, batch_tokens=16_384):
        self.said.append(("query", texts, language, batch_tokens))
        return np.full((len(texts), 2), 2.0)

    def encode_passages(self, texts, *, titles=None, language=None, batch_tokens=16_384):
        self.said.append(("passage", texts, titles))
        return np.full((len(texts), 2), 3.0)


def test_two_towers_have_their_own_methods():
    towers = Towers()
    assert has_two_towers(towers)
    assert not has_two_towers(E5)
    encode_in_role(towers, ("a",), None, "query", language="deu_Latn")
    encode_in_role(towers, ("b",), ["T"], "passage")
    assert towers.said == [("query", ["a"], "deu_Latn", 16_384), ("passage", ["b"], ["T"])]


def test_the_cache_keeps_roles_apart():
    towers = Towers()
    with CachedEncoder(towers, batch_tokens=5) as cached:
        question = cached.encode(["a"], language="deu_Latn", role="query")
        passages = cached.encode(["a", "a"], role="passage", titles=["T", "U"])
        again = cached.encode(["a"], role="passage", titles=["T"])
        plain = cached.encode(["a"])
    assert [rows.tolist() for rows in (question, again, plain)] == [[[2, 2]], [[3, 3]], [[1, 1]]]
    assert passages.shape == (2, 2)
    assert towers.said == [("query", ["a"], "deu_Latn", 5), ("passage", ["a", "a"], ["T", "U"]), ("any", ["a"])]


def test_one_tower_reads_titles_before_passages_and_uses_its_prompts(number_encoder):
    number_encoder.settings = E5.settings
    with CachedEncoder(number_encoder, role_prompts={"query": "ask: "}) as cached:
        cached.encode(["1"], role="query")
        cached.encode(["text 2", "3"], role="passage", titles=["Title", ""])
        assert cached.used_prompts == {"query": "ask: ", "passage": "passage: "}
    assert number_encoder.texts == ["1", "Title text 2", "3"]
    assert [call[0] for call in number_encoder.calls] == ["ask: ", "passage"]


@pytest.mark.parametrize("normalize", [True, False])
def test_an_inner_product_may_be_what_the_model_means(short_encoder, normalize):
    short_encoder.settings = dataclasses.replace(short_encoder.settings, normalize=normalize)
    with CachedEncoder(short_encoder) as cached:
        lengths = np.linalg.norm(cached.encode(["de1 de2", "de3"], role="passage"), axis=1)
        plain = np.linalg.norm(cached.encode(["de1 de2", "de3"]), axis=1)
    assert np.allclose(lengths, 1, atol=1e-5) == normalize
    assert np.allclose(plain, 1, atol=1e-5) == normalize
