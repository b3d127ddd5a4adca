from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from interlingua.encoder.backends import openai
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.backends.openai import OpenAIEncoder, OpenAIOptions
from interlingua.errors import ConfigError, TaskError


def vector(text, dim=4):
    return np.random.default_rng(len(text) + ord(text[-1])).standard_normal(dim).astype("<f4")


class Endpoint:
    """Endpoint that answers like OpenAI, or once with each of ``failures``; records requests."""

    def __init__(self):
        self.requests, self.keys, self.failures, self.answer = [], [], [], None

    def __call__(self, asked, key):
        self.requests.append(asked)
        self.keys.append(key)
        if self.failures:
            return self.failures.pop(0)
        if self.answer is not None:
            return 200, {}, self.answer
        data = []
        for index, text in enumerate(asked["input"]):
            row = vector(text, asked.get("dimensions", 4))
            embedding = row.tolist()
            if asked["encoding_format"] == "base64":
                embedding = base64.b64encode(row.tobytes()).decode()
            data.append({"index": index, "embedding": embedding})
        return 200, {}, json.dumps({"object": "list", "data": data[::-1]})

    def encoder(self, **options):
        return OpenAIEncoder("m", options=OpenAIOptions(**{"base_url": self.url, **options}))


@pytest.fixture
def endpoint(monkeypatch):
    served = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/embeddings":
                self.send_error(404)
                return
            status, headers, body = served(asked, self.headers.get("Authorization"))
            time.sleep(headers.pop("slow", 0))
            with contextlib.suppress(BrokenPipeError):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}/v1"
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def pauses(monkeypatch):
    slept = []
    monkeypatch.setattr(openai, "sleep", slept.append)
    return slept


@pytest.mark.parametrize("encoding", ["base64", "float"])
def test_batches_come_back_in_order(endpoint, encoding):
    options = {"base_url": endpoint.url + "/", "batch_texts": 3, "encoding": encoding}
    encoder, info = load_encoder("m-1", backend="openai", options=options)
    texts = [f"text {'x' * number}" for number in range(10)]
    vectors = encoder.encode(texts)
    assert np.array_equal(vectors, np.stack([vector(text) for text in texts]))
    assert sorted(len(asked["input"]) for asked in endpoint.requests) == [1, 3, 3, 3]
    assert {(asked["model"], asked["encoding_format"]) for asked in endpoint.requests} == {
        ("m-1", encoding)
    }
    assert all("dimensions" not in asked for asked in endpoint.requests)
    assert endpoint.keys == [None] * 4
    assert (info.name, info.digest, info.revision) == ("m-1", None, "no_revision_available")
    assert info.identity == f"{endpoint.url} m-1"
    assert info.overrides == ()


def test_key_width_prompt_and_empty_texts(endpoint, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-1")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    encoder, info = load_encoder(
        "m", backend="openai", options={"dimensions": 2, "key_variable": "MY_KEY"}
    )
    found = encoder.encode(["", "a"], prompt="q: ")
    assert found.any(axis=1).tolist() == [False, True]
    assert encoder.encode([" "]).tolist() == [[0.0, 0.0]]
    encoder.encode(["b"])
    assert [asked["input"] for asked in endpoint.requests] == [["q: a"], ["b"]]
    assert endpoint.requests[0]["dimensions"] == 2
    assert endpoint.keys == ["Bearer secret-1"] * 2
    assert info.overrides == ("openai.dimensions=2",)
    assert "secret" not in repr(info)


def test_blank_texts_alone_have_the_width_of_the_model(endpoint):
    assert endpoint.encoder().encode(["", " "]).tolist() == [[0.0] * len(vector("a"))] * 2


def test_what_may_pass_is_tried_again(endpoint, pauses):
    endpoint.failures = [(429, {"Retry-After": "7"}, "{}"), (503, {}, "busy"), (500, {}, "")]
    encoder = endpoint.encoder()
    assert np.array_equal(encoder.encode(["a"]), vector("a")[None])
    assert len(endpoint.requests) == 4
    assert pauses[0] == 7
    assert 1.5 <= pauses[1] <= 2.5
    assert 3 <= pauses[2] <= 5


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            (401, {}, '{"error": {"message": "Incorrect API key: k-77"}}'),
            r"401: Incorrect API key: \.\.\.; set OPENAI_A",
        ),
        ((400, {}, '{"error": "input too long"}'), "400: input too long$"),
        ((422, {}, "not json"), "422: not json"),
    ],
)
def test_what_cant_pass_is_one_line_at_once(endpoint, pauses, monkeypatch, failure, message):
    monkeypatch.setenv("OPENAI_API_KEY", "k-77")
    endpoint.failures = [failure]
    with pytest.raises(TaskError, match=message):
        endpoint.encoder().encode(["a"])
    assert (len(endpoint.requests), pauses) == (1, [])


def test_what_never_answered_is_not_waited_for_again(endpoint, pauses):
    """Check that an endpoint that has answered is waited for, for example during a restart."""
    endpoint.failures = [(503, {}, '{"error": "loading"}')] * 3
    dead = endpoint.encoder(retries=2)
    for _ in range(2):
        with pytest.raises(TaskError, match=r"3 tries \(loading\)"):
            dead.encode(["a"])
    assert (len(endpoint.requests), len(pauses)) == (3, 2)
    alive = endpoint.encoder(retries=1)
    alive.encode(["a"])
    endpoint.failures = [(503, {}, "loading")] * 2
    with pytest.raises(TaskError, match="in 2 tries"):
        alive.encode(["b"])
    assert alive.encode(["b"]).shape == (1, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retries": 0, "timeout_seconds": 0.05}, r"1 tries \(.*timed out\)"),
        ({"retries": 1, "base_url": "http://127.0.0.1:9"}, r"in 2 tries \(.*refused"),
        ({"base_url": "/v2"}, r"answered 404: .*base_url"),
    ],
)
@pytest.mark.usefixtures("pauses")
def test_too_slow_and_not_there(endpoint, options, message):
    endpoint.failures = [(200, {"slow": 0.5}, "{}")]
    if options.get("base_url") == "/v2":
        options = {"base_url": f"{endpoint.url}/v2"}
    with pytest.raises(TaskError, match=message):
        endpoint.encoder(**options).encode(["a"])


@pytest.mark.parametrize(
    "answer",
    [
        "<html>",
        '{"data": []}',
        '{"data": [{"index": 1, "embedding": [1.0]}]}',
        '{"data": [{"index": 0, "embedding": "???"}]}',
        '{"data": [{"index": 0}]}',
        "[]",
    ],
)
def test_an_answer_of_another_kind(endpoint, answer):
    endpoint.answer = answer
    with pytest.raises(TaskError, match="check base_url"):
        endpoint.encoder().encode(["a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "localhost:80"}, "base_url 'localhost:80': expected .*http"),
        ({"base_url": "file:///etc"}, "base_url"),
        ({"base_url": "http://me:pw@host/v1"}, r"password; .*\$OPENAI_API_KEY"),
        ({"batch_texts": 0}, "--set openai: batch_texts"),
        ({"encoding": "hex"}, "--set openai: encoding: .*base64 or float"),
    ],
)
def test_options_that_cant_be(options, message):
    with pytest.raises(ConfigError, match=message):
        load_encoder("m", backend="openai", options=options)


def test_an_address_is_no_model_s_name():
    """Refuse an address as a model's name. Texts for the own endpoint would go to OpenAI."""
    with pytest.raises(ConfigError, match=r"openai\.base_url or \$OPENAI_BASE_URL"):
        load_encoder("http://localhost:8080/v1", backend="openai")
