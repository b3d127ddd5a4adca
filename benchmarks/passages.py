"""Memory and disk space per passage of a collection during a search.

    python benchmarks/passages.py --passages 100000 --width 4

Made-up passages in BEIR's layout get random vectors and are searched by vectors and by BM25, once
as many as requested and once twice as many: what the second run takes more is divided by the
passages it has more. Memory is the peak that Python and numpy hold (tracemalloc); disk is the
cache. Both are printed at the size of Mr. TyDi too. Few passages of a large width would measure the
blocks of the search instead of what grows, so vectors are narrow and passages not below 65,536, a
block; a width adds four bytes per element to the disk and nothing to the memory.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np

from interlingua.evaluation import key_index
from interlingua.evaluation.baselines import postings
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.tasks.retrieval.retrieval import Beir

MR_TYDI = 58_043_326
WORDS = [f"word{number}" for number in range(5000)]


class RandomEncoder:
    """A vector for each text, whatever it says."""

    def __init__(self, width: int) -> None:
        self.dim = width
        self._draw = np.random.default_rng(0)

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        """Return one vector per text."""
        return self._draw.standard_normal((len(texts), self.dim), dtype=np.float32)


def write_collection(folder: Path, passages: int) -> None:
    """Write passages of 15 words and ten questions."""
    draw = np.random.default_rng(1)
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w") as file:
        for row in range(passages):
            text = " ".join(WORDS[word] for word in draw.integers(0, len(WORDS), 15))
            file.write(json.dumps({"_id": f"{row:07}#0", "title": f"t{row}", "text": text}) + "\n")
    queries = [{"_id": f"q{row}", "text": f"word{row} word{row + 7}"} for row in range(10)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    judged = [f"q{row}\t{row:07}#0\t1\n" for row in range(10)]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged))


def measure(passages: int, width: int) -> tuple[int, int]:
    """Return a run's peak memory and disk space in bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = Path(scratch) / "set", Path(scratch) / "cache"
        write_collection(folder, passages)
        tracemalloc.start()
        with CachedEncoder(RandomEncoder(width), kept=cache) as cached:
            Beir(languages=["en"], bm25=True).evaluate(cached, folder)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak, sum(path.stat().st_size for path in cache.iterdir())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=4)
    options = parser.parse_args()
    # what is bounded should be at its bound in both runs, so that the difference is what grows
    key_index.WAITING = options.passages // 16
    postings.BLOCK_PASSAGES = options.passages // 4
    measure(options.passages // 10, options.width)  # imports
    once, twice = (measure(times * options.passages, options.width) for times in (1, 2))
    memory, disk = ((two - one) / options.passages for one, two in zip(once, twice, strict=True))
    print(
        f"a passage: {memory:.0f} bytes of memory, {disk:.0f} bytes of disk at width"
        f" {options.width}"
    )
    print(
        f"{MR_TYDI:,} passages: {memory * MR_TYDI / 1e9:.1f} GB of memory,"
        f" {disk * MR_TYDI / 1e9:.0f} GB of disk"
    )


if __name__ == "__main__":
    main()
