from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.query_and_passage import encode_in_role, has_two_towers, role_prompt

E5 = SimpleNamespace(
    settings=EncodingSettings(prompts={"query": "query: ", "passage": "passage: "})
)
JINA = SimpleNamespace(settings=EncodingSettings(prompts={"document": "doc: "}))


@pytest.mark.parametrize(
    ("encoder", "role", "given", "prompt", "expected"),
    [
        (E5, "query", {}, None, "query"),
        # The model's own prompt has precedence over the prompt for everything.
        (E5, "passage", {}, "query: ", "passage"),
        (E5, "passage", {"passage": ""}, "query: ", ""),
        (JINA, "passage", {}, None, "document"),
        (JINA, "query", {}, None, None),
        (object(), "query", {}, "q: ", "q: "),
        (object(), "query", {"passage": "p: "}, None, None),
    ],
)
def test_the_users_role_prompt_then_the_models_then_the_general_one(
    encoder, role, given, prompt, expected
):
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
