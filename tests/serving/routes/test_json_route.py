"""JSON in and out, and requests that bypass the framework."""

from __future__ import annotations

import asyncio
import gzip
import json
import time

import numpy as np
import pytest
from fastapi import APIRouter
from hypothesis import given
from hypothesis import strategies as st

from interlingua.serving.routes import json_route
from interlingua.serving.routes.inference_routes import EmbedRequest
from interlingua.serving.routes.json_route import (
    INLINE_BYTES,
    DirectRoutes,
    StrictRoute,
    count_values,
    json_response,
)


def test_arrays_and_headers():
    vectors = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    reply = json_response({"vectors": vectors}, {"x-own": "1"})
    read = np.array(json.loads(reply.body)["vectors"], dtype=np.float32)
    assert np.array_equal(read, vectors)
    assert (reply.headers["x-own"], reply.headers["content-type"]) == ("1", "application/json")


def test_whole_numbers_may_have_a_point(start):
    client = start(accept_token_ids=True)
    body = {"inputs": "en1", "dimensions": 4.0}
    assert (
        client.post("/embed", json=body).json()
        == client.post("/embed", json={**body, "dimensions": 4}).json()
    )
    ids = client.post("/v1/embeddings", json={"model": "tiny", "input": [[3.0, 4], [5]]})
    assert ids.json()["usage"]["prompt_tokens"] == 3
    for wrong in (4.5, "4", True):
        assert client.post("/embed", json={**body, "dimensions": wrong}).status_code == 400
    schema = client.get("/openapi.json").json()["components"]["schemas"]["EmbedRequest"][
        "properties"
    ]["dimensions"]
    [whole] = [option for option in schema["anyOf"] if option["type"] != "null"]
    assert (whole["type"], whole["minimum"]) == ("integer", 1)


def direct(called, post):
    """Build routes in front of an application that records its requests."""

    async def app(scope, receive, send):
        called.append(scope["path"])

    router = APIRouter(prefix="/v1", route_class=StrictRoute)
    router.post("/work")(post)
    return DirectRoutes(app, [router])


def call(app, path, method="POST", kind="http"):
    sent = []

    async def receive():
        return {"type": "http.request", "body": b'{"inputs": "a"}', "more_body": False}

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": kind, "method": method, "path": path, "headers": headers, "query_string": b""}
    asyncio.run(app(scope, receive, send))
    return scope, sent


def test_posts_with_a_route_bypass_the_application():
    called = []

    async def post(request, body: EmbedRequest):
        return json_response({"got": body.inputs})

    app = direct(called, post)
    scope, sent = call(app, "/v1/work")
    assert (sent[0]["status"], sent[1]["body"]) == (200, b'{"got":"a"}')
    assert scope["route"].path == "/v1/work"
    call(app, "/v1/work", method="GET")
    call(app, "/other")
    assert called == ["/v1/work", "/other"]


def test_a_fault_is_answered_and_raised_for_the_log():
    async def post(request, body: EmbedRequest):
        raise ZeroDivisionError

    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b'{"inputs": "a"}', "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/v1/work", "query_string": b""}
    scope["headers"] = [(b"content-type", b"application/json")]
    with pytest.raises(ZeroDivisionError):
        asyncio.run(direct([], post)(scope, receive, send))
    assert sent[0]["status"] == 500


@pytest.mark.parametrize("value", [None, [], [-1], [[]], [1, "a"]])
def test_a_field_of_several_forms_names_them(client, value):
    reply = client.post("/v1/embeddings", json={"model": "tiny", "input": value})
    assert reply.status_code == 400
    assert (
        "input: the value has none of the allowed types (A text, a list of texts"
        in reply.json()["error"]["message"]
    )
    for path, body, described in (
        (
            "/embed",
            {"inputs": value},
            "inputs: the value has none of the allowed types (A text, or a list",
        ),
        (
            "/align",
            {"source": value, "target": "a"},
            "source: the value has none of the allowed types (A plain text",
        ),
    ):
        assert described in client.post(path, json=body).json()["error"]


