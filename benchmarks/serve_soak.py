"""A server's memory over many requests, and many connections at once.

    python benchmarks/serve_soak.py --model models/multilingual-e5-small \
        --text flores200_devtest/eng_Latn.txt

Clients send requests of one text, of sixteen, in OpenAI's protocol, malformed ones, and some leave
before the answer. Resident memory is read between rounds of requests. The run fails if it grows by
more than --growth from the end of the first fifth to the end. Then many connections are opened at
once, all stay open, and each sends a request.

With --rebuild SECONDS, the server has an index in place of all this: clients send questions to
``/search`` for so long, while other processes rebuild the index with other passages and compact it.
Each question has to be answered with all its hits.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROUNDS = 20
EVERY = 50
"""Number of requests of which one is malformed, and one client leaves."""
HITS = 10
"""Number of hits of a question to an index that is rebuilt."""


def launch(model: str, *options: str) -> tuple[subprocess.Popen[str], int]:
    """Start a server and wait for its first line."""
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
    """Return a request, selected by its number."""
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


async def whole_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read a reply, and return its status and body."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    body = await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
    return int(head.split(b" ")[1]), body


async def answer(reader: asyncio.StreamReader) -> int:
    """Read a whole reply, and return its status."""
    return (await whole_answer(reader))[0]


async def search_until(
    done: asyncio.Event, port: int, texts: list[str], most: int = sys.maxsize
) -> list[tuple[str, float]]:
    """Ask one question after the other; return status, or what is wrong, and seconds of each."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = []
    for number in range(most):
        if done.is_set():
            break
        question = texts[(7 * number) % len(texts)]
        body = json.dumps({"query": question, "top": HITS}).encode()
        head = (
            "POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        began = time.perf_counter()
        writer.write(head.encode() + body)
        status, found = await whole_answer(reader)
        outcome = str(status)
        if status == 200 and len(json.loads(found)["hits"]) != HITS:
            outcome = "hits are missing"
        answers.append((outcome, time.perf_counter() - began))
    writer.close()
    return answers


async def run_index(*arguments: str) -> None:
    """Run ``interlingua index`` in a process of its own."""
    command = [sys.executable, "-m", "interlingua", "index", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
    if await process.wait():
        raise SystemExit(f"failed: {' '.join(command)}")


async def search_while_rebuilt(
    model: str, folder: Path, port: int, options: argparse.Namespace, texts: list[str]
) -> tuple[Counter[str], list[float]]:
    """Return how often each outcome of a search occurred, and the seconds of all searches."""
    index = str(folder / "index")
    done = asyncio.Event()
    [(_, seconds)] = await search_until(done, port, texts[:1], most=1)
    print(f"the first search: {1000 * seconds:.1f} ms")
    clients = [asyncio.create_task(search_until(done, port, texts)) for _ in range(options.clients)]
    counts: Counter[str] = Counter()
    stop = time.perf_counter() + options.rebuild
    while time.perf_counter() < stop:
        for first in (len(texts) // 2, 0):
            write_passages(folder, texts[first:])
            await run_index("build", model, str(folder / "passages.txt"), "-o", index)
            counts["rebuilt with other passages"] += 1
        await run_index("compact", index)
        counts["compacted"] += 1
    done.set()
    answers = list(itertools.chain(*await asyncio.gather(*clients)))
    print(dict(counts))
    return Counter(outcome for outcome, _ in answers), sorted(seconds for _, seconds in answers)


def write_passages(folder: Path, texts: list[str]) -> None:
    (folder / "passages.txt").write_text("".join(texts), encoding="utf-8")


def rebuild(options: argparse.Namespace, texts: list[str]) -> None:
    """Search an index that other processes rebuild, and fail if a search did."""
    folder = Path(tempfile.mkdtemp())
    try:
        write_passages(folder, texts)
        index = str(folder / "index")
        files = str(folder / "passages.txt")
        asyncio.run(run_index("build", options.model, files, "-o", index))
        threads = str(options.threads)
        process, port = launch(options.model, "--threads", threads, "--index", index)
        try:
            running = search_while_rebuilt(options.model, folder, port, options, texts)
            outcomes, seconds = asyncio.run(running)
        finally:
            process.terminate()
            code = process.wait(60)
    finally:
        shutil.rmtree(folder)
    middle, late = (seconds[int(share * len(seconds))] for share in (0.5, 0.99))
    print(f"searches: {dict(outcomes)}; the server ended with {code}")
    print(
        f"p50 {1000 * middle:.1f} ms  p99 {1000 * late:.1f} ms  slowest {1000 * seconds[-1]:.1f} ms"
    )
    if set(outcomes) != {"200"} or code:
        raise SystemExit("failed")


async def send_many(port: int, requests: int, clients: int, texts: list[str]) -> Counter[str]:
    """Count the reply statuses of clients, each with one request at a time."""
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
    """Open all connections before the first request is sent."""
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
    parser.add_argument("--rebuild", type=float, help="seconds; search an index that is rebuilt")
    options = parser.parse_args()
    texts = list(itertools.islice(options.text.open(encoding="utf-8"), 1000))
    if options.rebuild:
        rebuild(options, texts)
        return
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
