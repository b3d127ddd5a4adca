"""Measure a bridge: questions in many languages by one model, passages by its English teacher.

    python experiments/bridge/measure.py runs/bridge/model models/all-MiniLM-L6-v2 \
        $INTERLINGUA_DATA/xquad

A row for each language of XQuAD: the MRR@100 of its questions, which the bridge has embedded,
among the English passages, which the teacher has embedded, and its share of what the teacher's own
English questions reach. The last line is the mean cosine of both models' vectors of the English
questions.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import interlingua
from interlingua.encoder.encoder import Encoder
from interlingua.retrieval.topk import exact_topk

CUTOFF = 100
"""Ranks beyond this one count as nothing."""


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bridge", help="the model that embeds questions")
    parser.add_argument("teacher", help="the English model that has embedded the passages")
    parser.add_argument("data", type=Path, help="XQuAD, a file of questions for each language")
    given = parser.parse_args()
    bridge, teacher = interlingua.load(given.bridge), interlingua.load(given.teacher)

    passages = teacher.encode((given.data / "en.passages.txt").read_text("utf-8").splitlines())
    english = questions_of(given.data, "en")
    of_teacher = reciprocal_rank(teacher, english, passages)
    print(f"| questions | MRR@{CUTOFF} | share of the teacher's |\n|---|---:|---:|")
    print(f"| en, by the teacher | {100 * of_teacher:.1f} | |", flush=True)

    shares = []
    for path in sorted(given.data.glob("*.questions.tsv")):
        code = path.name.partition(".")[0]
        found = reciprocal_rank(bridge, questions_of(given.data, code), passages)
        share = found / of_teacher
        if code != "en":
            shares.append(share)
        print(f"| {code} | {100 * found:.1f} | {100 * share:.1f} % |", flush=True)
    print(f"| mean of {len(shares)} without en | | {100 * np.mean(shares):.1f} % |")

    texts = [text for text, _ in english]
    cosines = (bridge.encode(texts) * teacher.encode(texts)).sum(axis=1)
    print(f"\nmean cosine of English questions to the teacher's: {cosines.mean():.4f}")


def questions_of(folder: Path, code: str) -> list[tuple[str, int]]:
    """Read the questions of a language, each with the number of its passage."""
    lines = (folder / f"{code}.questions.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(row[2], int(row[1])) for row in rows]


def reciprocal_rank(
    encoder: Encoder, questions: list[tuple[str, int]], passages: np.ndarray
) -> float:
    """Compute the mean of 1 / rank of each question's passage; 0 if its rank is too low."""
    vectors = encoder.encode([text for text, _ in questions])
    found = exact_topk(vectors, passages, k=min(CUTOFF, len(passages)))
    answers = np.array([passage for _, passage in questions])
    hits = found.indices.cpu().numpy() == answers[:, None]
    ranks = hits.argmax(axis=1) + 1
    return float(np.where(hits.any(axis=1), 1 / ranks, 0.0).mean())


if __name__ == "__main__":
    main()
