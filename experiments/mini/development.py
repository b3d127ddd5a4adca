"""Measures models on development data only, by which stages, rates and shares were chosen.

    python experiments/mini/development.py models/mini-start runs/mini/long --corpus prepared/mini \
        --scored data/mini --questions $INTERLINGUA_DATA/tydiqa_goldp

Four numbers a model: translations found among the held-out pairs of each language of the corpus
(mean of both directions and of all languages); Spearman's correlation on STS benchmark's
development split, in English and with the second sentence in another language; and the MRR of
TyDi's training questions in Korean and Swahili among all training passages of their language.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import interlingua
from interlingua.encoder.encoder import Encoder


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("--corpus", type=Path, required=True, help="prepared corpus")
    parser.add_argument(
        "--scored", type=Path, required=True, help="what scored_pairs.py has written"
    )
    parser.add_argument("--dim", type=int, help="of the vectors; all by default")
    parser.add_argument(
        "--questions", type=Path, required=True, help="TyDi GoldP, with its training split"
    )
    given = parser.parse_args()
    titles = (
        "model",
        "held-out P@1",
        "STSb dev, English",
        "STSb dev, across languages",
        "TyDi train, ko and sw, MRR",
    )
    print(f"| {' | '.join(titles)} |\n|---{'|---:' * (len(titles) - 1)}|", flush=True)
    for name in given.models:
        encoder = interlingua.load(name)
        scores = (
            held_out_accuracy(encoder, given.corpus, given.dim),
            correlation(encoder, given.scored / "held_out" / "en.dev.tsv", given.dim),
            correlation(encoder, given.scored / "dev.tsv", given.dim),
            float(
                np.mean(
                    [
                        reciprocal_rank(encoder, given.questions, code, given.dim)
                        for code in ("ko", "sw")
                    ]
                )
            ),
        )
        print(f"| {name} | {' | '.join(f'{100 * score:.2f}' for score in scores)} |", flush=True)


def held_out_accuracy(encoder: Encoder, corpus: Path, dim: int | None) -> float:
    """Compute the share of held-out sentences with their translation as the nearest neighbor."""
    found = []
    for path in sorted((corpus / "valid_text").glob("*.tsv")):
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        one, other = (
            encoder.encode([row[side] for row in rows], truncate_dim=dim) for side in (0, 1)
        )
        cosines = one @ other.T
        found += [(cosines.argmax(axis) == np.arange(len(rows))).mean() for axis in (0, 1)]
    return float(np.mean(found))


def correlation(encoder: Encoder, path: Path, dim: int | None) -> float:
    """Compute Spearman's correlation of cosines and scores."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    one, other = (encoder.encode([row[side] for row in rows], truncate_dim=dim) for side in (1, 2))
    return float(spearmanr([float(row[0]) for row in rows], (one * other).sum(axis=1)).statistic)


def reciprocal_rank(encoder: Encoder, folder: Path, code: str, dim: int | None) -> float:
    """Compute the mean of 1 / rank of a training question's passage in its language."""
    passages = (folder / f"{code}.train.passages.txt").read_text(encoding="utf-8").splitlines()
    lines = (folder / f"{code}.train.questions.tsv").read_text(encoding="utf-8").splitlines()
    questions = [line.split("\t") for line in lines]
    cosines = (
        encoder.encode([row[2] for row in questions], truncate_dim=dim)
        @ encoder.encode(passages, truncate_dim=dim).T
    )
    own = cosines[np.arange(len(questions)), [int(row[1]) for row in questions]]
    return float((1 / (1 + (cosines > own[:, None]).sum(axis=1))).mean())


if __name__ == "__main__":
    main()
