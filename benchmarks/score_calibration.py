"""How true the probabilities of `interlingua score` are, on a bitext with known wrong pairs.

    python benchmarks/score_calibration.py MODEL --data tatoeba_laser

Tatoeba's test set in six languages, less 500 pairs to learn from. Of the rest 10 % get the next
pair's target, 10 % any other's, 10 % the most similar one, 5 % the first half of their own
(``hard``), or a quarter the next one's (``misaligned``). Learned from 300 judged pairs, or from the
500 held-out ones.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from interlingua.corpus.formats.bitext import TextPair, read_pairs, write_pairs
from interlingua.encoder.backends.load import encode_function
from interlingua.mining.calibration.calibrate import learn_scores
from interlingua.mining.calibration.calibration import (
    expected_cuts,
    load_calibration,
    measure_calibration,
)
from interlingua.mining.calibration.mixed_stream import first_part
from interlingua.mining.score import BitextScorer, ScoreConfig, pair_stream


def damaged(pairs: list[TextPair], vectors: np.ndarray, kind: str) -> list[TextPair]:
    """Return the pairs, some with a wrong target."""
    draw, found = random.Random(0), []
    texts = [pair.target for pair in pairs]
    for at, pair in enumerate(pairs):
        chance, target = draw.random(), pair.target
        if chance < (0.1 if kind == "hard" else 0.25):
            target = texts[(at + 1) % len(texts)]
        elif kind == "hard" and chance < 0.2:
            target = draw.choice(texts)
        elif kind == "hard" and chance < 0.3:
            similar = vectors @ vectors[at]
            similar[[text == target for text in texts]] = -1
            target = texts[int(similar.argmax())]
        elif kind == "hard" and chance < 0.35:
            target = first_part(target)
        found.append(pair._replace(target=target))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, required=True, help="folder with deu-eng.tsv ...")
    parser.add_argument(
        "--languages", nargs="+", default=["deu", "fra", "spa", "rus", "cmn", "jpn"]
    )
    parser.add_argument("--size", type=int, default=5000, help="pairs")
    parser.add_argument("--dtype", default="bfloat16")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pairs = [
        TextPair(
            pair.source, pair.target, "deu_Latn", "eng_Latn"
        )  # all called German, as a stream has one language pair
        for language in options.languages
        for pair in read_pairs(
            options.data / f"{language}-eng.tsv", source_language=language, target_language="eng"
        )
    ]
    random.Random(1).shuffle(pairs)
    held_out, pairs = pairs[:500], pairs[500 : options.size]
    model = partial(encode_function(options.model, dtype=options.dtype), normalize_embeddings=True)
    known: dict[str, np.ndarray] = {}

    def encode(texts: list[str], *, language: str | None = None) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, model(new), strict=True))
        return np.stack([known[text] for text in texts])

    vectors = encode([pair.target for pair in pairs])
    with tempfile.TemporaryDirectory() as folder:
        compare_ways(pairs, held_out, vectors, encode, folder)


def compare_ways(
    pairs: list[TextPair],
    held_out: list[TextPair],
    vectors: np.ndarray,
    encode: Callable[..., np.ndarray],
    folder: str,
) -> None:
    """Print how true the probabilities are that are learned in each way."""
    for kind in ("hard", "misaligned"):
        noisy = damaged(pairs, vectors, kind)
        right = np.array(
            [one.target == other.target for one, other in zip(pairs, noisy, strict=True)]
        )
        texts = [(pair.source, pair.target) for pair in noisy]
        scores = np.concatenate([block.scores for block in BitextScorer(encode).score(noisy)])
        print(f"{kind}: {len(noisy):,} pairs, {right.mean():.1%} right")
        work = Path(folder)
        labels = work / "labels.tsv"
        lines = [f"{answer:d}\t{a}\t{b}\n" for answer, (a, b) in zip(right, texts, strict=True)]
        labels.write_text("".join(lines[:300]), encoding="utf-8")
        write_pairs(held_out, work / "held.de-en.tsv")
        ways = {
            "300 judged pairs": {"labels": labels},
            "500 held-out pairs": {"parallel": str(work / "held.de-en.tsv")},
        }
        for name, basis in ways.items():
            stream = pair_stream(texts, "de", "en")
            output = work / "c.json"
            learn_scores(stream, encode, ScoreConfig(), output=output, model="x", **basis)
            calibration = load_calibration(work / "c.json", "de", "en")
            probabilities = calibration.probability(scores)
            error = measure_calibration(probabilities, right)["ece"]
            print(
                f"  {name}: {calibration.prior:.1%} expected to be right, calibration error"
                f" {error:.4f}"
            )
            for requested in (0.8, 0.9, 0.95, 0.98):
                kept = scores >= expected_cuts(scores, probabilities, [requested])[0].score
                print(
                    f"    precision {requested:.2f} requested, {right[kept].mean():.3f} found;"
                    f" {right[kept].sum() / right.sum():.1%} of the right pairs kept"
                )


if __name__ == "__main__":
    main()
