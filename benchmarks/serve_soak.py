"""A server's memory over many requests, and many connections at once.

    python benchmarks/serve_soak.py --model models/multilingual-e5-small \
        --text flores200_devtest/eng_Latn.txt

Clients send requests of one text, of sixteen, in OpenAI's protocol, malformed ones, and some leave
before the answer. Resident memory is read between rounds of requests. The run fails if it grows by
more than --growth from the end of the first fifth to the end. Then many connections are opened at
once, all stay open, and each sends a request.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROUNDS = 20
EVERY = 50
"""Of so many requests one is malformed, and the client of another one leaves."""


def launch(model: str, *options: str) -> tuple[subprocess.Popen[str], int]:
    """Starts a server and waits for its first line."""
    command = [
        sys.executable,
        "-m",
        "interlingua",
        "serve",
        model,
        "--name",
        "soaked",
        "--port",
        "0",
        *options,
    ]
    log = open("serve_soak.log", "w", encoding="utf-8")  # noqa: SIM115  (the server writes to it until it ends)
    process = subprocess.Popen(command, stderr=log, text=True)
    for _ in range(3000):
        found = re.search(
            r"at http://127\.0\.0\.1:(\d+)", Path("serve_soak.log").read_text(encoding="utf-8")
        )
        if found:
            return process, int(found[1])
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("the server did not start; see serve_soak.log")


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def message(number: int, texts: list[str]) -> bytes:
    """A request; which one depends on its number."""
    size = 16 if number % 10 == 0 else 1
    own = [texts[(number + i) % len(texts)] for i in range(size)]
    path = "/embed"
    body = json.dumps({"inputs": own}).encode()
    if number % EVERY == 1:
        body = b'{"inputs": '
    elif number % 3 == 0:
        path = "/v1/embeddings"
        body = json.dumps({"input": own, "model": "soaked", "encoding_format": "base64"}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answer(reader: asyncio.StreamReader) -> int:
    """The status of a reply that was read whole."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
    return int(head.split(b" ")[1])


async def send_many(port: int, requests: int, clients: int, texts: list[str]) -> Counter[str]:
    """Counts the statuses of clients that each send a request when the last one is answered."""
    statuses: Counter[str] = Counter()
    numbers = iter(range(requests))

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            writer.write(message(number, texts))
            if number % EVERY == 2:
                writer.close()
                statuses["left"] += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            statuses[str(await answer(reader))] += 1
        writer.close()

    await asyncio.gather(*(work() for _ in range(clients)))
    return statuses


async def hold_many(port: int, connections: int, texts: list[str]) -> Counter[str]:
    """Opens all connections before the first request is sent."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(connections)]

    async def ask(number: int) -> int:
        reader, writer = opened[number]
        writer.write(message(3 * EVERY * number + 3, texts))
        return await answer(reader)

    statuses = await asyncio.gather(*map(ask, range(connections)))
    for _, writer in opened:
        writer.close()
    return Counter(map(str, statuses))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", type=Path, required=True, help="a text a line")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--growth", type=float, default=10, help="MiB that memory may grow by")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    texts = list(itertools.islice(options.text.open(encoding="utf-8"), 1000))
    process, port = launch(options.model, "--threads", str(options.threads))
    resident = []
    statuses: Counter[str] = Counter()
    try:
        for step in range(1, ROUNDS + 1):
            share = options.requests // ROUNDS
            statuses += asyncio.run(send_many(port, share, options.clients, texts))
            resident.append(resident_mib(process.pid))
            used = processor_seconds(process.pid)
            print(
                f"{step * share:9,} requests  {resident[-1]:8.1f} MiB  {used:7.1f} s of processor",
                flush=True,
            )
        print("replies:", dict(statuses))
        held = asyncio.run(hold_many(port, options.connections, texts))
        print(
            f"{options.connections:,} connections at once, replies: {dict(held)};"
            f" {resident_mib(process.pid):.1f} MiB"
        )
    finally:
        process.terminate()
        code = process.wait(60)
    growth = resident[-1] - resident[ROUNDS // 5 - 1]
    print(f"growth {growth:+.1f} MiB from the first fifth to the end; the server ended with {code}")
    unexpected = {status for status in statuses | held if status not in ("200", "400", "left")}
    traced = "Traceback" in Path("serve_soak.log").read_text(encoding="utf-8")
    if growth > options.growth or unexpected or traced or code:
        raise SystemExit("failed")


if __name__ == "__main__":
    main()
