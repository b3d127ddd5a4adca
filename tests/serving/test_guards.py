"""The key, limits of size and time, ids and the log."""

from __future__ import annotations

import asyncio

import pytest

from interlingua.serving.errors import RequestError
from interlingua.serving.guards import Guards
from interlingua.serving.metrics import ServerMetrics
from interlingua.serving.settings import ServeSettings

BODY = {"inputs": "en1"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic secret"},
        {"authorization": "secret"},
    ],
)
def test_requests_without_the_key_are_refused(start, headers):
    reply = start(api_key="secret").post("/embed", json=BODY, headers=headers)
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("key", ["sécret", " sécret\n", "鍵"])
def test_a_key_beyond_ascii_in_the_ways_in_which_clients_write_it(start, key):
    client = start(api_key=key)
    ways = ["utf-8", "latin-1"] if "é" in key else ["utf-8"]
    for way in ways:
        headers = {"authorization": b"bearer " + key.strip().encode(way)}
        assert client.post("/embed", json=BODY, headers=headers).status_code == 200
    for wrong in ("bearer", "bearer ", "bearer secret", "bearer ?"):
        assert client.post("/embed", json=BODY, headers={"authorization": wrong}).status_code == 401


def test_the_key_opens_and_the_page_needs_none(start):
    client = start(api_key="secret")
    assert (
        client.post("/embed", json=BODY, headers={"authorization": "bearer secret"}).status_code
        == 200
    )
    assert [client.get(path).status_code for path in ("/", "/health", "/metrics", "/info")] == [
        200,
        200,
        200,
        401,
    ]


def test_a_large_body_is_refused(start):
    client = start(max_body=1000)
    assert client.post("/embed", json={"inputs": "a" * 2000}).status_code == 413

    def chunks():
        yield b'{"inputs": "'
        for _ in range(100):
            yield b"a" * 100

    reply = client.post("/embed", content=chunks(), headers={"content-type": "application/json"})
    assert reply.status_code == 413
    assert reply.headers["connection"] == "close"


def test_ids_come_back_and_forged_ones_do_not(client, log):
    assert (
        client.post("/embed", json=BODY, headers={"x-request-id": "mine-1"}).headers["x-request-id"]
        == "mine-1"
    )
    made = client.post("/embed", json=BODY, headers={"x-request-id": "a b\t"}).headers[
        "x-request-id"
    ]
    assert len(made) == 32
    assert [record["id"] for record in log] == ["mine-1", made]


def test_a_line_of_the_log_says_what_was_done(client, log):
    client.post("/embed", json={"inputs": ["en1", "en2 en3"]})
    client.get("/nothing")
    first, second = log
    assert (first["path"], first["status"], first["texts"], first["tokens"]) == (
        "/embed",
        200,
        2,
        3,
    )
    assert (second["path"], second["status"]) == ("/nothing", 404)
    assert first["seconds"] > 0


def call(guards, messages, headers=()):
    """Run the middleware on the client's ``messages``. None: the client sends nothing more."""
    sent = []
    left = list(messages)

    async def receive():
        if left[0] is None:
            await asyncio.sleep(3600)
        return left.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/embed",
        "headers": list(headers),
        "client": ("h", 1),
    }
    asyncio.run(guards(scope, receive, send))
    return sent


@pytest.fixture
def guarded():
    records, seen = [], []

    async def app(scope, receive, send):
        seen.append(await receive())

    settings = ServeSettings(body_seconds=0.1)
    return Guards(app, settings, ServerMetrics(), records.append), records, seen


def test_a_client_that_sends_too_slowly(guarded):
    guards, records, seen = guarded
    sent = call(guards, [{"type": "http.request", "body": b"{", "more_body": True}, None])
    assert sent[0]["status"] == 408
    assert (records[0]["status"], seen) == (408, [])


def test_a_client_that_leaves_before_its_body_is_there(guarded):
    guards, records, seen = guarded
    first = {"type": "http.request", "body": b"{", "more_body": True}
    assert call(guards, [first, {"type": "http.disconnect"}]) == []
    assert (records[0]["status"], seen) == (499, [])


def test_the_body_arrives_whole(guarded):
    guards, _, seen = guarded
    parts = [
        {"type": "http.request", "body": part, "more_body": part != b"c"}
        for part in (b"a", b"b", b"c")
    ]
    call(guards, parts)
    assert seen == [{"type": "http.request", "body": b"abc", "more_body": False}]


def test_lengths_that_are_no_numbers_do_not_pass_the_limit(guarded):
    guards, _, seen = guarded
    call(guards, [{"type": "http.request", "body": b"a"}], headers=[(b"content-length", b"-1")])
    assert seen[0]["body"] == b"a"
    sent = call(
        guards, [{"type": "http.request", "body": b"a"}], headers=[(b"content-length", b"9" * 5000)]
    )
    assert sent[0]["status"] == 413


def test_other_protocols_pass():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    guards = Guards(app, ServeSettings(), ServerMetrics(), [].append)
    asyncio.run(guards({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]


def test_errors_of_the_application_reach_the_client():
    async def app(scope, receive, send):
        raise RequestError(413, "too much")

    guards = Guards(app, ServeSettings(), ServerMetrics(), [].append)
    assert call(guards, [{"type": "http.request", "body": b""}])[0]["status"] == 413


def test_all_bodies_together_have_a_bound(monkeypatch):
    """Hold two bodies of 60 bytes with a bound of 100: the second is refused meanwhile."""
    monkeypatch.setattr("interlingua.serving.guards.MOST_BODIES", 1)
    body = [{"type": "http.request", "body": b"a" * 60}]
    inner = []

    async def app(scope, receive, send):
        if not inner:
            inner.append(None)
            inner[0] = await ask()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask():
        sent, left = [], list(body)

        async def receive():
            return left.pop(0)

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/embed", "headers": [], "client": None}
        await guards(scope, receive, send)
        return sent[0]

    guards = Guards(app, ServeSettings(max_body=100), ServerMetrics(), [].append)
    assert asyncio.run(ask())["status"] == 200
    assert inner[0]["status"] == 429
    assert (b"retry-after", b"1") in inner[0]["headers"]
    assert asyncio.run(ask())["status"] == 200


def test_a_request_that_takes_too_long_is_504():
    records = []

    async def app(scope, receive, send):
        await asyncio.sleep(3600)

    guards = Guards(app, ServeSettings(request_seconds=0.1), ServerMetrics(), records.append)
    sent = call(guards, [{"type": "http.request", "body": b""}])
    assert sent[0]["status"] == records[0]["status"] == 504
    assert b"--request-seconds" in sent[1]["body"]


def test_a_timeout_of_the_application_is_its_own():
    async def app(scope, receive, send):
        raise TimeoutError("of a store")

    guards = Guards(app, ServeSettings(), ServerMetrics(), [].append)
    with pytest.raises(TimeoutError, match="of a store"):
        call(guards, [{"type": "http.request", "body": b""}])
