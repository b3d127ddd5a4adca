"""Speed of scoring a bitext, and separation of right and wrong pairs by the scores.

Speed is in pairs per second of one core's time.

    python benchmarks/score.py MODEL --data tatoeba_laser --dtype bfloat16

The bitext is Tatoeba's test set in several languages, shuffled, so that its lengths are those of
Tatoeba; every ``--wrong``-th target is that of the next pair. Processor time of one thread counts,
as other work may run at the same time; what the same core reaches in a plain product of matrices of
the model's kind, in the same run, is printed with it.
"""

from __future__ import annotations

import argparse
import random
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from interlingua.corpus.formats.bitext import TextPair, read_pairs
from interlingua.encoder.backends.load import encode_function
from interlingua.encoder.encode import WEIGHT_DTYPES, EncodeReport
from interlingua.mining.score import BitextScorer, ScoreConfig

LANGUAGES = "deu fra cmn rus jpn spa tur fin ara kor vie nld pol por"


def bitext(
    folder: Path, languages: list[str], size: int, wrong: int
) -> tuple[list[TextPair], np.ndarray]:
    """Return pairs, and whether each is right."""
    pairs = [
        TextPair(pair.source, pair.target, "und", "eng_Latn")
        for language in languages
        for pair in read_pairs(
            folder / f"{language}-eng.tsv", source_language=language, target_language="eng"
        )
    ]
    random.Random(0).shuffle(pairs)
    pairs = pairs[:size]
    right = np.arange(len(pairs)) % wrong != 0
    targets = [pair.target for pair in pairs]
    mixed = [
        pair if good else pair._replace(target=targets[at - 1])
        for at, (pair, good) in enumerate(zip(pairs, right.tolist(), strict=True))
    ]
    return mixed, np.array(
        [pair.target == target for pair, target in zip(mixed, targets, strict=True)]
    )


def product_rate(dtype: torch.dtype, seconds: float = 1.0) -> float:
    """Measure 10^9 multiply-adds per second of processor time."""
    a, b = torch.randn(2048, 384).to(dtype), torch.randn(384, 1536).to(dtype)
    a @ b
    start, rounds = time.process_time(), 0
    while time.process_time() - start < seconds:
        a @ b
        rounds += 1
    return rounds * 2 * a.numel() * b.shape[1] / (time.process_time() - start) / 1e9


def separation(scores: np.ndarray, right: np.ndarray) -> float:
    """Compute the area under the ROC curve: how often a right pair scores above a wrong one."""
    good, bad = np.sort(scores[right]), np.sort(scores[~right])
    below = np.searchsorted(bad, good, side="left") + np.searchsorted(bad, good, side="right")
    return float(below.mean() / 2 / len(bad))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, required=True, help="folder with deu-eng.tsv ...")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES.split())
    parser.add_argument("--size", type=int, default=4000, help="pairs")
    parser.add_argument("--wrong", type=int, default=4, help="every so many pairs one is wrong")
    parser.add_argument("--windows", type=int, nargs="+", default=[500, 8192])
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--prompt")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pairs, right = bitext(options.data, options.languages, options.size, options.wrong)
    encode = partial(
        encode_function(options.model, dtype=options.dtype),
        prompt=options.prompt,
        normalize_embeddings=True,
    )
    encode(["warm up"] * 64)
    report, spent = EncodeReport(), 0.0
    known: dict[str, np.ndarray] = {}

    def timed(texts: list[str], *, language: str) -> np.ndarray:
        nonlocal spent
        start = time.process_time()
        vectors = encode(texts, report=report)
        spent += time.process_time() - start
        known.update(zip(texts, vectors, strict=True))
        return vectors

    def remembered(texts: list[str], *, language: str) -> np.ndarray:
        return np.stack([known[text] for text in texts])

    start = time.process_time()
    blocks = list(BitextScorer(timed, ScoreConfig(window=options.windows[-1])).score(pairs))
    seconds = time.process_time() - start
    # fmt: off
    print(f"{len(pairs):,} pairs, {report.tokens / report.texts:.1f} tokens a text,"
          f" {report.texts:,} distinct texts;"
          f" {options.dtype}, one thread")
    print(f"  {len(pairs) / seconds:.0f} pairs/s of processor time, {spent / seconds:.1%} of it"
          " embedding"
          f" ({report.tokens / spent:,.0f} tokens/s); the rest by itself"
          f" {len(pairs) / (seconds - spent):,.0f} pairs/s")
    # fmt: on
    floats = WEIGHT_DTYPES.get(options.dtype, torch.bfloat16)  # for int8 too
    print(
        f"  this core now: {product_rate(floats):.0f} GFLOP/s in a product of 2048 x 384 x 1536 in"
        f" {floats}"
    )
    scores = {
        f"ratio, window {options.windows[-1]}": np.concatenate([block.scores for block in blocks])
    }
    scores["cosine"] = np.concatenate([block.cosines for block in blocks])
    for window in options.windows[:-1]:
        blocks = BitextScorer(remembered, ScoreConfig(window=window)).score(pairs)
        scores[f"ratio, window {window}"] = np.concatenate([block.scores for block in blocks])
    for name, values in sorted(scores.items()):
        print(
            f"  {name}: a right pair scores higher than a wrong one in"
            f" {separation(values, right):.3%}"
        )


if __name__ == "__main__":
    main()
