"""Write training questions with passages that a model mistakes for their answers.

    python experiments/mini/hard_passages.py models/mini-shared $INTERLINGUA_DATA/tydiqa_goldp \
        -o data/mini/questions.json
    python experiments/mini/hard_passages.py models/multilingual-e5-small \
        data/second/questions.json --question-prompt "query: " --passage-prompt "passage: " \
        --sentences 0.5 --questions 2 -o data/second/ranked.json

The first line is about TyDi's English questions, the second about those of second_data.py, of
which each gets passages of its own passage's language, none nearer than its own.

``--sentences`` takes for a share of the questions the sentence of the passage that is nearest to
the question in place of the passage, and sentences in place of passages as hard negatives, so that
a model also learns to find sentences. A passage in another language than the question, or with
fewer than two sentences, stays whole. ``--questions`` gives each question other questions as hard
negatives. Without them a model that reads no prompt learns to put all questions in one place, and
any sentence in the form of a question is found for most questions.

Among 64 questions' passages nearly every question finds its own, and its loss teaches nothing. So
each question gets the passages nearest to it that do not answer it, in DPR's form. A passage that
holds the answer's words is none of them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import interlingua
from interlingua.corpus.segments.sentence_splitting import split
from interlingua.encoder.dual_encoder import with_title
from interlingua.storage.files import atomic_write

PASSAGES = 4
"""A question's hard passages: another of its negatives in each pass."""
ROWS = 1024
"""Questions embedded at a time."""
SEED = 5
SHORTEST, LONGEST = 20, 600
"""Letters of a sentence in place of a passage."""
Context = dict[str, str]
"""A passage in DPR's form: title, text and language."""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="model that ranks the passages")
    parser.add_argument(
        "questions", type=Path, help="TyDi GoldP, with its training split, or questions.json"
    )
    parser.add_argument("--question-prompt", default="", help="text before each question")
    parser.add_argument("--passage-prompt", default="")
    parser.add_argument(
        "--dtype", default="float32", help="type of the numbers that it computes with"
    )
    parser.add_argument(
        "--sentences",
        type=float,
        default=0.0,
        help="share of the questions that get a sentence of their passage, 0 to 1",
    )
    parser.add_argument(
        "--questions",
        dest="other_questions",
        type=int,
        default=0,
        help="other questions among the hard negatives of each",
    )
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    if not 0 <= given.sentences <= 1 or given.other_questions < 0:
        parser.error("--sentences must be between 0 and 1, and --questions 0 or more")
    if given.questions.suffix != ".json" and (given.sentences or given.other_questions):
        parser.error("--sentences and --questions require a file questions.json")
    encoder = interlingua.load(given.model, dtype=given.dtype)
    if given.questions.suffix == ".json":
        found = with_hard_passages(encoder, given)
    else:
        found = of_tydi(encoder, given.questions)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(given.output) as file:
        json.dump(found, file, ensure_ascii=False)
    most = PASSAGES + given.other_questions
    print(f"{given.output}: {len(found):,} questions with up to {most} hard negatives each")


def with_hard_passages(encoder: Any, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a file's questions in DPR's form, each with hard negatives in its passage's language.

    A question whose passage is in another language keeps the whole passage.
    """
    items = json.loads(given.questions.read_text(encoding="utf-8"))
    draw = random.Random(SEED)
    by_language: dict[str, list[dict[str, Any]]] = defaultdict(list)
    questions_in: dict[str, list[str]] = defaultdict(list)
    for item in items:
        by_language[item["positive_ctxs"][0]["language"]].append(item)
        questions_in[item["language"]].append(item["question"])
    for language, in_language in sorted(by_language.items()):
        is_split = [
            item["language"] == language and draw.random() < given.sentences for item in in_language
        ]
        contexts = [item["positive_ctxs"][0] for item in in_language]
        pool = Candidates(encoder, given.passage_prompt, language)
        pool.embed([[context] for context in contexts])
        sentences = Candidates(encoder, given.passage_prompt, language)
        sentences.embed(
            [
                sentences_of(context) if with_sentences else []
                for context, with_sentences in zip(contexts, is_split, strict=True)
            ]
        )
        others = questions_in.get(language, [])
        for start in range(0, len(in_language), ROWS):
            rows = range(start, min(start + ROWS, len(in_language)))
            questions = [in_language[row]["question"] for row in rows]
            vectors = encoder.encode(questions, prompt=given.question_prompt)
            for row, vector in zip(rows, vectors, strict=True):
                item = in_language[row]
                chosen = sentences if len(sentences.own[row]) > 1 else pool
                own, hard = chosen.ranked(vector, chosen.own[row])
                drawn = draw.sample(others, min(given.other_questions, len(others)))
                item["positive_ctxs"] = [own]
                item["hard_negative_ctxs"] = hard + [
                    {"title": "", "text": question, "language": language}
                    for question in drawn
                    if question != item["question"]
                ]
        print(
            f"{language}: {len(in_language):,} questions, {len(pool.texts):,} passages", flush=True
        )
    return list(items)


class Candidates:
    """Passages, or sentences, of one language with their vectors; equal ones are held once.

    Args:
        encoder: of the model that ranks them.
        prompt: before each.
        language: of all.
    """

    def __init__(self, encoder: Any, prompt: str, language: str) -> None:
        self.encoder, self.prompt, self.language = encoder, prompt, language
        self.texts: list[Context] = []
        self.own: list[list[int]] = []
        """Places in ``texts`` of the candidates that each question's own passage has."""
        self.vectors = np.zeros((0, 1), np.float32)

    def embed(self, of_questions: list[list[Context]]) -> None:
        """Take and embed the candidates of each question's own passage."""
        places: dict[str, int] = {}
        for contexts in of_questions:
            self.own.append([places.setdefault(json.dumps(one), len(places)) for one in contexts])
        self.texts = [json.loads(key) for key in places]
        if self.texts:
            texts = [with_title(one["text"], one["title"], None) for one in self.texts]
            self.vectors = self.encoder.encode(texts, prompt=self.prompt, language=self.language)

    def ranked(self, question: np.ndarray, own: list[int]) -> tuple[Context, list[Context]]:
        """Return the nearest of the own candidates, and the nearest ones below it."""
        cosines = self.vectors @ question
        best = own[int(cosines[own].argmax())]
        return self.texts[best], [self.texts[place] for place in nearest_below(cosines, best)]


def sentences_of(context: Context) -> list[Context]:
    """Return the sentences of a passage that are long enough to answer a question."""
    return [
        {**context, "title": "", "text": sentence}
        for sentence in split(context["text"], context["language"])
        if SHORTEST <= len(sentence) <= LONGEST
    ]


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