def test_a_compressed_body_is_refused(client):
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    reply = client.post("/embed", content=gzip.compress(b'{"inputs": "en1"}'), headers=headers)
    assert reply.status_code == 415
    assert "content-encoding" in reply.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/embeddings", {"model": "tiny", "input": "en1"}, "encoding_format"),
        ("/v1/embeddings", {"model": "tiny", "input": "en1"}, "dimensions"),
        ("/embed", {"inputs": "en1"}, "normalize"),
        ("/mine", {"source": ["de1"], "target": ["en1"]}, "k"),
        ("/mine", {"source": ["de1"], "target": ["en1"]}, "margin"),
        ("/mine", {"source": ["de1"], "target": ["en1"]}, "retrieval"),
        ("/align", {"source": ["de1"], "target": ["en1"]}, "max_sentences"),
    ],
)
def test_a_null_field_is_as_if_absent(client, path, body, field):
    reply = client.post(path, json={**body, field: None})
    assert (reply.status_code, reply.json()) == (200, client.post(path, json=body).json())


def test_every_field_with_a_default_may_be_null(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    bodies = [one for name, one in schemas.items() if name.endswith(("Request", "Parameters"))]
    assert len(bodies) >= 6
    for one in bodies:
        for name, field in one["properties"].items():
            may_be_null = {"type": "null"} in field.get("anyOf", ())
            assert may_be_null == (name not in one.get("required", ())), name


MANY = 400_000


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/embed", {"inputs": [1] * MANY}, 413),
        ("/embed", {"inputs": [""] * MANY}, 413),
        ("/embed", {"inputs": [1] * 100_000}, 400),
        ("/v1/embeddings", {"model": "tiny", "input": [[1]] * MANY}, 413),
        ("/v1/embeddings", {"model": "tiny", "input": [[1] * 2000] * 200}, 413),
        ("/v1/embeddings", {"model": "tiny", "input": [1] * MANY}, 413),
        ("/mine", {"source": [1] * MANY, "target": ["a"]}, 413),
        ("/align", {f"k{n}": 1 for n in range(MANY)}, 400),
        ("/similarity", {"inputs": {f"k{n}": 1 for n in range(MANY)}}, 400),
        ("/embed", {"inputs": ["a"] * 2000, "prompt_name": "p: " * 5000}, 413),
        ("/align", {"source": "a. A" * 700_000, "target": "b"}, 413),
        ("/align", {"source": "A. " * 20_000, "target": "b"}, 422),
    ],
)
def test_bodies_of_millions_of_items_are_refused_in_a_moment(client, path, body, status):
    content = json.dumps(body)
    started = time.monotonic()
    reply = client.post(path, content=content, headers={"content-type": "application/json"})
    assert (reply.status_code, time.monotonic() - started < 5) == (status, True)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='\\",:[]{}aж'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='\\",:a'), inner),
)


def parts(content):
    """Count the values, in which an empty list or object counts twice, and the fields."""
    if not isinstance(content, dict | list):
        return 1, 0
    inner = list(content.values()) if isinstance(content, dict) else content
    counts = [parts(value) for value in inner]
    values = 1 + max(sum(count[0] for count in counts), 1)
    return values, sum(count[1] for count in counts) + len(inner) * isinstance(content, dict)


@given(ANY_JSON, st.integers(2, 20))
def test_values_are_counted_without_parsing(content, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_route, "COUNTED_BYTES", size)
        assert count_values(json.dumps(content, ensure_ascii=False).encode()) == parts(content)


@pytest.mark.parametrize(
    "body",
    [
        {"inputs": ["en1"] * 5, "more": "a" * INLINE_BYTES},
        {"inputs": ["en1", 3], "more": "a" * INLINE_BYTES},
        {"inputs": "en1 " * INLINE_BYTES},
        {"inputs": [1] * INLINE_BYTES},
    ],
)
def test_a_large_body_is_answered_as_a_small_one(client, monkeypatch, body):
    large = client.post("/embed", json=body)
    monkeypatch.setattr(json_route, "INLINE_BYTES", 1 << 30)
    small = client.post("/embed", json=body)
    assert (large.status_code, large.content) == (small.status_code, small.content)
