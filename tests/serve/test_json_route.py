"""JSON in and out, and requests that bypass the framework."""

from __future__ import annotations

import asyncio
import gzip
import json

import numpy as np
import pytest
from fastapi import APIRouter

from interlingua.serve.inference_routes import EmbedRequest
from interlingua.serve.json_route import DirectRoutes, StrictRoute, json_response


def test_arrays_and_headers():
    vectors = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    reply = json_response({"vectors": vectors}, {"x-own": "1"})
    read = np.array(json.loads(reply.body)["vectors"], dtype=np.float32)
    assert np.array_equal(read, vectors)
    assert (reply.headers["x-own"], reply.headers["content-type"]) == ("1", "application/json")


def test_whole_numbers_may_have_a_point(client):
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
    """Routes in front of an application that notes what reaches it."""

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
        "input: has none of its forms (A text, several texts, or token ids"
        in reply.json()["error"]["message"]
    )
    for path, body, described in (
        ("/embed", {"inputs": value}, "inputs: has none of its forms (A text, or a list"),
        ("/align", {"source": value, "target": "a"}, "source: has none of its forms (A plain text"),
    ):
        assert described in client.post(path, json=body).json()["error"]


def test_a_compressed_body_is_refused(client):
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    reply = client.post("/embed", content=gzip.compress(b'{"inputs": "en1"}'), headers=headers)
    assert reply.status_code == 415
    assert "content-encoding" in reply.json()["error"]
