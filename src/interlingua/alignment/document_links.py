r"""The links of paired documents, with scores and the probability that each is a translation.

Sentences are aligned within each pair of documents by ``align_sentences``. Headings are linked with
headings only. Sentences are joined within their unit, or across the border of two paragraphs or
cues. The vectors of single sentences are known.

The probability is estimated without labeled links. Wrong links are made by moving the target of
each link by one or two sentences; the best of these is as hard to recognize as a real error of an
alignment. With f the density of the scores of links, g that of wrong ones, and w the share of wrong
links among all,

.. math:: P(right | s) = 1 - w \, g(s) / f(s)

The ratio f / g is a curve that is fitted to the scores of links and of wrong links, as in
calibration. Half of the wrong links score below their median, and few right ones do, so w is twice
the share of links that score below it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from interlingua.alignment.align import SentenceBlocks, align_sentences, join_sentences
from interlingua.alignment.document_store import KINDS, DocumentSide
from interlingua.alignment.sentence_alignment import AlignConfig, Link, costs
from interlingua.corpus.formats.bitext import PairOfTable, TextPair
from interlingua.encoder.protocol import Encode
from interlingua.mining.calibration.calibration import MIN_CALIBRATION_PAIRS, fit_calibration

TARGET_SHIFTS = (-2, -1, 1, 2)
"""Sentences by which the target of a link is moved to make wrong links."""
_SURE = 0.999
"""No link is more certain than this."""


class DocumentLinks(NamedTuple):
    """The links of a pair of documents.

    Attributes:
        pair: number of the pair.
        links: see ``Link``; costs are rounded.
        wrong: scores of wrong links of the same documents.
    """

    pair: int
    links: list[Link]
    wrong: list[float]


def link_documents(
    pair: int,
    numbers: tuple[int, int],
    sides: tuple[DocumentSide, DocumentSide],
    vectors: tuple[Float32[ndarray, "n d"], Float32[ndarray, "m d"]],
    encode: Encode,
    config: AlignConfig,
) -> DocumentLinks:
    """Align the sentences of two documents.

    Args:
        pair: number of the pair.
        numbers: of the documents on both sides.
        sides: all documents.
        vectors: of the distinct sentences of both sides.
        encode: computes the vectors of joined sentences.
        config: how to search.
    """
    blocks = []
    singles = []
    for number, side, own in zip(numbers, sides, vectors, strict=True):
        sentences = side.sentences(number)
        known = np.asarray(own[side.rows(number)], np.float32)
        blocks.append(
            SentenceBlocks(
                sentences,
                _with_known(sentences, known, functools.partial(encode, language=side.language)),
                side.border_flags(number),
                side.heading_flags(number),
            )
        )
        singles.append(known)
    found = align_sentences(blocks[0], blocks[1], config)
    links = [link._replace(cost=round(link.cost, 6)) for link in found.links]
    return DocumentLinks(pair, links, _wrong_scores(links, singles[0], singles[1]))


def _with_known(
    sentences: Sequence[str],
    vectors: Float32[ndarray, "n d"],
    encode: Callable[[Sequence[str]], Float32[ndarray, "n d"]],
) -> Callable[[Sequence[str]], Float32[ndarray, "n d"]]:
    """Return a function that encodes only texts without a known vector."""
    rows = {sentence: row for row, sentence in enumerate(sentences)}

    def encode_unknown(texts: Sequence[str]) -> Float32[ndarray, "n d"]:
        result = np.zeros((len(texts), vectors.shape[1]), np.float32)
        new = [place for place, text in enumerate(texts) if text not in rows]
        if new:
            result[new] = encode([texts[place] for place in new])
        for place, text in enumerate(texts):
            if text in rows:
                result[place] = vectors[rows[text]]
        return result

    return encode_unknown


def _wrong_scores(
    links: Sequence[Link], source: Float32[ndarray, "n d"], target: Float32[ndarray, "m d"]
) -> list[float]:
    """Return the best score of each one-to-one link with its target moved by ``TARGET_SHIFTS``."""
    pairs = [(link.source[0], link.target[0]) for link in links if _is_one_to_one(link)]
    if len(pairs) < 2 or len(target) <= max(TARGET_SHIFTS):
        return []
    x = np.array([source_number for source_number, _ in pairs])
    y = np.array([target_number for _, target_number in pairs])
    chance_x = 1 - source[x] @ target.mean(axis=0)
    chances = 1 - target @ source.mean(axis=0)
    best = np.full(len(x), -np.inf)
    for shift in TARGET_SHIFTS:
        moved = y + shift
        inside = (moved >= 0) & (moved < len(target))
        place = np.clip(moved, 0, len(target) - 1)
        products = np.einsum("nd,nd->n", source[x], target[place])
        scores = 1 - costs(products, chance_x, chances[place])
        best = np.where(inside, np.maximum(best, scores), best)
    return [round(float(score), 4) for score in best[np.isfinite(best)]]


def _is_one_to_one(link: Link) -> bool:
    return len(link.source) == len(link.target) == 1


def estimate_probabilities(
    scores: Float64[ndarray, " n"], wrong: Float64[ndarray, " w"]
) -> Float64[ndarray, " n"]:
    """Estimate the probability that each link is a translation; see the module.

    Args:
        scores: of the links.
        wrong: of wrong links.

    Returns:
        NaN for all if there are too few links to estimate from.
    """
    if min(len(scores), len(wrong)) < MIN_CALIBRATION_PAIRS:
        return np.full(len(scores), np.nan)
    known = np.concatenate([scores, wrong])
    is_link = np.repeat([True, False], [len(scores), len(wrong)])
    curve = fit_calibration(known, is_link).calibration(
        languages=("und", "und"), model="", scoring="", basis="labels"
    )
    ratios = np.exp(-curve.log_likelihood_ratios(scores))
    share = min(1.0, 2 * float((scores < np.median(wrong)).mean()))
    # With a share of zero, even the worst link would be certain.
    share = max(share, 1 / (len(scores) + 1))
    return np.asarray(np.clip(1 - share * ratios, 1 - _SURE, _SURE))


def linked_pairs(
    found: DocumentLinks,
    numbers: tuple[int, int],
    sides: tuple[DocumentSide, DocumentSide],
    probabilities: Sequence[float],
) -> list[TextPair]:
    """Return the linked sentences of two documents, with their documents and positions.

    Args:
        found: the links.
        numbers: of the documents.
        sides: all documents.
        probabilities: of the links with sentences on both sides, in their order; NaN is unknown.
    """
    texts = [side.sentences(number) for number, side in zip(numbers, sides, strict=True)]
    kinds = sides[0].kinds[sides[0].span(numbers[0])]
    paths = [side.entries[number].path for number, side in zip(numbers, sides, strict=True)]
    pairs: list[TextPair] = []
    joining = [link for link in found.links if link.source and link.target]
    for link, probability in zip(joining, probabilities, strict=True):
        score = round(1 - link.cost, 6)
        fields: dict[str, Any] = {
            "score": score,
            "probability": "" if np.isnan(probability) else round(float(probability), 4),
            "source_document": paths[0],
            "target_document": paths[1],
            "source_position": _position(link.source),
            "target_position": _position(link.target),
            "kind": KINDS[int(kinds[link.source[0]])],
        }
        pair = TextPair(
            join_sentences(texts[0], link.source),
            join_sentences(texts[1], link.target),
            sides[0].language,
            sides[1].language,
            score,
        )
        pairs.append(PairOfTable.of(pair, fields))
    return pairs


def _position(numbers: Sequence[int]) -> str:
    """Return the numbers of sentences from 1: ``7``, or ``7-8``."""
    if len(numbers) == 1:
        return str(numbers[0] + 1)
    return f"{numbers[0] + 1}-{numbers[-1] + 1}"
