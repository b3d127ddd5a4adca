"""OpenAI's protocol, by hand and by OpenAI's own client."""

from __future__ import annotations

import base64

import numpy as np
import openai
import pytest

TEXTS = ["en1 en2", "de1"]


def post(client, **body):
    return client.post("/v1/embeddings", json={"model": "tiny", **body})


def embeddings(reply):
    return np.array([item["embedding"] for item in reply.json()["data"]], dtype=np.float32)


def test_vectors_are_those_of_encode(client, encoder):
    reply = post(client, input=TEXTS)
    content = reply.json()
    assert np.abs(embeddings(reply) - encoder.encode(TEXTS)).max() < 1e-6
    assert [item["index"] for item in content["data"]] == [0, 1]
    assert (content["object"], content["model"]) == ("list", "tiny")
    assert content["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert reply.headers["x-truncated-texts"] == "0"


def test_base64_holds_the_same_numbers(client):
    plain = embeddings(post(client, input=TEXTS))
    coded = [
        item["embedding"]
        for item in post(client, input=TEXTS, encoding_format="base64").json()["data"]
    ]
    decoded = np.stack([np.frombuffer(base64.b64decode(text), dtype="<f4") for text in coded])
    assert np.array_equal(decoded, plain)


def test_dimensions_prompt_and_language(client, encoder):
    found = embeddings(post(client, input=TEXTS, dimensions=8, prompt="query", language="de"))
    assert np.abs(found - encoder.encode(TEXTS, truncate_dim=8, prompt="query")).max() < 1e-6


def test_token_ids_alone_and_in_lists(start, encoder):
    client = start(accept_token_ids=True)
    ids = [
        encoder.vocabulary.tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS
    ]
    texts = embeddings(post(client, input=TEXTS))
    assert np.array_equal(embeddings(post(client, input=ids)), texts)
    assert np.array_equal(embeddings(post(client, input=ids[0])), texts[:1])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"input": ""}, 400),
        ({"input": []}, 400),
        ({"input": [[]]}, 400),
        ({"input": [1, "a"]}, 400),
        ({"input": [True]}, 400),
        ({"input": None}, 400),
        ({}, 400),
        ({"input": "a", "encoding_format": "hex"}, 400),
        ({"input": "a", "dimensions": 0}, 400),
        ({"input": "a", "dimensions": 4096}, 422),
        ({"input": "a", "prompt": "unknown"}, 422),
        ({"input": "a", "language": "Klingonese"}, 422),
        ({"input": [10**9]}, 422),
        ({"input": [-1]}, 400),
        ({"input": [10**30]}, 400),
    ],
)
def test_what_can_not_be_embedded(start, body, status):
    client = start(accept_token_ids=True)
    reply = post(client, **body)
    assert reply.status_code == status
    assert reply.json()["error"]["type"] == "invalid_request_error"


def test_limits_of_a_request(start):
    client = start(max_texts=2, max_request_tokens=10, accept_token_ids=True)
    assert post(client, input=["en1"] * 3).status_code == 413
    assert post(client, input=[[1]] * 3).status_code == 413
    assert post(client, input=["en1 " * 9, "en1 " * 9]).status_code == 413
    assert post(client, input=["en1", "en2"]).status_code == 200


def test_long_texts_are_cut_and_said_or_refused(start):
    assert post(start(), input=["en1 " * 40]).headers["x-truncated-texts"] == "1"
    reply = post(start(auto_truncate=False), input=["en1 " * 40])
    assert reply.status_code == 422
    assert "more than 12 tokens" in reply.json()["error"]["message"]


def test_models(client):
    assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["tiny"]
    assert client.get("/v1/models/tiny").json()["object"] == "model"
    assert client.get("/v1/models/other").status_code == 404
    assert client.post("/v1/embeddings", json={"model": "other", "input": "a"}).status_code == 404


def test_the_client_of_openai(client, encoder):
    own = openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="any", http_client=client)
    reply = own.embeddings.create(model="tiny", input=TEXTS)
    found = np.array([item.embedding for item in reply.data], dtype=np.float32)
    assert np.abs(found - encoder.encode(TEXTS)).max() < 1e-6
    assert reply.usage.prompt_tokens == 3
    assert [model.id for model in own.models.list()] == ["tiny"]
    with pytest.raises(openai.NotFoundError, match="unknown model 'other'"):
        own.embeddings.create(model="other", input="a")
