"""An index of many passages, built and searched: time, memory and bytes on disk.

Vectors are random, so only the index is measured; embedding a million sentences takes
hours in addition.

    python benchmarks/passage_index.py --passages 1_000_000 --folder DIR
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex
from interlingua.retrieval.ranking import merged

LANGUAGES = ("arb_Arab", "deu_Latn", "eng_Latn", "spa_Latn", "zho_Hans")
WORDS = 50_000
QUESTIONS = 15


def passages(count: int, seed: int = 0) -> Iterator[Passage]:
    """Yield invented passages of twenty words with the frequencies of a natural language."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        words = np.minimum(rng.zipf(1.3, 20), WORDS)
        text = " ".join(f"w{word}" for word in words)
        yield Passage(f"p{number}", text, "", LANGUAGES[number % len(LANGUAGES)], '{"year": 2024}')


def unit_vectors(rng: np.random.Generator, count: int, width: int) -> np.ndarray:
    table = rng.standard_normal((count, width), dtype=np.float32)
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--folder", type=Path, required=True, help="for the index; removed first")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    rng = np.random.default_rng(1)
    index = PassageIndex.create(
        options.folder, IndexSettings(model="random", digest="none", dim=options.width)
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def embed(block: Sequence[Passage]) -> np.ndarray:
        return unit_vectors(rng, len(block), options.width)

    start = time.perf_counter()
    index.add(passages(options.passages), embed)
    added = time.perf_counter() - start
    index.finish()
    built = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    questions = unit_vectors(rng, QUESTIONS, options.width)

    def median_seconds(search: object) -> float:
        seconds = []
        for row in range(QUESTIONS):
            begin = time.perf_counter()
            search(row)  # type: ignore[operator]
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)

    def balanced(row: int) -> None:
        merged([index.nearest(questions[row], 2, languages=[code]) for code in LANGUAGES], 10)

    print(f"{options.passages:,} passages of width {options.width}, one process")
    print(
        f"added in {added:.0f} s, with the full-text index {built:.0f} s; {size / 1e9:.2f} GB on"
        " disk"
    )
    print(
        f"peak memory {peak / 1e6:.2f} GB, of which {before / 1e6:.2f} GB before the first passage"
    )
    print(
        "a question by vector, exact:"
        f" {median_seconds(lambda row: index.nearest(questions[row], 10)):.3f} s"
    )
    print(f"balanced between {len(LANGUAGES)} languages: {median_seconds(balanced):.3f} s")
    by_words = median_seconds(lambda row: index.matching(f"w{row + 5} w{row + 500}", 10))
    print(f"by words: {by_words:.3f} s")


if __name__ == "__main__":
    main()
