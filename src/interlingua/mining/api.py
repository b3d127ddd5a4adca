"""Texts in memory and encoders of any kind, as mining, scoring and alignment take them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.formats import TextPair
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import EmbedsText, Encoder
from interlingua.encoder.texts import PAIRS, check_text, checked_texts, refuse_container
from interlingua.errors import ConfigError, DataError
from interlingua.files import PathLike
from interlingua.languages import resolve
from interlingua.mining.align import Aligner
from interlingua.mining.alignment import AlignConfig, Link
from interlingua.mining.pipeline import TextFile
from interlingua.mining.score_job import Stream
from interlingua.mining.texts import Line
from interlingua.mining.vectors import Encode, unit

Embeds = EmbedsText | Callable[[list[str]], Any] | PathLike
"""An encoder, a model's folder or ``hf:owner/name``, or a function from texts to vectors of any length."""


def text_side(texts: Sequence[str], name: str, language: str | None, encode: Encode | None = None) -> TextFile:
    """Texts in memory as a side to mine; each is stripped, as the lines of a file are.

    Args:
        texts: sentences.
        name: what errors and reports call the side.
        language: any code; without one no check of script or language rejects a pair.
        encode: gives the vectors of texts.

    Raises:
        ConfigError: it is a single text, a table or a dictionary.
        DataError: an element is no text.
    """
    lines = [Line(text.strip(), str(number)) for number, text in enumerate(checked_texts(texts, name), 1)]
    code = resolve(language).code if language else ""
    return TextFile(path=name, language=code, encode=encode, extra=lines, in_memory=True)


def pair_stream(pairs: Iterable[tuple[str, str]], source_language: str | None, target_language: str | None) -> Stream:
    """Pairs in memory as a bitext to be read once.

    Args:
        pairs: source and target, as many as there are.
        source_language: in any code, where the encoder or a check needs it.
        target_language: code of the target's language, or None.

    Raises:
        ConfigError: they are a table or a dictionary.
        DataError: a pair does not hold two texts; when its turn comes.
    """
    refuse_container(pairs, PAIRS)
    source, target = (resolve(code).code if code else "" for code in (source_language, target_language))
    return Stream(_checked_pairs(pairs, source, target), (source, target), None, Counter(), BadLines())


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
        band: sentences on either side of the coarse path in which the fine one is searched.
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
    embed = embedding_function(encoder)

    def encode(
        texts: Sequence[str], *, language: str | None = None, report: EncodeReport | None = None
    ) -> Float32[ndarray, "n d"]:
        given = {"prompt": prompt, "language": language}
        vectors = np.asarray(embed(list(texts), **{key: value for key, value in given.items() if value}))
        if report is not None:
            report.texts += len(texts)
        return unit(vectors)

    return encode


def embedding_function(encoder: Any) -> Callable[..., Any]:
    """The ``encode`` of an encoder, or the function itself.

    Raises:
        ConfigError: it is neither.
    """
    embed: Any = getattr(encoder, "encode", encoder)
    # A text has a method of that name, too.
    if isinstance(encoder, str) or not callable(embed):
        kind = type(encoder).__name__
        raise ConfigError(
            f"expected an encoder (interlingua.load), a model's folder or a function first, got {kind}; the order is"
            " mine(encoder, source, target), score(encoder, pairs), align(encoder, source, target)"
        )
    function: Callable[..., Any] = embed
    return function
