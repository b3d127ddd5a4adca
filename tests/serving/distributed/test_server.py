"""Real processes on a real socket: the first line, stopping under load, several workers, a port in
use."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import openai
import pytest

import interlingua_mini


@pytest.fixture
def folder(encoder, tmp_path):
    encoder.save(tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.fixture
def launch(folder):
    """Start ``interlingua serve`` and wait for its first line."""
    processes = []

    def launch(*options, model=folder, **environment):
        line = f"-m interlingua serve {model} --port 0 --threads 1"
        command = [sys.executable, *line.split(), *options]
        env = {**os.environ, **environment}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
        processes.append(process)
        line = process.stderr.readline()
        address = re.search(r"http://\S+", line)
        assert address, line
        return process, address[0]

    yield launch
    for process in processes:
        if process.poll() is None:
            process.terminate()
        if not process.stderr.closed:
            process.communicate(timeout=30)


def test_openai_s_asynchronous_client(launch):
    _, address = launch("--name", "own")

    async def ask():
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="any") as client:
            calls = [client.embeddings.create(model="own", input=f"en{n}") for n in range(40)]
            return await asyncio.gather(*calls)

    replies = asyncio.run(ask())
    assert {len(reply.data[0].embedding) for reply in replies} == {
        len(replies[0].data[0].embedding)
    }


async def stopped_under_load(process, address, count):
    """Return replies to requests that all arrived before SIGTERM.

    Errors replace failed replies.
    """
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        body = {"inputs": ["en1 en2 en3"] * 2000}
        calls = [asyncio.create_task(client.post("/embed", json=body)) for _ in range(count)]
        waiting = 0.0
        while waiting < 0.5 * count * 6000:  # tokens; what is done is less than half
            await asyncio.sleep(0.01)
            (line,) = re.findall(
                r"^interlingua_queue_tokens (\S+)", (await client.get("/metrics")).text, re.M
            )
            waiting = float(line)
        process.send_signal(signal.SIGTERM)
        return await asyncio.gather(*calls, return_exceptions=True)


SMALL_BATCHES = ("--batch-tokens", "3")
"""One text each, so that a few thousand texts take seconds."""


def test_sigterm_under_load_loses_no_accepted_request(launch):
    """Check requests that wait in the queue too."""
    process, address = launch(*SMALL_BATCHES)
    replies = asyncio.run(stopped_under_load(process, address, 10))
    assert process.wait(30) == 0
    assert [reply.status_code for reply in replies] == [200] * 10
    assert {len(reply.json()) for reply in replies} == {2000}
    log = process.stderr.read()
    assert "Traceback" not in log
    assert log.count('"path": "/embed", "status": 200') == 10


def test_when_the_time_to_stop_in_is_over_the_rest_gets_503(launch):
    process, address = launch(*SMALL_BATCHES, "--stop-seconds", "1")
    replies = asyncio.run(stopped_under_load(process, address, 40))
    assert process.wait(10) == 0
    late = [reply for reply in replies if reply.status_code == 503]
    assert len(late) > 20
    assert "to another server" in late[0].json()["error"]
    assert {reply.status_code for reply in replies} <= {200, 503}
    log = process.stderr.read()
    assert "Traceback" not in log
    assert log.count('"status": 503') == len(late)


def test_a_slow_client_is_refused_and_blocks_no_other(launch):
    _, address = launch("--body-seconds", "1")
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        slow.sendall(
            b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 20\r\n\r\n{"
        )
        for _ in range(5):
            assert httpx.post(f"{address}/embed", json={"inputs": "en1"}).status_code == 200
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_memory_and_connections_by_the_benchmark(folder, tmp_path):
    """Send two thousand requests, some malformed, then open 300 connections, then SIGTERM."""
    (tmp_path / "texts.txt").write_text("".join(f"en{n} en{n + 1}\n" for n in range(20)))
    root = Path(__file__).resolve().parents[3]
    script = root / "benchmarks" / "serve_soak.py"
    # With the executor onednn memory grows by 100 MiB in 40,000 requests, ever more slowly. It
    # hardly does with small caches (LRU_CACHE_CAPACITY, ONEDNN_PRIMITIVE_CACHE_CAPACITY). So this
    # test is of the server only.
    env = {**os.environ, "INTERLINGUA_EXECUTOR": "torch", "PYTHONPATH": str(root / "src")}
    sizes = ["--requests", "2000", "--connections", "300", "--growth", "8"]
    command = [sys.executable, str(script), "--model", str(folder), "--text", "texts.txt", *sizes]
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "replies: {'200': 300}" in result.stdout
    assert "'left': 40" in result.stdout


def test_workers_share_a_socket_and_report_together(launch):
    process, address = launch("--workers", "2")
    with httpx.Client(base_url=address) as client:
        for _ in range(10):
            sent = {"inputs": "en1"}
            assert client.post("/embed", json=sent, headers={"connection": "close"}).is_success
        assert "interlingua_texts_total 10.0" in client.get("/metrics").text
    process.terminate()
    assert process.wait(30) == 0


def workers_of(process):
    """Process ids of the workers, by Linux's list."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not listed.exists():
        pytest.skip("needs Linux's list of child processes")
    deadline = time.monotonic() + 30
    while len(listed.read_text().split()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    return [int(number) for number in listed.read_text().split()]


def test_workers_share_the_weights(launch):
    weights = interlingua_mini.folder() / "model.safetensors"
    process, address = launch("--workers", "2", model="mini")
    workers = workers_of(process)
    with httpx.Client(base_url=address, timeout=60) as client:
        for _ in range(10):
            sent = {"inputs": "Good morning"}
            assert client.post("/embed", json=sent, headers={"connection": "close"}).is_success
    for worker in workers:
        memory = Path(f"/proc/{worker}/smaps_rollup").read_text()
        own = sum(int(kib) for kib in re.findall(r"^Private_\w+: +(\d+) kB", memory, re.M))
        assert own * 1024 < weights.stat().st_size / 2


def logs(process, words):
    """Read the log up to a line with the words, and return whether it comes."""
    return any(words in line for line in process.stderr)


def waiting_tokens(address):
    (line,) = re.findall(
        r"^interlingua_queue_tokens (\S+)", httpx.get(f"{address}/metrics", timeout=60).text, re.M
    )
    return float(line)


def send_unread(address, texts):
    """Send a request on a connection, and return the connection."""
    host, _, port = address.removeprefix("http://").partition(":")
    body = json.dumps({"inputs": ["en1 en2 en3"] * texts}).encode()
    connection = socket.create_connection((host, int(port)), timeout=30)
    head = (
        "POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    return connection


def test_what_waited_in_a_worker_that_died_is_not_counted(launch):
    process, address = launch("--workers", "2", *SMALL_BATCHES)
    workers = workers_of(process)
    with contextlib.ExitStack() as opened:
        for _ in range(4):
            opened.enter_context(send_unread(address, 2000))
        deadline = time.monotonic() + 30
        while not waiting_tokens(address) and time.monotonic() < deadline:
            time.sleep(0.02)
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        assert logs(process, "a new worker")
    while set(workers_of(process)) & set(workers) or len(workers_of(process)) < 2:
        time.sleep(0.05)
    assert waiting_tokens(address) == 0


def test_the_log_is_json_whatever_comes(launch):
    process, address = launch()
    host, _, port = address.removeprefix("http://").partition(":")
    for sent in (
        b"GARBAGE\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: localhost\r\n"
        b"connection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(sent)
            assert connection.recv(100).startswith(b"HTTP/1.1 ")
    process.terminate()
    lines = [json.loads(line) for line in process.communicate(timeout=30)[1].splitlines()]
    assert "Invalid HTTP request received." in [line.get("message") for line in lines]
    assert [line["path"] for line in lines if "path" in line] == ["/health"]


def test_requests_are_answered_when_nobody_reads_the_log(launch):
    process, address = launch()
    process.stderr.close()
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    for _ in range(3):
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    connection.close()
    process.terminate()
    assert process.wait(30) == 0


def test_a_worker_that_dies_is_replaced(launch):
    process, address = launch("--workers", "2")
    first = workers_of(process)
    os.kill(first[0], signal.SIGKILL)
    assert logs(process, "a new worker")
    now = workers_of(process)
    assert len(now) == 2
    assert set(now) != set(first)
    assert httpx.post(f"{address}/embed", json={"inputs": "en1"}, timeout=60).status_code == 200


def test_workers_end_with_a_killed_parent(launch):
    process, _ = launch("--workers", "2")
    workers = workers_of(process)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [worker for worker in workers if is_alive(worker)]
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    assert not left


def is_alive(pid):
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_signal_at_once_ends_all_workers(launch):
    process, _ = launch("--workers", "2")
    process.terminate()
    assert process.wait(120) in (0, 2)


def test_flags_are_environment_variables_too(launch):
    _, address = launch(INTERLINGUA_SERVE_NAME="by-variable", INTERLINGUA_SERVE_API_KEY="secret")
    headers = {"authorization": "Bearer secret"}
    assert httpx.get(f"{address}/info").status_code == 401
    assert httpx.get(f"{address}/info", headers=headers).json()["model_id"] == "by-variable"


def test_a_text_of_full_stops_stops_nothing(launch):
    process, address = launch()
    body = {"source": ". " * 100_000, "target": "en1 en2."}
    with httpx.Client(base_url=address, timeout=20) as client:
        started = time.monotonic()
        assert client.post("/align", json=body).status_code in {200, 422}
        assert time.monotonic() - started < 5  # a second on an idle machine; minutes before
        assert client.get("/health").status_code == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_health_answers_while_a_large_body_is_read(launch):
    _, address = launch()
    headers = {"content-type": "application/json"}
    with (
        httpx.Client(base_url=address, timeout=60) as client,
        httpx.Client(base_url=address, timeout=60) as sender,
    ):
        for content, status in ((b"[],", 413), (b"1,", 413), (b'{"a":1},', 400)):
            body = b'{"input":[' + content * (15_000_000 // len(content)) + b"1]}"
            waits = []
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                client.get("/health")
                began = time.monotonic()
                reply = pool.submit(sender.post, "/v1/embeddings", content=body, headers=headers)
                while not reply.done():
                    asked = time.monotonic()
                    assert client.get("/health").status_code == 200
                    waits.append(time.monotonic() - asked)
                    # The server logs each request into a pipe that is not read here.
                    time.sleep(0.1)
            assert reply.result().status_code == status
            # A tenth of the time on an idle machine; 0.7 to 0.9 of it when the loop parsed.
            assert max(waits) < 0.5 * (time.monotonic() - began)


BUSY = """
import signal, sys
from interlingua.serving import app, server
from interlingua.serving.settings import ServeSettings

def make_app(*_, **__):
    async def busy(scope, receive, send):
        print("busy", flush=True)
        while True:
            pass
    return busy

app.make_app = make_app
server.END_SECONDS = 0.3
listener = server._listen("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
server._run(None, ServeSettings(stop_seconds=0.2), listener)
"""


def test_sigterm_ends_a_server_whose_event_loop_is_busy():
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        assert process.stdout.readline() == "busy\n"  # with what the server says as it starts
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == -signal.SIGALRM
    finally:
        process.kill()
        process.communicate()


def test_hosts_of_other_sites_are_refused_unless_allowed(launch):
    _, address = launch("--allowed-hosts", "own.example")
    for host, status in (("attacker.example", 421), ("own.example", 200)):
        assert httpx.get(f"{address}/health", headers={"host": host}).status_code == status
    assert httpx.get(f"{address}/health").status_code == 200
