"""Serving on loopback, compared with other servers and with ``embed``.

The others are sentence-transformers behind FastAPI, infinity and llama.cpp.

    interlingua export models/multilingual-e5-small -o e5 --gguf --dtype float16
    python benchmarks/serve.py --model models/multilingual-e5-small \
        --gguf e5/model-F16.gguf --text eng_Latn.txt

    python3 -m venv other && other/bin/pip install torch==2.13.0 "infinity-emb[server,torch]"
    python benchmarks/serve.py --model MODEL --infinity other/bin/infinity_emb --text eng_Latn.txt

llama.cpp is left out without ``--gguf``; its server is that of ``pip install xllamacpp``. infinity
is left out without its program, which needs an environment of its own: it wants
sentence-transformers below 4. Each server runs in a process of its own with the same number of
threads; clients are asynchronous, in this process, and each sends its next request when the last
one is answered. They are aiohttp's, as httpx takes longer for a request than the server does.
sentence-transformers embeds each request as FastAPI's documentation would have it: a plain
function, which FastAPI runs in a pool of threads. Printed last: the ratios of throughputs and of
p99 for every number of clients, and our share of embed's own throughput with most clients.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from statistics import median

import aiohttp
import numpy as np

PEER = """
import sys
import torch
torch.set_num_threads(int(sys.argv[3]))
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(sys.argv[1], device="cpu")
app = FastAPI()


class Request(BaseModel):
    inputs: list[str]


@app.post("/embed")
def embed(request: Request):
    return model.encode(request.inputs, normalize_embeddings=True).tolist()


@app.get("/health")
def health():
    return {}


uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""
LLAMA = """
import sys
import time
import xllamacpp
options = xllamacpp.CommonParams()
options.model.path = sys.argv[1]
options.embedding = True
options.warmup = False
options.verbosity = -1
options.port = int(sys.argv[2])
options.cpuparams.n_threads = options.cpuparams_batch.n_threads = int(sys.argv[3])
options.n_parallel = 8
options.n_ctx = 8 * 512
options.n_batch = options.n_ubatch = 2048
server = xllamacpp.Server(options)
while True:
    time.sleep(60)
"""
OURS, PLAIN, LLAMA_CPP, INFINITY = "interlingua", "sentence-transformers", "llama.cpp", "infinity"
PORTS = {OURS: 8471, PLAIN: 8472, LLAMA_CPP: 8473, INFINITY: 8474}
ROUTES = {
    OURS: ("/embed", "inputs"), PLAIN: ("/embed", "inputs"), LLAMA_CPP: ("/v1/embeddings", "input"),
    INFINITY: ("/embeddings", "input"),
}  # fmt: skip
"""Path, and the field of the texts."""


def command_of(name: str, options: argparse.Namespace) -> list[str]:
    port, threads = str(PORTS[name]), str(options.threads)
    if name == OURS:
        given = ["--port", port, "--threads", threads, "--dtype", options.dtype]
        return [sys.executable, "-m", "interlingua", "serve", options.model, *given]
    if name == LLAMA_CPP:
        return [sys.executable, "-c", LLAMA, options.gguf, port, threads]
    if name == INFINITY:
        given = ["--engine", "torch", "--device", "cpu", "--no-bettertransformer"]
        return [
            options.infinity,
            "v2",
            "--model-id",
            options.model,
            "--host",
            "127.0.0.1",
            "--port",
            port,
            *given,
        ]
    return [sys.executable, "-c", PEER, options.model, port, threads]


def launch(name: str, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    port = str(PORTS[name])
    command = command_of(name, options)
    threads = str(options.threads)
    env = {**os.environ, "OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env
    )
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
            return process
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"{name} did not start")


async def measure(
    name: str, texts: list[str], clients: int, size: int, seconds: float
) -> tuple[float, list[float]]:
    """Return texts per second, and the seconds of each request."""
    times: list[float] = []
    port = PORTS[name]
    path, field = ROUTES[name]
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector) as session:
        start = time.perf_counter()

        async def ask(number: int) -> None:
            at = number * size
            while time.perf_counter() < start + seconds:
                own = [texts[(at + i) % len(texts)] for i in range(size)]
                at += clients * size
                sent = time.perf_counter()
                async with session.post(path, json={field: own}, raise_for_status=True) as reply:
                    await reply.read()
                times.append(time.perf_counter() - sent)

        await asyncio.gather(*(ask(number) for number in range(clients)))
        return len(times) * size / (time.perf_counter() - start), times


def rate_of_embed(model: str, texts: list[str], threads: int, dtype: str, repeats: int) -> float:
    """Measure texts per second of ``encode`` without a server, in a separate process."""
    code = (
        "import sys, time, torch; torch.set_num_threads(int(sys.argv[2]))\n"
        "from interlingua import load\n"
        "encoder, texts = load(sys.argv[1]), sys.stdin.read().splitlines()\n"
        "encoder.encode(texts[:64], dtype=sys.argv[3])\n"
        "for _ in range(int(sys.argv[4])):\n"
        "    start = time.perf_counter()\n"
        "    encoder.encode(texts, dtype=sys.argv[3])\n"
        "    print(len(texts) / (time.perf_counter() - start))\n"
    )
    command = [sys.executable, "-c", code, model, str(threads), dtype, str(repeats)]
    result = subprocess.run(
        command, input="\n".join(texts), capture_output=True, text=True, check=True
    )
    return median(map(float, result.stdout.split()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--gguf", help="the same model for llama.cpp")
    parser.add_argument("--infinity", help="its program, infinity_emb")
    parser.add_argument("--text", type=Path, required=True, help="a text a line")
    parser.add_argument("--texts", type=int, default=1000, help="lines that are used")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--size", type=int, default=1, help="texts of a request")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="auto")
    options = parser.parse_args()
    texts = options.text.read_text(encoding="utf-8").splitlines()[: options.texts]
    alone = rate_of_embed(options.model, texts, options.threads, options.dtype, options.rounds)
    print(f"embed without HTTP: {alone:.1f} texts/s")
    rates: dict[tuple[str, int], list[float]] = {}
    slowest: dict[tuple[str, int], list[float]] = {}
    names = [
        OURS,
        PLAIN,
        *([LLAMA_CPP] if options.gguf else []),
        *([INFINITY] if options.infinity else []),
    ]
    for _ in range(options.rounds):
        for name in names:
            process = launch(name, options)
            try:
                asyncio.run(measure(name, texts, 8, options.size, 1))
                for clients in options.clients:
                    rate, times = asyncio.run(
                        measure(name, texts, clients, options.size, options.seconds)
                    )
                    rates.setdefault((name, clients), []).append(rate)
                    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1000
                    slowest.setdefault((name, clients), []).append(p99)
                    print(
                        f"{name:22} {clients:3} clients {rate:8.1f} texts/s  p50 {p50:7.1f} ms "
                        f" p99 {p99:7.1f} ms",
                        flush=True,
                    )
            finally:
                process.terminate()
                process.wait()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    for clients in options.clients:
        for peer in names[1:]:
            faster = median(rates[OURS, clients]) / median(rates[peer, clients])
            sooner = median(slowest[OURS, clients]) / median(slowest[peer, clients])
            print(
                f"{clients} clients: {faster:.2f}x the throughput of {peer}, {sooner:.2f} of its"
                " p99"
            )
    most = max(options.clients)
    print(f"{most} clients: {median(rates[OURS, most]) / alone:.2f} of embed's throughput")


if __name__ == "__main__":
    main()
