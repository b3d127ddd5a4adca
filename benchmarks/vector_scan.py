"""A question's nearest passages: mapped vectors, LanceDB's exact scan, and FAISS's flat index.

Vectors and texts are random, as in ``passage_index.py``. Each question goes to every engine in
turn, so that other work on the machine slows all of them. Processor time is what counts where the
machine does other work too. All engines must find the same passages; ours ends in an error if its
hits or cosines differ from LanceDB's. FAISS finds only numbers; the others read the passages too.

    python benchmarks/vector_scan.py --folder DIR
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from passage_index import passages, unit_vectors

from interlingua.retrieval.passage_index import IndexSettings, PassageIndex

TARGET = 5
"""Times as fast as LanceDB's scan."""
TOLERANCE = 1e-6
"""Tolerance of cosines."""


def build(folder: Path, count: int, width: int) -> PassageIndex:
    """Return an index of invented passages with random vectors."""
    shutil.rmtree(folder, ignore_errors=True)
    rng = np.random.default_rng(1)
    index = PassageIndex.create(folder, IndexSettings(model="random", digest="none", dim=width))
    index.add(passages(count), lambda block: unit_vectors(rng, len(block), width))
    index.compact()  # as ``finish`` does, but for the index of words
    begin = time.process_time()
    index._write_scan()
    print(f"vectors of {count:,} passages written in {time.process_time() - begin:.2f} s")
    begin = time.process_time()
    index._open_scan()
    print(f"verified and opened in {time.process_time() - begin:.3f} s")
    return index


def engines_of(
    index: PassageIndex, questions: np.ndarray, top: int
) -> dict[str, Callable[[int], Any]]:
    """Return what answers a question, by name."""
    mapped = index._open_scan()
    assert mapped.scan is not None
    scan = mapped.scan
    flat = faiss.IndexFlatIP(questions.shape[1])
    flat.add(scan.vectors)
    lance = PassageIndex(index.folder)
    lance._opened = mapped._replace(table=lance._table, scan=None)
    return {
        "interlingua, scan alone": lambda row: scan.nearest(questions[row], top),
        "FAISS IndexFlatIP": lambda row: flat.search(questions[[row]], top),
        "interlingua": lambda row: index.nearest(questions[row], top),
        "LanceDB's scan": lambda row: lance.nearest(questions[row], top),
    }


def check_equal(ours: list[Any], theirs: list[Any]) -> None:
    """Stop if two rankings differ."""
    same = [hit.id for hit in ours] == [hit.id for hit in theirs]
    pairs = zip(ours, theirs, strict=True)
    if not same or max(abs(one.score - other.score) for one, other in pairs) > TOLERANCE:
        sys.exit("the hits differ from those of LanceDB's exact scan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--folder", type=Path, required=True, help="for the index; removed first")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    index = build(options.folder, options.passages, options.width)
    questions = unit_vectors(np.random.default_rng(5), options.questions, options.width)
    engines = engines_of(index, questions, options.top)
    cpu, wall = defaultdict(list), defaultdict(list)
    for row in range(-2, options.questions):  # the first two warm up
        found = {}
        for name, search in engines.items():
            before, begin = time.process_time(), time.perf_counter()
            found[name] = search(row)
            if row >= 0:
                wall[name].append(time.perf_counter() - begin)
                cpu[name].append(time.process_time() - before)
        check_equal(found["interlingua"], found["LanceDB's scan"])
        scanned = found["interlingua, scan alone"]
        exact = index._open_scan().scan.rows[found["FAISS IndexFlatIP"][1][0]]  # type: ignore[union-attr]
        if set(scanned.rows) != set(exact):
            sys.exit("the hits differ from those of FAISS")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'per question, median':28}  processor ms  wall ms  least wall ms")
    for name in engines:
        times = statistics.median(cpu[name]), statistics.median(wall[name]), min(wall[name])
        print(f"{name:28}  {1e3 * times[0]:12.2f}  {1e3 * times[1]:7.2f}  {1e3 * times[2]:13.2f}")
    ratios = [
        statistics.median(of["LanceDB's scan"]) / statistics.median(of["interlingua"])
        for of in (cpu, wall)
    ]
    print(
        f"all {options.questions} rankings equal; {ratios[0]:.1f} times (processor time),"
        f" {ratios[1]:.1f} times (wall) as fast as LanceDB's scan; should be at least {TARGET}"
    )


if __name__ == "__main__":
    main()
