"""Fields of a server in the OpenAPI document."""

from __future__ import annotations

import re

import pytest

from interlingua.config.languages import resolve_language
from interlingua.serving.routes.document import MARK


@pytest.fixture
def schemas(client):
    reply = client.get("/openapi.json")
    assert MARK not in reply.text
    return reply.json()["components"]["schemas"]


def forms(field):
    return field.get("anyOf", [field])


def test_the_model_and_its_dimensions_are_stated(schemas):
    fields = schemas["EmbeddingsRequest"]["properties"]
    assert forms(fields["model"])[0]["enum"] == ["tiny"]
    assert forms(fields["dimensions"])[0]["maximum"] == 32
    assert forms(schemas["EmbedRequest"]["properties"]["dimensions"])[0]["maximum"] == 32


def test_prompts_are_names_or_texts_that_end_with_no_letter(schemas, client):
    names, text = forms(schemas["MineRequest"]["properties"]["prompt"])[0]["anyOf"]
    assert names == {"enum": ["query"]}
    assert text["pattern"] == r"(^|[\x00-/:-@\[-`{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7])$"
    for prompt, status in (("query", 200), ("", 200), ("en0: ", 200), ("other", 422), ("é", 422)):
        body = {"source": ["en1"], "target": ["de1"], "prompt": prompt}
        assert client.post("/mine", json=body).status_code == status, prompt


def test_all_languages_of_the_document_are_known(schemas):
    language = forms(schemas["TokensRequest"]["properties"]["source_language"])[0]
    assert language["$ref"] == "#/components/schemas/Language"
    codes = schemas["Language"]["pattern"].removeprefix("^(").removesuffix(")$").split("|")
    assert {"deu_Latn", "de"} <= set(codes)
    assert all(resolve_language(code) for code in codes)


def test_a_list_has_a_sentence_that_is_not_blank(schemas, client):
    array = schemas["MineRequest"]["properties"]["source"]
    pattern = array["contains"]["pattern"]
    for texts, status in ((["en1", ""], 200), ([""], 422), (["\u2028"], 422)):
        assert any(re.search(pattern, text) for text in texts) is (status == 200)
        assert client.post("/mine", json={"source": texts, "target": ["de1"]}).status_code == status
