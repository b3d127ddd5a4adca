r"""Scores the pairs of a bitext of any length as they stream by: margins against neighbours from the same stream.

A pair is scored by its cosine, compared with the mean cosines of its source and of its target to their k nearest on
the other side (``functional.margin``), as mining does, with one difference: neighbors are searched among the texts of
a window of w pairs. The first w pairs are scored among themselves; from there on w/2 pairs at a time are read and
scored among the w latest, themselves included. So every pair meets the texts of w pairs, or of all where there are
fewer, and what is held is one window, whatever the length of the stream.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from numpy import ndarray

from interlingua.corpus.formats import TextPair
from interlingua.encoder.finite import check_finite
from interlingua.errors import ConfigError, DataError
from interlingua.functional.margin import MARGINS, Margin, margin_score
from interlingua.search.topk.exact import exact_topk

PORTION = 2048
"""Texts embedded at once."""
LEAST_PAIRS = 10
"""Pairs per neighbor of k; with fewer, a warning says that margins mean little."""
Encode = Callable[..., Float32[ndarray, "n d"]]
"""Texts -> vectors of length 1; takes ``language``, see ``interlingua.encoder.encode.encode``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreConfig:
    """What a score is."""

    margin: Margin = "ratio"
    """ratio, distance, or absolute, which is the plain cosine and needs no window."""
    k: int = 4
    """Neighbors that the margin's means are taken over."""
    window: int = 8192
    """Pairs with the texts among which neighbors are searched."""

    def __post_init__(self) -> None:
        if self.margin not in MARGINS:
            raise ConfigError(f"margin {self.margin!r} is unknown; there are: {', '.join(MARGINS)}")
        if self.k < 1 or self.window < 2:
            raise ConfigError(f"k = {self.k} and window = {self.window}; choose at least 1 and 2")

    def too_few(self, pairs: int) -> bool:
        """Whether a margin tells little because so few pairs have met.

        With k pairs or fewer all texts are neighbours, with one pair the ratio is 1 whatever the pair; some tens of
        unrelated texts make the k nearest of them a measure of what unrelated ones have.
        """
        return self.margin != "absolute" and min(pairs, self.window) < LEAST_PAIRS * self.k

    @property
    def scoring(self) -> str:
        """In words, what decides what a score means."""
        if self.margin == "absolute":
            return "score absolute"
        return f"score {self.margin} k={self.k} window={self.window}"


def score_config(margin: str, *, k: int, window: int, cosine: bool) -> ScoreConfig:
    """From options; plain cosines only where they are requested.

    Raises:
        ConfigError: a value can't be.
    """
    if margin == "absolute" and not cosine:
        raise ConfigError("the absolute margin is the plain cosine; say --cosine if you mean it")
    kind: Any = "absolute" if cosine else margin
    return ScoreConfig(margin=kind, k=k, window=window)


class ScoredPairs(NamedTuple):
    """Some pairs in the order of the stream.

    Attributes:
        pairs: as they came.
        scores: margins, or cosines; 0 where a side is blank.
        cosines: of both sides.
        hubs: how many texts scored with them have one side for their nearest; the larger of the two sides. 0 without
            a window.
    """

    pairs: list[TextPair]
    scores: Float64[ndarray, " n"]
    cosines: Float64[ndarray, " n"]
    hubs: Int64[ndarray, " n"]


