"""Recorded requests of other programs' embedding clients, and the fields that they read."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from interlingua.errors import ConfigError
from interlingua.serving.model import ServedModel
from interlingua.serving.routes.ollama_routes import TAG
from interlingua.serving.settings import ServeSettings
from tests.serving.conftest import NAME

TEXTS = ["en1 en2", "de1"]
KEY = {"authorization": "Bearer secret"}
OLLAMA = {"truncate": True, "options": {"num_ctx": 2048}, "keep_alive": -1}
DIFY_HEADERS = {"authorization": ""}
STAINLESS = {"x-stainless-lang": "js", "x-stainless-retry-count": "0", "user-agent": "OpenAI/JS"}
BODIES = [
    # dify: its check of a new model, and documents
    ("/v1/embeddings", {"input": "ping", "model": NAME}, KEY),
    ("/v1/embeddings", {"model": NAME, "input": TEXTS, "encoding_format": "float"}, KEY),
    (
        "/v1/embeddings",
        {"input": TEXTS, "model": NAME, "user": "a-1", "encoding_format": "float"},
        KEY,
    ),
    # LibreChat, by LangChain for Python without the check of lengths
    ("/v1/embeddings", {"input": TEXTS, "model": NAME, "encoding_format": "base64"}, KEY),
    # Obsidian: Copilot (LangChain for JavaScript), Smart Composer, Smart Connections
    ("/v1/embeddings", {"model": NAME, "input": TEXTS, "encoding_format": "base64"}, STAINLESS),
    ("/v1/embeddings", {"model": NAME, "input": "en1", "encoding_format": "float"}, STAINLESS),
    ("/v1/embeddings", {"model": NAME, "input": TEXTS, "dimensions": 8}, KEY),
    ("/api/embed", {"model": NAME, "input": TEXTS}, {}),
    ("/api/embed", {"model": f"{NAME}:latest", "input": TEXTS, **OLLAMA}, {}),
    ("/api/embeddings", {"model": NAME, "prompt": "en1", "options": {}}, {}),
    # clients that write every field, and clients that write as few as they can
    (
        "/v1/embeddings",
        {
            "input": TEXTS,
            "model": NAME,
            "encoding_format": None,
            "dimensions": None,
            "user": None,
            "prompt": None,
            "language": None,
            "input_type": None,
        },
        {},
    ),
    ("/embeddings", {"input": "en1", "model": None}, {}),
    ("/embeddings", {"input": TEXTS}, {}),
    # Azure: the deployment is in the path, the key in a header of its own
    (f"/openai/deployments/{NAME}/embeddings?api-version=2024-10-21", {"input": TEXTS}, {}),
    ("/openai/v1/embeddings?api-version=preview", {"input": TEXTS, "model": NAME}, {}),
    # text-embeddings-inference, by Hugging Face's and LangChain's clients
    ("/embed", {"inputs": TEXTS, "truncate": None, "prompt_name": None, "dimensions": None}, {}),
]


def vectors_of(reply):
    """Return the vectors of a reply in any protocol."""
    content = reply.json()
    if isinstance(content, list):
        return np.array(content, dtype=np.float32)
    if "embedding" in content:
        return np.array([content["embedding"]], dtype=np.float32)
    rows = content.get("embeddings") or [item["embedding"] for item in content["data"]]
    if isinstance(rows[0], str):
        rows = [np.frombuffer(base64.b64decode(row), dtype="<f4") for row in rows]
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(("path", "body", "headers"), BODIES)
def test_a_recorded_request_gets_the_vectors_of_encode(client, encoder, path, body, headers):
    texts = body.get("input", body.get("inputs", body.get("prompt")))
    texts = [texts] if isinstance(texts, str) else texts
    reply = client.post(path, json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    expected = encoder.encode(texts, truncate_dim=body.get("dimensions"))
    assert np.abs(vectors_of(reply) - expected).max() < 1e-6


@pytest.mark.parametrize(
    "body",
    [
        {"input": [[9906, 1917], [264]], "model": NAME, "encoding_format": "base64"},
        {"input": [3, 4], "model": NAME},
    ],
)
def test_token_ids_of_another_tokenizer_are_refused(client, body):
    reply = client.post("/v1/embeddings", json=body)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert (error["param"], error["type"]) == ("input", "invalid_request_error")
    assert "check_embedding_ctx_length=False" in error["message"]
    assert "--accept-token-ids" in error["message"]


@pytest.mark.parametrize("blank", ["", " \n", "\u200b"])
def test_a_blank_text_is_refused_in_every_protocol(client, blank):
    for path in ("/v1/embeddings", "/embeddings", f"/openai/deployments/{NAME}/embeddings"):
        for given in (blank, ["en1", blank]):
            reply = client.post(path, json={"input": given, "model": NAME})
            error = reply.json()["error"]
            assert (reply.status_code, error["param"]) == (400, "input")
            assert f"row {0 if given == blank else 1}" in error["message"]
    for path, body in (
        ("/embed", {"inputs": ["en1", blank]}),
        ("/api/embed", {"input": blank}),
        ("/similarity", {"inputs": {"source_sentence": "en1", "sentences": [blank]}}),
    ):
        reply = client.post(path, json=body)
        assert reply.status_code == 422
        assert isinstance(reply.json()["error"], str)


def test_a_model_has_several_names_or_any(start, encoder):
    client = start(ServedModel(encoder, NAME, aliases=["text-embedding-3-small"]))
    listed = client.get("/v1/models").json()["data"]
    assert [model["id"] for model in listed] == [NAME, "text-embedding-3-small"]
    first, second = client.get("/api/tags").json()["models"]
    assert (first["name"], second["model"]) == (NAME + TAG, "text-embedding-3-small" + TAG)
    body = {"input": "en1", "model": "text-embedding-3-small"}
    reply = client.post("/v1/embeddings", json=body)
    assert reply.json()["model"] == "text-embedding-3-small"
    other = {"input": "en1", "model": "other"}
    for path in ("/v1/embeddings", "/openai/deployments/other/embeddings"):
        refused = client.post(path, json=other)
        assert (refused.status_code, refused.json()["error"]["param"]) == (404, "model")
    assert client.post("/api/embed", json=other).status_code == 404
    tolerant = start(any_name=True)
    assert tolerant.post("/v1/embeddings", json=other).json()["model"] == "other"
    assert tolerant.get("/v1/models/other").status_code == 200


def test_a_key_in_the_header_of_azure(start):
    client = start(api_key="secret")
    path = f"/openai/deployments/{NAME}/embeddings"
    for headers, status in (
        ({"api-key": "secret"}, 200),
        ({"api-key": "wrong"}, 401),
        ({"api-key": "secret", "authorization": "Bearer wrong"}, 401),
        ({}, 401),
    ):
        assert client.post(path, json={"input": "en1"}, headers=headers).status_code == status


@pytest.mark.parametrize("allowed", ["app://obsidian.md", "*"])
def test_a_page_of_an_allowed_origin_may_send_requests(start, allowed):
    client = start(cors_origin=[allowed], api_key="secret")
    asked = {
        "origin": "app://obsidian.md",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os",
    }
    # A browser asks without the key.
    preflight = client.options("/v1/embeddings", headers=asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] in (allowed, "app://obsidian.md")
    assert "x-stainless-os" in preflight.headers["access-control-allow-headers"]
    for headers, status in ((KEY, 200), ({}, 401)):
        sent = {"origin": "app://obsidian.md", **headers}
        reply = client.post("/v1/embeddings", json={"input": "en1"}, headers=sent)
        assert reply.status_code == status
        assert reply.headers["access-control-allow-origin"] == allowed
        assert "x-request-id" in reply.headers["access-control-expose-headers"]


def test_a_page_of_another_origin_may_not(start):
    for client in (start(), start(cors_origin=["https://example.org"])):
        headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
        reply = client.options("/v1/embeddings", headers=headers)
        assert reply.status_code >= 400
        assert "access-control-allow-origin" not in reply.headers
        reply = client.post("/embed", json={"inputs": "en1"}, headers=headers)
        assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("origin", ["localhost:3000", "https://example.org/", "", "example.org"])
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(ConfigError, match="cors_origin"):
        ServeSettings(cors_origin=["*", origin])
