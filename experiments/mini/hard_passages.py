"""Writes TyDi's English training questions with passages that a model mistakes for their answers.

    python experiments/mini/hard_passages.py models/mini-shared $INTERLINGUA_DATA/tydiqa_goldp \
        -o data/mini/questions.json

Among 64 questions' passages nearly every question finds its own, and its loss teaches nothing. So
each question gets the passages nearest to it that do not answer it, in DPR's form. A passage that
holds the answer's words is none of them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import interlingua
from interlingua.files import atomic_write

PASSAGES = 4
"""A question's hard negatives: another of them in each pass."""


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="what ranks the passages")
    parser.add_argument("questions", type=Path, help="TyDi GoldP, with its training split")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    encoder = interlingua.load(given.model)
    folder = given.questions
    passages = (folder / "en.train.passages.txt").read_text(encoding="utf-8").splitlines()
    lines = (folder / "en.train.questions.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    cosines = encoder.encode([row[2] for row in rows]) @ encoder.encode(passages).T
    found = [
        {
            "question": question,
            "answers": [answer],
            "positive_ctxs": [{"title": "", "text": passages[int(own)]}],
            "hard_negative_ctxs": [
                {"title": "", "text": passages[place]}
                for place in nearest_wrong(ranked, passages, int(own), answer)
            ],
        }
        for (_, own, question, answer), ranked in zip(
            rows, np.argsort(-cosines, axis=1), strict=True
        )
    ]
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(given.output) as file:
        json.dump(found, file, ensure_ascii=False)
    print(f"{given.output}: {len(found):,} questions with {PASSAGES} passages each")


def nearest_wrong(ranked: np.ndarray, passages: list[str], own: int, answer: str) -> list[int]:
    """The first passages that are not the question's own and do not hold its answer's words."""
    wrong = (int(place) for place in ranked if place != own and answer not in passages[int(place)])
    return [place for place, _ in zip(wrong, range(PASSAGES), strict=False)]


if __name__ == "__main__":
    main()
