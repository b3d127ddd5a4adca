"""Measure retrieval among long passages, and whether a model uses their later tokens.

    python experiments/mini/earlier.py second -o models/mini-first-edition
    python tools/get_backbone.py multilingual-e5-small --out models/multilingual-e5-small
    python experiments/mini/long_texts.py mini models/mini-first-edition \
        models/multilingual-e5-small --data $INTERLINGUA_DATA/xquad

XQuAD has five paragraphs of each of 48 articles, one after the other, in 12 languages. Consecutive
paragraphs of one article are joined while they have at most 500 tokens of mini's vocabulary. The
pool of a language is all its joined passages. Questions count if their passage has 300 to 500
tokens, with MRR@100 in the pool of their language, mean over languages:

- ``whole``: the passages as they are;
- ``first 160``: cut at 160 tokens, the limit of mini's last training stages;
- ``later paragraph``: whole passages, only questions on a paragraph that starts after token 160;
- ``later paragraph, first 160``: the same questions, passages cut at 160 tokens. Their paragraphs
  are not in the texts, so only the topic of the article leads to the passage.

Tokens are those of mini's vocabulary. A model with another vocabulary may cut a passage at its own
limit.
"""

from __future__ import annotations

import argparse
import bisect
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

import interlingua
from interlingua.encoder.encoder import Encoder

PARAGRAPHS = 5
"""Number of paragraphs of an article, consecutive in the files."""
SHORTEST, LONGEST = 300, 500
CUT = 160
DEPTH = 100
COLUMNS = ("whole", "first 160", "later paragraph", "later paragraph, first 160")
PROMPTS = ("query: ", "passage: ")
"""Prompts of models that were trained with them."""


class Passages(NamedTuple):
    """The joined passages of a language and their questions."""

    texts: list[str]
    tokens: list[int]
    questions: list[str]
    places: list[int]
    """Passage of each question."""
    starts: list[int]
    """Number of tokens before the question's paragraph."""


def joined(folder: Path, code: str, encoder: Encoder) -> Passages:
    """Read the paragraphs of a language, and join those of an article.

    Args:
        folder: ``<code>.passages.txt`` and ``<code>.questions.tsv``.
        code: of the language.
        encoder: counts the tokens.
    """
    paragraphs = (folder / f"{code}.passages.txt").read_text(encoding="utf-8").splitlines()
    (empty,) = encoder.vocabulary.encode([""])  # special tokens only
    counts = [len(ids) - len(empty) for ids in encoder.vocabulary.encode(paragraphs)]
    found = Passages([], [], [], [], [])
    place_of: list[tuple[int, int]] = []
    for number, (text, count) in enumerate(zip(paragraphs, counts, strict=True)):
        continues = number % PARAGRAPHS and found.tokens[-1] + count <= LONGEST
        if continues:
            place_of.append((len(found.texts) - 1, found.tokens[-1]))
            found.texts[-1] += f" {text}"
            found.tokens[-1] += count
        else:
            place_of.append((len(found.texts), 0))
            found.texts.append(text)
            found.tokens.append(count)
    for line in (folder / f"{code}.questions.tsv").read_text(encoding="utf-8").splitlines():
        _, paragraph, question, *_ = line.split("\t")
        place, start = place_of[int(paragraph)]
        if SHORTEST <= found.tokens[place] <= LONGEST:
            found.questions.append(question)
            found.places.append(place)
            found.starts.append(start)
    return found


def cut(text: str, encoder: Encoder) -> str:
    """Return the longest start of a text that has at most 160 tokens."""

    def tokens(end: int) -> int:
        return len(encoder.vocabulary.encode([text[:end]])[0])

    # The largest end whose start of the text is short enough.
    return text[: bisect.bisect_right(range(1, len(text) + 1), CUT, key=tokens)]


def reciprocal_ranks(queries: np.ndarray, passages: np.ndarray, places: list[int]) -> np.ndarray:
    """Compute 1 / rank of each question's passage, 0 if it is not among the first 100."""
    cosines = queries @ passages.T
    own = cosines[np.arange(len(queries)), places]
    ranks = 1 + (cosines > own[:, None]).sum(axis=1)
    return np.where(ranks <= DEPTH, 1 / ranks, 0)


def scores(encoder: Encoder, passages: Passages, shortened: list[str]) -> list[float]:
    """Return the four columns for a language."""
    has_prompts = set(encoder.settings.prompts.values()) >= set(PROMPTS)
    query, passage = PROMPTS if has_prompts else ("", "")
    questions = encoder.encode(passages.questions, prompt=query)
    is_later = np.asarray(passages.starts) >= CUT
    whole, short = (
        reciprocal_ranks(questions, encoder.encode(texts, prompt=passage), passages.places)
        for texts in (passages.texts, shortened)
    )
    return [float(part.mean()) for part in (whole, short, whole[is_later], short[is_later])]


def main() -> None:
    """Read the command line, and print a row for each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    data = os.environ.get("INTERLINGUA_DATA", "~/.cache/interlingua/data")
    parser.add_argument("--data", type=Path, default=Path(data).expanduser() / "xquad")
    parser.add_argument("--dtype", default="bfloat16", help="type of the model's numbers")
    given = parser.parse_args()
    counter = interlingua.load("mini")
    codes = sorted(path.name.split(".")[0] for path in given.data.glob("*.passages.txt"))
    languages = [joined(given.data, code, counter) for code in codes]
    shortened = [[cut(text, counter) for text in passages.texts] for passages in languages]
    long = [count for one in languages for count in one.tokens if SHORTEST <= count <= LONGEST]
    later = sum(start >= CUT for one in languages for start in one.starts)
    print(
        f"{len(codes)} languages: {sum(len(one.texts) for one in languages):,} passages,"
        f" {len(long):,} of {SHORTEST} to {LONGEST} tokens (mean {np.mean(long):.0f});"
        f" {sum(len(one.questions) for one in languages):,} questions on these,"
        f" {later:,} on a later paragraph"
    )
    print(f"| model | {' | '.join(COLUMNS)} |\n|---{'|---:' * len(COLUMNS)}|", flush=True)
    for name in given.models:
        encoder = interlingua.load(name, dtype=given.dtype)
        table = [scores(encoder, *pair) for pair in zip(languages, shortened, strict=True)]
        means = " | ".join(f"{100 * score:.1f}" for score in np.mean(table, axis=0))
        print(f"| {name} | {means} |", flush=True)


if __name__ == "__main__":
    main()