class _Side:
    """The texts of one side of a window, each once, with their vectors."""

    def __init__(self, encode: Encode, language: str) -> None:
        self.encode = encode
        self.language = language or None
        self.tells_progress = takes_advance(encode)
        self.rows: dict[str, int] = {}
        self.vectors: Float32[ndarray, "n d"] = np.zeros((0, 0), np.float32)

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Forgets all other texts; those of these that have no vector yet."""
        wanted = dict.fromkeys(filter(str.strip, texts))
        old = [text for text in wanted if text in self.rows]
        self.vectors = self.vectors[self.rows_of(old)] if old else self.vectors[:0]
        self.rows = {text: row for row, text in enumerate(old)}
        return [text for text in wanted if text not in self.rows]

    def embed(self, texts: Sequence[str], advance: Callable[[int], None]) -> None:
        """Adds texts."""
        parts = [self.vectors] if len(self.vectors) else []
        for start in range(0, len(texts), PORTION):
            portion = texts[start : start + PORTION]
            if self.tells_progress:
                parts.append(self.encode(portion, language=self.language, advance=advance))
            else:
                parts.append(self.encode(portion, language=self.language))
                advance(len(portion))
            check_finite(parts[-1], lambda row, portion=portion: repr(portion[row][:60]))  # type: ignore[misc]
        self.vectors = np.concatenate(parts) if parts else self.vectors
        self.rows |= {text: len(self.rows) + row for row, text in enumerate(texts)}

    def rows_of(self, texts: Iterable[str]) -> Int64[ndarray, " n"]:
        """Where the vectors of some texts are."""
        return np.array([self.rows[text] for text in texts], np.int64)


class PairScorer:
    """Scores one stream.

    Args:
        encode: see ``Encode``.
        config: what a score is.
        progress: called with how many pairs more are embedded; a pair may be half done.
    """

    def __init__(
        self,
        encode: Encode,
        config: ScoreConfig | None = None,
        *,
        progress: Callable[[float], None] = lambda pairs: None,
    ) -> None:
        self.encode, self.config, self.progress = encode, config or ScoreConfig(), progress

    def score(self, pairs: Iterable[TextPair]) -> Iterator[ScoredPairs]:
        """Scores a stream, some pairs at a time, in order.

        Raises:
            DataError: a pair is of other languages than the first.
        """
        stream = _one_language_pair(pairs)
        fresh = list(itertools.islice(stream, self.config.window))
        if not fresh:
            return
        sides = _Side(self.encode, fresh[0].source_language), _Side(self.encode, fresh[0].target_language)
        window: list[TextPair] = []
        while fresh:
            window = fresh if self.config.margin == "absolute" else [*window, *fresh][-self.config.window :]
            new = [side.missing(texts) for side, texts in zip(sides, _texts(window), strict=True)]
            share = len(fresh) / max(1, sum(map(len, new)))
            for side, texts in zip(sides, new, strict=True):
                side.embed(texts, lambda count, share=share: self.progress(count * share))  # type: ignore[misc]
            if not any(new):
                self.progress(len(fresh))
            yield self._scored(fresh, sides)
            fresh = list(itertools.islice(stream, max(1, self.config.window // 2)))

    def _scored(self, pairs: list[TextPair], sides: tuple[_Side, _Side]) -> ScoredPairs:
        """Scores of some pairs among all texts of a window."""
        whole = np.array([bool(pair.source.strip() and pair.target.strip()) for pair in pairs])
        found = ScoredPairs(pairs, np.zeros(len(pairs)), np.zeros(len(pairs)), np.zeros(len(pairs), np.int64))
        if not whole.any():
            return found
        texts = _texts(itertools.compress(pairs, whole))
        x, y = (side.rows_of(some) for side, some in zip(sides, texts, strict=True))
        cosines = np.einsum("nd,nd->n", sides[0].vectors[x], sides[1].vectors[y], dtype=np.float64)
        found.cosines[whole] = found.scores[whole] = cosines
        if self.config.margin == "absolute":
            return found
        means = []
        hubs = []
        for own, side, other in ((x, *sides), (y, *sides[::-1])):
            queries, place = np.unique(own, return_inverse=True)
            similar, indices = exact_topk(side.vectors[queries], other.vectors, k=self.config.k)
            means.append(similar.double().mean(dim=1)[torch.from_numpy(place)])
            hubs.append(np.bincount(indices[:, 0].numpy(), minlength=len(other.rows)))
        scores = margin_score(torch.from_numpy(cosines), means[0], means[1], margin=self.config.margin)
        found.scores[whole] = torch.nan_to_num(scores).numpy()
        found.hubs[whole] = np.maximum(hubs[1][x], hubs[0][y])
        return found


def takes_advance(encode: Encode) -> bool:
    """Whether it tells of every batch; a portion may take minutes on a slow processor."""
    try:
        return "advance" in inspect.signature(encode).parameters
    except (TypeError, ValueError):  # of some callables nothing is known
        return False


def _texts(pairs: Iterable[TextPair]) -> tuple[list[str], list[str]]:
    listed = list(pairs)
    return [pair.source for pair in listed], [pair.target for pair in listed]


def _one_language_pair(pairs: Iterable[TextPair]) -> Iterator[TextPair]:
    first: tuple[str, str] | None = None
    for pair in pairs:
        found = pair.source_language, pair.target_language
        first = first or found
        if found != first:
            raise DataError(
                f"holds several language pairs, {'-'.join(first)} and then {'-'.join(found)}; score one at a time: name"
                " it with --source-language and --target-language"
            )
        yield pair
