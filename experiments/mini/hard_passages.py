"""Writes training questions with passages that a model mistakes for their answers.

    python experiments/mini/hard_passages.py models/mini-shared $INTERLINGUA_DATA/tydiqa_goldp \
        -o data/mini/questions.json
    python experiments/mini/hard_passages.py models/multilingual-e5-small \
        data/second/questions.json --question-prompt "query: " --passage-prompt "passage: " \
        -o data/second/ranked.json

The first line is about TyDi's English questions, the second about those of second_data.py, of
which each gets passages of its own passage's language, none nearer than its own.

Among 64 questions' passages nearly every question finds its own, and its loss teaches nothing. So
each question gets the passages nearest to it that do not answer it, in DPR's form. A passage that
holds the answer's words is none of them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import interlingua
from interlingua.encoder.dual_encoder import with_title
from interlingua.storage.files import atomic_write

PASSAGES = 4
"""A question's hard negatives: another of them in each pass."""
ROWS = 1024
"""Questions of which the cosines with all passages are held at a time."""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="what ranks the passages")
    parser.add_argument(
        "questions", type=Path, help="TyDi GoldP, with its training split, or questions.json"
    )
    parser.add_argument("--question-prompt", default="", help="before what the model reads")
    parser.add_argument("--passage-prompt", default="")
    parser.add_argument(
        "--dtype", default="float32", help="type of the numbers that it computes with"
    )
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    encoder = interlingua.load(given.model, dtype=given.dtype)
    if given.questions.suffix == ".json":
        found = with_hard_passages(encoder, given)
    else:
        found = of_tydi(encoder, given.questions)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(given.output) as file:
        json.dump(found, file, ensure_ascii=False)
    print(f"{given.output}: {len(found):,} questions with up to {PASSAGES} passages each")


def with_hard_passages(encoder: Any, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a file's questions in DPR's form, grouped by the languages of their passages."""
    items = json.loads(given.questions.read_text(encoding="utf-8"))
    by_language: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in items:
        by_language[item["positive_ctxs"][0]["language"]].append(item)
    for language, in_language in sorted(by_language.items()):
        # Each passage once, by its title and text.
        contexts = {json.dumps(item["positive_ctxs"][0]): None for item in in_language}
        passages = [json.loads(key) for key in contexts]
        places = {key: place for place, key in enumerate(contexts)}
        texts = [with_title(one["text"], one["title"], None) for one in passages]
        vectors = encoder.encode(texts, prompt=given.passage_prompt, language=language)
        for start in range(0, len(in_language), ROWS):
            some = in_language[start : start + ROWS]
            questions = [item["question"] for item in some]
            of_questions = encoder.encode(questions, prompt=given.question_prompt)
            cosines = of_questions @ vectors.T
            for item, row in zip(some, cosines, strict=True):
                own = places[json.dumps(item["positive_ctxs"][0])]
                item["hard_negative_ctxs"] = [passages[place] for place in nearest_below(row, own)]
        print(f"{language}: {len(in_language):,} questions, {len(passages):,} passages", flush=True)
    return list(items)


def nearest_below(cosines: np.ndarray, own: int) -> list[int]:
    """Return the nearest passages below a question's own. Nearer ones may be answers too."""
    below = np.where(cosines < cosines[own], cosines, -np.inf)
    count = min(PASSAGES, int(np.isfinite(below).sum()))
    return np.argsort(-below, kind="stable")[:count].tolist()  # type: ignore[no-any-return]


def of_tydi(encoder: Any, folder: Path) -> list[dict[str, Any]]:
    """Return TyDi's English training questions."""
    passages = (folder / "en.train.passages.txt").read_text(encoding="utf-8").splitlines()
    lines = (folder / "en.train.questions.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    cosines = encoder.encode([row[2] for row in rows]) @ encoder.encode(passages).T
    return [
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


def nearest_wrong(ranked: np.ndarray, passages: list[str], own: int, answer: str) -> list[int]:
    """Return the first passages other than the question's own without its answer's words."""
    wrong = (int(place) for place in ranked if place != own and answer not in passages[int(place)])
    return [place for place, _ in zip(wrong, range(PASSAGES), strict=False)]


if __name__ == "__main__":
    main()
