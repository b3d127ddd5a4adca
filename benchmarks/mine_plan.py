"""Neighbors of a million vectors either side: the time `mine --plan` names, and the real one.

    interlingua embed MODEL x.txt -o x.npy; interlingua embed MODEL y.txt -o y.npy
    python benchmarks/mine_plan.py --x x.npy --y y.npy --folder /data/million
    python benchmarks/mine_plan.py --x x.npy --y y.npy --folder small --size 50000 --clock cpu

Vectors are made on disk, in float16, from those of real texts: each lies between two of its side
and a little off that line; half of the target's have a translation. The search is that of
`interlingua mine`, on from where it was stopped, within --memory. Peak memory is that of the
process without the pages of mapped files, which the system takes back as it likes. The neighbors of
some vectors are compared with those that plain NumPy finds. Where the machine does other work
too, --clock cpu compares processor times.
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time
from pathlib import Path

import numpy as np

from interlingua.mining.pair_search import parse_size
from interlingua.mining.plan import TRIED_TEXTS
from interlingua.retrieval.topk.speed import search_speed
from interlingua.retrieval.topk.tiles import TilePlan, neighbor_blocks, search_tiles
from interlingua.runtime import duration, size_text
from interlingua.storage.arrays import unit_rows

CHUNK = 65_536
CHECKED = 200


def make(folder: Path, x: np.ndarray, y: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return both sides as mapped files. Existing files are reused."""
    paths = [folder / f"{name}-{count}.npy" for name in "xy"]
    if not all(path.exists() for path in paths):
        rng = np.random.default_rng(0)
        shape = (count, x.shape[1])
        made = [np.lib.format.open_memmap(path, "w+", np.float16, shape) for path in paths]
        partners = rng.permutation(
            min(len(x), len(y))
        )  # rows of both sides that represent a translation
        for start in range(0, count, CHUNK):
            stop = min(start + CHUNK, count)
            rows = rng.integers(len(partners), size=(2, stop - start))
            others = np.where(
                rng.random(stop - start) < 0.5, rows, rng.integers(len(partners), size=rows.shape)
            )
            for side, table, at in zip(made, (x, y), (rows, others), strict=True):
                noise = rng.standard_normal((stop - start, x.shape[1]), dtype=np.float32) / np.sqrt(
                    x.shape[1]
                )
                side[start:stop] = unit_rows(table[at[0]] + table[at[1]] + 0.2 * noise)
        for side in made:
            side.flush()
    return tuple(np.load(path, mmap_mode="r") for path in paths)  # type: ignore[return-value]


class Peak(threading.Thread):
    """The most memory that is not of mapped files."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes, self.stopped = 0, threading.Event()

    def run(self) -> None:  # noqa: D102 - as threads do
        while not self.stopped.wait(0.1):
            with open("/proc/self/status", encoding="ascii") as lines:
                own = next(
                    int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")
                )
            self.bytes = max(self.bytes, own)


def wrong(x: np.ndarray, y: np.ndarray, plan: TilePlan, folder: Path) -> int:
    """Count the sampled vectors of x with a farther neighbor than NumPy finds in float64."""
    rows = np.sort(np.random.default_rng(1).choice(len(x), min(CHECKED, len(x)), replace=False))
    queries = x[rows].astype(np.float64)
    best = np.full((len(rows), plan.k), -np.inf)
    for start in range(0, len(y), CHUNK):
        similar = queries @ y[start : start + CHUNK].astype(np.float64).T
        best = -np.sort(-np.concatenate([best, similar], axis=1), axis=1)[:, : plan.k]
    found = np.concatenate(
        [
            near.similarities[
                rows[(rows >= start) & (rows < start + len(near.indices))] - start
            ].numpy()
            for start, near in neighbor_blocks(plan, folder, "x")
        ]
    )
    return int((np.abs(found - best) > 1e-6).any(axis=1).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--x", type=Path, required=True, help="vectors of real texts, .npy")
    parser.add_argument(
        "--y", type=Path, required=True, help="of their translations or others like them"
    )
    parser.add_argument(
        "--folder", type=Path, required=True, help="for vectors (3 GB for a million) and neighbors"
    )
    parser.add_argument("--size", type=int, default=1_000_000, help="vectors of each side")
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--threads", type=int, help="all cores by default")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument(
        "--again", action="store_true", help="forget the neighbors that an earlier run has found"
    )
    options = parser.parse_args()

    import torch

    torch.set_num_threads(options.threads or torch.get_num_threads())
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    options.folder.mkdir(parents=True, exist_ok=True)
    x, y = make(
        options.folder, *(unit_rows(np.load(path)) for path in (options.x, options.y)), options.size
    )
    neighbors = options.folder / f"neighbors-{options.size}"
    if options.again:
        shutil.rmtree(neighbors, ignore_errors=True)
    plan = TilePlan.of(x, y, k=options.k, memory=parse_size(options.memory))
    tried = [
        unit_rows(side[np.linspace(0, len(side) - 1, TRIED_TEXTS).astype(np.int64)])
        for side in (x, y)
    ]
    speed = search_speed(*tried, options.k, (plan.n, plan.m), clock=clock)
    estimated = speed.seconds(plan.n, plan.m, plan.k, plan.rows)
    print(
        f"{plan.n:,} x {plan.m:,} vectors of width {plan.width}, k {plan.k},"
        f" {torch.get_num_threads()} threads, {len(list(plan.tiles()))} tiles of {plan.rows:,} x"
        f" {plan.columns:,}"
    )
    print(
        f"estimated: {duration(estimated)} ({speed.pair * 1e9:.3f} ns a pair,"
        f" {speed.place * 1e9:.0f} ns a place in a list, {speed.vector * 1e6:.2f} us to make a"
        " vector ready)",
        flush=True,
    )
    peak, before = Peak(), clock()
    peak.start()
    counts = {"first": None, "last": 0}

    def progress(done: int, total: int) -> None:
        counts["first"] = done if counts["first"] is None else counts["first"]
        counts["last"] = total
        print(f"  {done / total:6.1%} {duration(clock() - before)}", flush=True)

    search_tiles(x, y, plan, neighbors, progress=progress)
    taken = clock() - before
    peak.stopped.set()
    share = 1 - (counts["first"] or 0) / counts["last"]
    print(
        f"taken: {duration(taken)} for {share:.1%} of the pairs, peak memory"
        f" {size_text(peak.bytes)}"
    )
    print(f"of {min(CHECKED, len(x))} vectors {wrong(x, y, plan, neighbors)} have a wrong neighbor")
    if share:
        print(f"taken / estimated: {taken / (estimated * share):.3f}")


if __name__ == "__main__":
    main()
