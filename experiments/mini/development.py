"""Measure models on development data only.

    python experiments/mini/development.py models/mini-start runs/mini/long --corpus prepared/mini \
        --scored data/mini --questions $INTERLINGUA_DATA/tydiqa_goldp

The columns of the table:

- held-out P@1: translations found among the held-out pairs of each language of the corpus, mean of
  both directions and of all languages;
- mixed pool P@1: translations of the held-out English sentences found among the sentences of all
  languages, English ones included;
- STSb dev, pool: the first sentences of STS benchmark's development split in 15 languages; share of
  the translations that are nearer than all sentences of another meaning, in any language;
- STSb dev: Spearman's correlation on this split, in English and with the second sentence in another
  language;
- TyDi train: MRR of the training questions in Korean and Swahili among all training passages of
  their language.

``--passages`` takes ``questions_dev.json`` of second_data.py. It adds the MRR of its questions
among the passages of their own language, and of its headings among the passages of all languages,
where the passage in any other language than the heading's is right.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import interlingua
from interlingua.encoder.dual_encoder import with_title
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
    parser.add_argument("--passages", type=Path, help="questions_dev.json of second_data.py")
    parser.add_argument("--prompts", action="store_true", help='"query: " and "passage: "')
    parser.add_argument("--dtype", default="float32", help="type of the model's numbers")
    parser.add_argument("--dim", type=int, help="of the vectors; all by default")
    parser.add_argument(
        "--questions", type=Path, required=True, help="TyDi GoldP, with its training split"
    )
    given = parser.parse_args()
    titles = [
        "model",
        "held-out P@1",
        "mixed pool P@1",
        "STSb dev, pool of 15 languages",
        "STSb dev, English",
        "STSb dev, across languages",
        "TyDi train, ko and sw, MRR",
    ]
    if given.passages:
        titles += ["questions, own language, MRR", "headings, other languages, MRR"]
    print(f"| {' | '.join(titles)} |\n|---{'|---:' * (len(titles) - 1)}|", flush=True)
    for name in given.models:
        encoder = interlingua.load(name, dtype=given.dtype)
        prompts = ("query: ", "passage: ") if given.prompts else ("", "")
        scores = [
            *held_out_accuracy(encoder, given.corpus, given.dim, prompts[0]),
            versions_accuracy(encoder, given.scored / "held_out", given.dim, prompts[0]),
            correlation(encoder, given.scored / "held_out" / "en.dev.tsv", given.dim, prompts[0]),
            correlation(encoder, given.scored / "dev.tsv", given.dim, prompts[0]),
            float(
                np.mean(
                    [
                        reciprocal_rank(encoder, given.questions, code, given.dim, prompts)
                        for code in ("ko", "sw")
                    ]
                )
            ),
        ]
        if given.passages:
            scores += passage_ranks(encoder, given.passages, given.dim, prompts)
        print(f"| {name} | {' | '.join(f'{100 * score:.2f}' for score in scores)} |", flush=True)


def held_out_accuracy(
    encoder: Encoder, corpus: Path, dim: int | None, prompt: str
) -> tuple[float, float]:
    """Compute the shares of held-out sentences with their translation as the nearest neighbor.

    Returns:
        Among the sentences of one language, in both directions; and for English sentences among
        the other English ones and those of all languages.
    """
    found = []
    sides: list[tuple[np.ndarray, np.ndarray]] = []
    for path in sorted((corpus / "valid_text").glob("*.tsv")):
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        codes = path.name.removesuffix(".tsv").split("-")
        one, other = (
            encoder.encode([row[side] for row in rows], truncate_dim=dim, prompt=prompt)
            for side in (0, 1)
        )
        cosines = one @ other.T
        found += [(cosines.argmax(axis) == np.arange(len(rows))).mean() for axis in (0, 1)]
        if "eng" in codes:
            sides.append((one, other) if codes[0] == "eng" else (other, one))
    english = np.concatenate([side[0] for side in sides])
    others = np.concatenate([side[1] for side in sides])
    to_others = english @ others.T
    own = np.diagonal(to_others)
    to_english = english @ english.T
    # A sentence may be in the pairs of several languages.
    to_english[to_english > 0.9999] = -1
    nearest = np.maximum(to_others.max(axis=1), to_english.max(axis=1))
    return float(np.mean(found)), float((own >= nearest).mean())


def versions_accuracy(encoder: Encoder, folder: Path, dim: int | None, prompt: str) -> float:
    """Compute how often a translation is nearer than all sentences of another meaning.

    Args:
        encoder: the model.
        folder: files of which the same row has the same meaning in each language.
        dim: of the vectors; all by default.
        prompt: in front of the texts.

    Returns:
        The share of pairs of a sentence and its translation, over all pairs of languages.
    """
    sides = [
        [line.split("\t")[1] for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(folder.glob("*.dev.tsv"))
    ]
    # Rows whose sentence is another row's in any language are left out.
    repeated = [Counter(side) for side in sides]
    rows = [
        texts
        for texts in zip(*sides, strict=True)
        if all(counts[text] == 1 for counts, text in zip(repeated, texts, strict=True))
    ]
    vectors = np.stack(
        [encoder.encode(side, truncate_dim=dim, prompt=prompt) for side in zip(*rows, strict=True)]
    )
    pool = vectors.reshape(-1, vectors.shape[2])
    own = np.arange(len(pool)) % len(rows)
    found = []
    for side in vectors:
        translations = np.einsum("rd,lrd->rl", side, vectors)
        cosines = side @ pool.T
        cosines[own[None, :] == np.arange(len(rows))[:, None]] = -1
        found.append(translations > cosines.max(axis=1)[:, None])
    # A sentence is no translation of itself.
    correct = np.stack(found, axis=1).mean(axis=0)
    return float(correct[~np.eye(len(sides), dtype=bool)].mean())


def correlation(encoder: Encoder, path: Path, dim: int | None, prompt: str) -> float:
    """Compute Spearman's correlation of cosines and scores."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    one, other = (
        encoder.encode([row[side] for row in rows], truncate_dim=dim, prompt=prompt)
        for side in (1, 2)
    )
    return float(spearmanr([float(row[0]) for row in rows], (one * other).sum(axis=1)).statistic)


