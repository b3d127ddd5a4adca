"""Exact nearest neighbors both ways, compared with FAISS's flat index and sentence-transformers.

    interlingua embed MODEL x.txt -o x.npy; interlingua embed MODEL y.txt -o y.npy
    python benchmarks/knn.py --x x.npy --y y.npy
    python benchmarks/knn.py --size 30000            # Gaussian ones, with a pair each

Each engine has a process of its own with the same threads. FAISS searches twice, as LASER's
mine_bitexts does; sentence-transformers' semantic_search too. Processor time is what counts where
the machine does other work too, wall time where it does not. Every engine's neighbors are
compared with the first one's: the share of the k nearest, and of the nearest, that are the same but
for equal similarities; with less than all of them, ours ends in an error. The ratios come last.
``INTERLINGUA_KERNELS`` names the variant of the kernel.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ENGINES = {
    "faiss": "FAISS IndexFlatIP, two searches",
    "st": "sentence-transformers semantic_search, twice",
    "torch": "interlingua, plain torch",
    "compiled": "interlingua, compiled kernel",
    "compiled amx": "interlingua, compiled kernel amx",
    "compiled avx512": "interlingua, compiled kernel avx512",
}
USUAL = ("faiss", "st", "torch", "compiled")
OURS = [engine for engine in ENGINES if engine not in ("faiss", "st")]
TOLERANCE = 2e-6
"""Similarities this near to the k-th are equal in float32 products."""
TARGETS = {
    ("torch", "faiss"): 3,
    ("torch", "st"): None,
    ("compiled", "faiss"): 8,
    ("compiled", "st"): 12,
    ("compiled amx", "compiled avx512"): 3,
}
"""Required speed relative to another engine, on real vectors of 100,000 sentences each."""


def vectors(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors of both sides."""
    if options.x:
        sides = [
            np.load(path)[: options.size].astype(np.float32) for path in (options.x, options.y)
        ]
    else:
        rng = np.random.default_rng(0)
        x = rng.standard_normal((options.size, options.width), dtype=np.float32)
        sides = [x, x + rng.standard_normal(x.shape, dtype=np.float32)]
    return tuple(side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)  # type: ignore[return-value]


def search(engine: str, x: np.ndarray, y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the neighbors of x in y and of y in x."""
    if engine == "faiss":
        import faiss

        found = []
        for queries, candidates in ((x, y), (y, x)):
            index = faiss.IndexFlatIP(x.shape[1])
            index.add(candidates)
            found.append(index.search(queries, k)[1])
        return found[0], found[1]
    if engine == "st":
        import torch
        from sentence_transformers.util import semantic_search

        sides = torch.from_numpy(x), torch.from_numpy(y)
        ways = [
            semantic_search(queries, candidates, top_k=k)
            for queries, candidates in (sides, sides[::-1])
        ]
        of_x, of_y = ([[hit["corpus_id"] for hit in hits] for hits in way] for way in ways)
        return np.array(of_x), np.array(of_y)
    from interlingua.retrieval.topk.exact import mutual_topk

    of_x, of_y = mutual_topk(x, y, k=k, device="cpu")
    return of_x.indices.numpy(), of_y.indices.numpy()


def kernels_of(engine: str) -> dict[str, str]:
    """Return an engine's environment: the variant of the kernel, or nothing."""
    if engine == "torch":
        return {"INTERLINGUA_KERNELS": "0"}
    _, _, variant = engine.partition(" ")
    # Where the user names a variant, "compiled" is that one.
    return {"INTERLINGUA_KERNELS": variant} if variant else {}


def one(engine: str, options: argparse.Namespace) -> dict[str, float] | None:
    """Measure seconds and memory of an engine, and write its neighbors; None if not installed."""
    import torch

    from interlingua.kernels import variant

    # Plain torch would answer in its place.
    if engine.startswith("compiled") and variant("neighbors") is None:
        return None
    torch.set_num_threads(options.threads)
    if engine == "faiss":
        import faiss

        faiss.omp_set_num_threads(options.threads)
    x, y = vectors(options)
    search(engine, x[:500], y[:500], options.k)  # imports and thread pools
    before, cpu, wall = _status("VmRSS"), time.process_time(), time.perf_counter()
    found = search(engine, x, y, options.k)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    np.savez(options.save, *found)
    return {"cpu": cpu, "wall": wall, "mebibytes": _status("VmHWM") - before}


def agreement(first: Path, other: Path, sides: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    """Share of the first one's neighbors that the other has too, or others as near."""
    a, b = np.load(first), np.load(other)
    shares: dict[str, list[float]] = {"recall": [], "nearest": []}
    for name, (queries, candidates) in (("arr_0", sides), ("arr_1", sides[::-1])):
        worst = np.einsum("nd,nd->n", queries, candidates[a[name][:, -1]])
        best = np.einsum("nd,nd->n", queries, candidates[a[name][:, 0]])
        similarity = np.stack(
            [np.einsum("nd,nd->n", queries, candidates[column]) for column in b[name].T], axis=1
        )
        shares["recall"].append(float((similarity >= worst[:, None] - TOLERANCE).mean()))
        shares["nearest"].append(float((similarity[:, 0] >= best - TOLERANCE).mean()))
    return {key: min(values) for key, values in shares.items()}


def _status(key: str) -> float:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--x", type=Path, help="vectors of one side, .npy")
    parser.add_argument("--y", type=Path, help="of the other")
    parser.add_argument("--size", type=int, default=100_000, help="vectors of each side, at most")
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="the median of so many")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(USUAL))
    parser.add_argument("--engine", choices=ENGINES, help="measure this one in this process")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(one(options.engine, options)))
        return
    sides = vectors(options)
    print(
        f"{len(sides[0]):,} x {len(sides[1]):,} vectors of width {sides[0].shape[1]}, k"
        f" {options.k}, {options.threads} threads"
    )
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        files = {engine: Path(scratch) / f"{engine}.npz" for engine in options.engines}
        for engine in options.engines:
            command = [
                sys.executable,
                __file__,
                *sys.argv[1:],
                "--engine",
                engine,
                "--save",
                str(files[engine]),
            ]
            environment = os.environ | kernels_of(engine)
            runs = [
                subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
                for _ in range(options.rounds)
            ]
            answers = [json.loads(run.stdout) for run in runs]
            if None in answers:
                print(f"  {ENGINES[engine]:<46} not on this machine", flush=True)
                continue
            timed = sorted(answers, key=lambda run: run["cpu"])
            found[engine] = timed[len(timed) // 2]
            same = agreement(files[next(iter(found))], files[engine], sides)
            found[engine] |= same
            print(
                f"  {ENGINES[engine]:<46}{found[engine]['cpu']:9.2f} s CPU"
                f" {found[engine]['wall']:9.2f} s {found[engine]['mebibytes']:7.0f} MiB  "
                f" recall@{options.k} {same['recall']:.6f}, @1 {same['nearest']:.6f}",
                flush=True,
            )
    for (engine, other), target in TARGETS.items():
        if engine in found and other in found:
            cpu, wall = (found[other][key] / found[engine][key] for key in ("cpu", "wall"))
            print(
                f"{ENGINES[engine]}: {cpu:.1f} times (CPU), {wall:.1f} times (wall) as fast as"
                f" {ENGINES[other]}" + (f"; should be at least {target}" if target else "")
            )
    if any(one["recall"] < 1 for engine, one in found.items() if engine in OURS):
        sys.exit("interlingua: neighbors are missing")


if __name__ == "__main__":
    main()
