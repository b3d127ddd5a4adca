"""Common behavior of all routes: errors in the shape of the protocol, the page, the document."""

from __future__ import annotations

import json

import pytest

POSTS = {
    "/v1/embeddings": {"model": "tiny", "input": "en1"},
    "/embed": {"inputs": "en1"},
    "/similarity": {"inputs": {"source_sentence": "en1", "sentences": ["en2"]}},
    "/mine": {"source": ["en1"], "target": ["de1"]},
    "/align": {"source": ["en1"], "target": ["de1"]},
    "/tokens": {"source": "en1", "target": "de1"},
}
POSTED = pytest.mark.parametrize("path", sorted(POSTS))


def message_of(path, reply):
    error = reply.json()["error"]
    return error["message"] if path.startswith("/v1/") else error


@POSTED
def test_every_route_answers(client, path):
    assert client.post(path, json=POSTS[path]).status_code == 200


@POSTED
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'"\\ud800"',
        b'{"inputs": "\\ud800"}',
        b"[" * 100_000,
        b"{}",
    ],
)
def test_malformed_bodies_are_one_line(client, path, body):
    reply = client.post(path, content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert "\n" not in message_of(path, reply)
    assert "Traceback" not in reply.text


@POSTED
def test_a_body_that_is_not_declared_as_json(client, path):
    reply = client.post(
        path, content=json.dumps(POSTS[path]), headers={"content-type": "text/plain"}
    )
    assert reply.status_code == 415
    assert "application/json" in message_of(path, reply)


@POSTED
def test_a_fault_of_the_server_is_no_traceback(start, encoder, path, monkeypatch):
    client = start()
    monkeypatch.setattr(type(encoder), "frozen_backbone", lambda *_: 1 / 0)
    reply = client.post(path, json=POSTS[path])
    assert reply.status_code == 500
    assert "see the reason in its log" in message_of(path, reply)


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css"])
def test_the_page_needs_nothing_from_elsewhere(client, path):
    reply = client.get(path)
    assert reply.status_code == 200
    assert "http" not in reply.text.replace("https://", "http").replace('"http-equiv', "")
    assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_unknown_paths_and_methods(client):
    assert client.get("/nothing").status_code == 404
    assert client.get("/embed").status_code == 405
    assert client.get("/nothing").json()["error"] == "Not Found"


@pytest.mark.parametrize("path", ["/", "/page.js", "/health"])
def test_load_balancers_may_send_head(start, path):
    client = start(api_key="secret")
    reply = client.head(path)
    assert reply.status_code == 200
    assert reply.headers["content-length"] == client.get(path).headers["content-length"]


@pytest.mark.parametrize("path", ["/v1/embeddings/", "/embed/", "/health/"])
def test_a_path_with_a_final_slash_is_not_redirected(client, path):
    for reply in (
        client.get(path, follow_redirects=False),
        client.post(path, json={}, follow_redirects=False),
    ):
        assert reply.status_code == 404
        assert message_of(path, reply) == "Not Found"


def test_the_document_describes_all_routes(client):
    document = client.get("/openapi.json").json()
    assert set(POSTS) <= set(document["paths"])
    assert list(document["paths"]["/health"]) == ["get"]
    assert set(document["paths"]["/embed"]["post"]["responses"]) >= {
        "200",
        "400",
        "401",
        "413",
        "415",
        "422",
        "429",
    }
