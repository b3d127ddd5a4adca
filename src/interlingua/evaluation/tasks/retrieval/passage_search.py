"""The best passages of every question over one or several pools of embedded passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.evaluation.metrics.ranking import DEPTH, Qrels, Run, top
from interlingua.evaluation.streams import KeptVectors
from interlingua.retrieval.topk.exact import Neighbors, exact_topk


class EmbeddedPassages(NamedTuple):
    """The passages of a language, embedded.

    Attributes:
        ids: of the passages.
        vectors: (n, d), mapped or read from where the encoder keeps them.
        digest: of the passages.
    """

    ids: Sequence[str]
    vectors: Float32[ndarray, "n d"] | KeptVectors
    digest: str


class Questions(NamedTuple):
    """The questions of one language that are scored.

    Attributes:
        name: of their set.
        language: its code.
        judged: question -> passage of the set -> relevance.
        texts: texts of the judged questions that have one.
        vectors: of the texts, in their order.
    """

    name: str
    language: str
    judged: Qrels
    texts: Mapping[str, str]
    vectors: Float32[ndarray, "n d"]


def exact_nearest(queries: Float32[ndarray, "n d"], passages: Any) -> Neighbors:
    """Return the 100 nearest passages of each query; passages as in ``EmbeddedPassages``."""
    return exact_topk(queries, passages, k=DEPTH)


def search_pools(
    questions: Questions,
    pools: Mapping[str, EmbeddedPassages],
    nearest: Callable[[Any, Any], Neighbors] = exact_nearest,
) -> Run:
    """Return the best 100 passages over the pools for every question with a text.

    A pool's name, if it has one, is prefixed to its ids.
    """
    if not questions.texts:
        return {}
    found = [nearest(questions.vectors, pool.vectors) for pool in pools.values()]
    scores = np.concatenate([one.similarities.numpy() for one in found], axis=1)
    rows = np.concatenate([one.indices.numpy() for one in found], axis=1)
    prefixes = [f"{name}/" if name else "" for name in pools]
    ids = [pool.ids for pool in pools.values()]
    # column c of the joined tables is of pool owners[c]
    owners = np.repeat(np.arange(len(ids)), [one.indices.shape[1] for one in found])
    # the lowest of each query's best 100 scores: ids are made only for candidates that reach it
    edge = max(0, scores.shape[1] - DEPTH)
    least = np.partition(scores, edge, axis=1)[:, edge]
    run: dict[str, dict[str, float]] = {}
    for number, query in enumerate(questions.texts):
        # keep all candidates that share the last place; ``top`` then takes those with the later ids
        kept = np.flatnonzero(scores[number] >= least[number])
        candidates = zip(
            owners[kept].tolist(),
            rows[number, kept].tolist(),
            scores[number, kept].tolist(),
            strict=True,
        )
        run[query] = top(
            {prefixes[owner] + ids[owner][row]: score for owner, row, score in candidates}
        )
    return run