def reciprocal_rank(
    encoder: Encoder, folder: Path, code: str, dim: int | None, prompts: tuple[str, str]
) -> float:
    """Compute the mean of 1 / rank of a training question's passage in its language."""
    passages = (folder / f"{code}.train.passages.txt").read_text(encoding="utf-8").splitlines()
    lines = (folder / f"{code}.train.questions.tsv").read_text(encoding="utf-8").splitlines()
    questions = [line.split("\t") for line in lines]
    cosines = (
        encoder.encode([row[2] for row in questions], truncate_dim=dim, prompt=prompts[0])
        @ encoder.encode(passages, truncate_dim=dim, prompt=prompts[1]).T
    )
    own = cosines[np.arange(len(questions)), [int(row[1]) for row in questions]]
    return float((1 / (1 + (cosines > own[:, None]).sum(axis=1))).mean())


def passage_ranks(
    encoder: Encoder, path: Path, dim: int | None, prompts: tuple[str, str]
) -> list[float]:
    """Compute the mean of 1 / rank of a question's passage, and of a heading's in other languages.

    Args:
        encoder: the model.
        path: of questions_dev.json.
        dim: of the vectors; all by default.
        prompts: in front of questions and of passages.
    """
    items = json.loads(path.read_text(encoding="utf-8"))
    contexts = {json.dumps(one): None for item in items for one in item["positive_ctxs"]}
    passages = [json.loads(key) for key in contexts]
    places = {key: place for place, key in enumerate(contexts)}
    texts = [with_title(one["text"], one["title"], None) for one in passages]
    languages = np.asarray([one["language"] for one in passages])
    questions = [item["question"] for item in items]
    cosines = (
        encoder.encode(questions, truncate_dim=dim, prompt=prompts[0])
        @ encoder.encode(texts, truncate_dim=dim, prompt=prompts[1]).T
    )
    own: list[float] = []
    others: list[float] = []
    for item, row in zip(items, cosines, strict=True):
        right = np.zeros(len(row), dtype=bool)
        right[[places[json.dumps(one)] for one in item["positive_ctxs"]]] = True
        same = languages == item["language"]
        if (right & same).any():
            own.append(1 / (1 + (row[same & ~right] > row[right & same].max()).sum()))
        if (right & ~same).any():
            wrong = ~right
            others.append(1 / (1 + (row[wrong] > row[right & ~same].max()).sum()))
    return [float(np.mean(own)), float(np.mean(others))]


if __name__ == "__main__":
    main()
