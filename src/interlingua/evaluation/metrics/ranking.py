"""Metrics of ranked passages as trec_eval computes them, fusion of rankings, and TREC run files.

A run is query -> passage -> score, qrels are query -> passage -> relevance. Among passages of equal
score, trec_eval ranks the largest id first, and it compares scores in single precision. This module
does the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from interlingua.errors import DataError, import_extra
from interlingua.storage.files import atomic_write

Run = Mapping[str, Mapping[str, float]]
Qrels = Mapping[str, Mapping[str, int]]

DEPTH = 100
"""Passages kept per query."""
METRICS = ("mrr_at_100", "recall_at_100", "ndcg_at_10")
RRF_K = 60


def ranking_metrics(qrels: Qrels, run: Run) -> dict[str, dict[str, float]]:
    """Compute MRR@100, Recall@100 and nDCG@10 of every judged query with ir-measures.

    A missing ranking counts as 0.

    Args:
        qrels: judged queries, each with a relevant passage.
        run: rankings, of which only the first 100 passages count.

    Returns:
        metric -> query -> fraction, queries in the order of the qrels.

    Raises:
        MissingExtraError: ir-measures is not installed.
    """
    ir_measures = import_extra("ir_measures", package="ir-measures", extra="retrieval")
    # RR of a run of 100 passages is RR@100; ir-measures passes RR@100 itself to another tool, which
    # orders ties in the opposite way
    theirs = (ir_measures.RR, ir_measures.R @ DEPTH, ir_measures.nDCG @ 10)
    measures = dict(zip(theirs, METRICS, strict=True))
    # queries without a ranking count as 0; ir-measures leaves them out
    values: dict[str, dict[str, float]] = {metric: dict.fromkeys(qrels, 0.0) for metric in METRICS}
    cut = {query: top(run[query]) for query in qrels if run.get(query)}
    judged = {query: dict(passages) for query, passages in qrels.items()}
    for found in ir_measures.pytrec_eval.iter_calc(list(measures), judged, cut):
        values[measures[found.measure]][found.query_id] = float(found.value)
    return values


def top(scores: Mapping[str, float], depth: int = DEPTH) -> dict[str, float]:
    """Return the best passages of a query, best first, in trec_eval's order."""
    # trec_eval compares in single precision, and of equal scores the larger id comes first
    single = np.fromiter(scores.values(), np.float32, len(scores)).tolist()
    ordered = sorted(zip(single, scores, strict=True), reverse=True)
    return {passage: scores[passage] for _, passage in ordered[:depth]}


def reciprocal_rank_fusion(
    runs: Sequence[Run], *, k: int = RRF_K, depth: int = DEPTH
) -> dict[str, dict[str, float]]:
    r"""Join rankings by only their ranks, Cormack et al. 2009: $\sum_r 1 / (k + rank_r)$.

    Args:
        runs: of any queries; a ranking adds 0 to passages that it lacks.
        k: constant that reduces the advantage of the first ranks.
        depth: passages kept per query.
    """
    fused: dict[str, dict[str, float]] = {}
    for run in runs:
        for query, scores in run.items():
            sums = fused.setdefault(query, {})
            for rank, passage in enumerate(top(scores, len(scores)), 1):
                sums[passage] = sums.get(passage, 0.0) + 1 / (k + rank)
    return {query: top(sums, depth) for query, sums in fused.items()}


def write_trec_run(path: Path, run: Run, *, tag: str) -> None:
    """Write a run as trec_eval reads it: query, Q0, passage, rank, score, tag.

    Raises:
        DataError: an id holds white space, which the format can't carry.
    """
    with atomic_write(path) as file:
        for query, scores in run.items():
            for rank, (passage, score) in enumerate(top(scores).items(), 1):
                for name in (query, passage):
                    if not name or any(map(str.isspace, name)):
                        raise DataError(
                            f"the id {name!r} cannot be written to a TREC run; use ids that are"
                            " not empty and contain no spaces"
                        )
                file.write(f"{query} Q0 {passage} {rank} {score:.9g} {tag}\n")
