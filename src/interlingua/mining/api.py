"""``interlingua.mine``, ``score`` and ``align``: texts in memory, in a line of Python each.

For corpora that memory does not hold there are ``mining.pipeline.mine_files`` and the command line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.formats import TextPair
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import EmbedsText, Encoder
from interlingua.encoder.texts import PAIRS, check_text, checked_texts, refuse_container
from interlingua.errors import ConfigError, DataError
from interlingua.files import PathLike
from interlingua.functional.margin import Margin
from interlingua.mining.align import Aligner
from interlingua.mining.alignment import AlignConfig, Link
from interlingua.mining.mine import Retrieval, best_both_ways, retrieve
from interlingua.mining.score import PairScorer, ScoreConfig
from interlingua.mining.vectors import unit

Embeds = EmbedsText | Callable[[list[str]], Any] | PathLike
"""An encoder, a model's folder or ``hf:owner/name``, or a function from texts to vectors of any length."""


class MinedPair(NamedTuple):
    """A pair that was found.

    Attributes:
        score: margin, or cosine.
        source: the text.
        target: the text.
        source_row: its place among the sources, the first one of equal texts.
        target_row: its place among the targets.
    """

    score: float
    source: str
    target: str
    source_row: int
    target_row: int


def mine(
    encoder: Embeds,
    source: Sequence[str],
    target: Sequence[str],
    *,
    k: int = 4,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    threshold: float | None = None,
    prompt: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
) -> list[MinedPair]:
    """Finds translations in two lists of sentences; Artetxe and Schwenk (2019).

    Args:
        encoder: see ``Embeds``.
        source: sentences of one language; equal ones count once, blank ones not at all.
        target: sentences of the other one.
        k: neighbours scored, and averaged over in the margin.
        margin: ratio, distance or absolute (plain cosine).
        retrieval: max, intersection, forward or backward.
        threshold: least score, in the margin's unit.
        prompt: name of a prompt of the encoder, or a text to put in front.
        source_language: in any code, where the encoder needs it.
        target_language: code of the target's language, or None.

    Returns:
        The pairs, best first.

    Raises:
        DataError: a side has no sentence.
    """
    encode = encode_with(encoder, prompt)
    rows = [_first_rows(source, "source"), _first_rows(target, "target")]
    if not all(rows):
        raise DataError("one of two sides holds no sentence; there is nothing to mine")
    texts = [sorted(side, key=side.__getitem__) for side in rows]
    x, y = (encode(own, language=code) for own, code in zip(texts, (source_language, target_language), strict=True))
    found = retrieve(*best_both_ways(x, y, k=k, margin=margin), retrieval)
    found = found.take(np.argsort(-found.scores, kind="stable"))
    pairs = []
    for score, i, j in zip(found.scores.tolist(), found.x.tolist(), found.y.tolist(), strict=True):
        if threshold is None or score >= threshold:
            one = texts[0][i]
            other = texts[1][j]
            pairs.append(MinedPair(score, one, other, rows[0][one], rows[1][other]))
    return pairs


def _first_rows(texts: Sequence[str], what: str) -> dict[str, int]:
    """Each text that is not blank, with the row where it stands first."""
    rows: dict[str, int] = {}
    for row, text in enumerate(checked_texts(texts, what)):
        if text.strip():
            rows.setdefault(text, row)
    return rows


def score(
    encoder: Embeds,
    pairs: Iterable[tuple[str, str]],
    *,
    k: int = 4,
    margin: Margin = "ratio",
    window: int = 8192,
    prompt: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
) -> Iterator[float]:
    """Scores the pairs of a bitext as they stream by; see ``mining.score``.

    Args:
        encoder: see ``Embeds``.
        pairs: source and target, as many as there are.
        k: neighbours that the margin's means are taken over.
        margin: ratio, distance, or absolute, which is the plain cosine and needs no window.
        window: pairs of the stream among whose texts neighbours are looked for.
        prompt: name of a prompt of the encoder, or a text to put in front.
        source_language: in any code, where the encoder needs it.
        target_language: code of the target's language, or None.

    Returns:
        The score of each pair, in their order; 0 where a side is blank.

    Raises:
        ConfigError: the pairs are a table or a dictionary, or the encoder is none; when the function is called.
        DataError: a pair does not hold two texts; when its turn comes.
    """
    config = ScoreConfig(margin=margin, k=k, window=window)
    scorer = PairScorer(encode_with(encoder, prompt), config)
    refuse_container(pairs, PAIRS)
    stream = _checked_pairs(pairs, source_language or "", target_language or "")
    return (value for block in scorer.score(stream) for value in block.scores.tolist())


def _checked_pairs(pairs: Iterable[tuple[str, str]], source: str, target: str) -> Iterator[TextPair]:
    for row, pair in enumerate(pairs):
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise DataError(
                f"pairs: row {row:,} (counted from 0): expected a source and a target, got {repr(pair)[:60]}"
            )
        one, other = pair
        yield TextPair(check_text(one, row, "source"), check_text(other, row, "target"), source, target)


def align(
    encoder: Embeds,
    source: Sequence[str],
    target: Sequence[str],
    *,
    max_sentences: int = 4,
    skip_quantile: float = 0.2,
    band: int = 5,
    prompt: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
) -> tuple[Link, ...]:
    """Links the sentences of two documents that are translations of each other; Thompson and Koehn (2019).

    Args:
        encoder: see ``Embeds``.
        source: the sentences of one document, in their order.
        target: those of the other one.
        max_sentences: in a link at most, both sides together.
        skip_quantile: leaving a sentence alone costs this quantile of what random pairs cost, 0 to 1.
        band: sentences beside the coarse path among which the fine one is.
        prompt: name of a prompt of the encoder, or a text to put in front.
        source_language: in any code, where the encoder needs it.
        target_language: code of the target's language, or None.

    Returns:
        Numbers of source sentences, of target sentences and the cost of each link, every sentence in one of them.

    Raises:
        DataError: a document has no sentence.
    """
    config = AlignConfig(max_sentences=max_sentences, skip_quantile=skip_quantile, band=band)
    aligner = Aligner(
        encode_with(encoder, prompt), config, source_language=source_language, target_language=target_language
    )
    return aligner.align(list(checked_texts(source, "source")), list(checked_texts(target, "target"))).links


def encode_with(encoder: Embeds, prompt: str | None = None) -> Callable[..., Float32[ndarray, "n d"]]:
    """What gives vectors of length 1; language and prompt reach encoders that take them.

    Args:
        encoder: see ``Embeds``.
        prompt: of the encoder.

    Raises:
        ConfigError: it is nothing that embeds.
        CheckpointError: there is no such model.
    """
    if isinstance(encoder, str | os.PathLike):
        encoder = Encoder.load(encoder)
    embed: Any = getattr(encoder, "encode", encoder)
    if not callable(embed):
        kind = type(encoder).__name__
        raise ConfigError(
            f"expected an encoder (interlingua.load), a model's folder or a function first, got {kind}; the order is"
            " mine(encoder, source, target), score(encoder, pairs), align(encoder, source, target)"
        )

    def encode(
        texts: Sequence[str], *, language: str | None = None, report: EncodeReport | None = None
    ) -> Float32[ndarray, "n d"]:
        said = {"prompt": prompt, "language": language}
        vectors = np.asarray(embed(list(texts), **{key: value for key, value in said.items() if value}))
        if report is not None:
            report.texts += len(texts)
        return unit(vectors)

    return encode
