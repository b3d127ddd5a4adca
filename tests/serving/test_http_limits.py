"""Heads of requests, byte by byte on a real socket: sizes, times and hosts."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time

import pytest
import uvicorn

from interlingua.serving.guards import Guards
from interlingua.serving.hosts import accepted_hosts
from interlingua.serving.http_limits import limited_http
from interlingua.serving.metrics import ServerMetrics
from interlingua.serving.settings import ServeSettings

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
ANSWER = re.compile(rb"<(\d+)>")


async def app(scope, receive, send):
    """Answer with the number of bytes of the body, as ANSWER reads it."""
    body = (await receive()).get("body", b"") if scope["type"] == "http" else b""
    answer = b"<%d>" % len(body)
    headers = [(b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


@contextlib.contextmanager
def listening(settings, hosts=None):
    guards = Guards(app, settings, ServerMetrics(), [].append, hosts)
    config = uvicorn.Config(
        guards, http=limited_http(settings), ws="none", log_level="critical", lifespan="off"
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()
    server.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture(scope="module")
def address():
    with listening(ServeSettings(header_seconds=0.4, body_seconds=0.4)) as address:
        yield address


def reply(client, answers=1):
    """Return the received bytes, up to a number of answers or the end of the connection."""
    received = b""
    with contextlib.suppress(OSError):
        while len(ANSWER.findall(received)) < answers and (chunk := client.recv(65_536)):
            received += chunk
    return received


def sent(address, *parts, pause=0.0, answers=1):
    with socket.create_connection(address, timeout=3) as client:
        # The server closes the connection while it is sent to.
        with contextlib.suppress(OSError):
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
        return reply(client, answers)


def test_usual_requests_pass(address):
    assert sent(address, GET + b"\r\n").startswith(b"HTTP/1.1 200")
    near = b"x-a: " + b"a" * 15_000 + b"\r\n"
    assert sent(address, GET + near + b"\r\n").startswith(b"HTTP/1.1 200")
    body = POST + b"content-length: 200000\r\n\r\n" + b"a" * 200_000
    assert sent(address, body).endswith(b"<200000>")
    chunks = b"20000\r\n" + b"a" * 0x20000 + b"\r\n0\r\n\r\n"
    assert sent(address, POST + b"transfer-encoding: chunked\r\n\r\n" + chunks).endswith(
        b"<131072>"
    )


def test_requests_sent_at_once_are_answered_in_their_order(address):
    first = POST + b"content-length: 60000\r\n\r\n" + b"a" * 60_000
    assert ANSWER.findall(sent(address, first + GET + b"\r\n", answers=2)) == [b"60000", b"0"]


@pytest.mark.parametrize(
    "parts",
    [
        [GET, *[b"x-a: b\r\n" * 1000] * 40],
        [GET + b"x-a: ", *[b"b" * 8000] * 40],
        [GET, *[b"x" * 8000] * 40],
        [b"GET /", *[b"b" * 8000] * 40],
        [GET + b"x-a: b\r\n" * 4000 + b"\r\n"],
        [POST + b"transfer-encoding: chunked\r\n\r\n0\r\n", *[b"x-a: b\r\n" * 1000] * 40],
        [POST + b"transfer-encoding: chunked\r\n\r\n5;", *[b"a" * 8000] * 40],
    ],
    ids=["lines", "value", "name", "path", "at once", "trailers", "chunk extension"],
)
def test_headers_beyond_the_limit_are_refused(address, parts):
    received = sent(address, *parts, pause=0.001)
    # Where more was sent than was read, the system may drop the reply.
    assert received == b"" or received.startswith(b"HTTP/1.1 4")
    assert sent(address, GET + b"\r\n").startswith(b"HTTP/1.1 200")


def test_the_refusal_of_large_headers_says_so(address):
    received = sent(address, GET + b"x-a: b\r\n" * 2100)
    assert received.startswith(b"HTTP/1.1 431")
    assert b"16,384 bytes" in received


@pytest.mark.parametrize("beginning", [b"", b"GET /", GET, GET + b"x-a: b"])
def test_headers_that_do_not_come_are_given_up(address, beginning):
    started = time.monotonic()
    assert sent(address, beginning).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - started < 2.5


def test_a_byte_now_and_then_gains_no_time(address):
    started = time.monotonic()
    received = sent(address, GET, *[b"x"] * 30, pause=0.05)
    assert received == b"" or received.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - started < 2.5


def test_a_second_request_has_the_limit_too(address):
    received = sent(address, GET + b"\r\n" + GET)
    assert received.startswith(b"HTTP/1.1 200")
    with socket.create_connection(address, timeout=3) as client:
        client.sendall(GET + b"\r\n")
        assert reply(client).startswith(b"HTTP/1.1 200")
        client.sendall(GET)
        assert reply(client).startswith(b"HTTP/1.1 408")


def test_an_idle_connection_stays(address):
    with socket.create_connection(address, timeout=3) as client:
        for _ in range(2):
            client.sendall(GET + b"\r\n")
            assert reply(client).startswith(b"HTTP/1.1 200")
            time.sleep(0.6)


def test_what_is_no_request_is_400(address):
    assert sent(address, b"\x00\x01\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_two_hosts_are_400(address):
    received = sent(address, GET + b"Host: other\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 400")
    assert b"Host" in received


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST.:8000", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("own.example", 200),
        ("attacker.example", 421),
        ("localhost.attacker.example", 421),
        ("127.0.0.1.attacker.example:8000", 421),
        ("", 421),
    ],
)
def test_other_hosts_are_refused_without_a_key(host, status):
    settings = ServeSettings(allowed_hosts=["own.example"])
    with listening(settings, accepted_hosts(settings, "127.0.0.1", "127.0.0.1")) as address:
        request = f"GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert sent(address, request.encode()).startswith(f"HTTP/1.1 {status}".encode())


@pytest.mark.parametrize(
    ("options", "host", "address", "accepted"),
    [
        ({}, "127.0.0.1", "127.0.0.1", True),
        ({}, "::1", "::1", True),
        ({}, "localhost", "127.0.0.1", True),
        ({}, "0.0.0.0", "0.0.0.0", False),
        ({"api_key": "k"}, "127.0.0.1", "127.0.0.1", False),
        ({"allowed_hosts": ["a.example:80"]}, "0.0.0.0", "0.0.0.0", True),
    ],
)
def test_when_hosts_are_checked(options, host, address, accepted):
    found = accepted_hosts(ServeSettings(**options), host, address)
    assert (found is not None) == accepted
    if accepted:
        assert {"localhost", "127.0.0.1", host, address} <= found
        assert ("a.example" in found) == ("allowed_hosts" in options)
