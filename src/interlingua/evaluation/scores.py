"""The findings of a task: scores by language pair and by group, and their data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from jaxtyping import Bool, Float64
from numpy import ndarray


@dataclass(frozen=True, kw_only=True, slots=True)
class SubsetScores:
    """The scores of one language pair.

    Attributes:
        name: the pair as its file spells it, ``deu-eng``.
        languages: source and target, ``eng_Latn`` codes.
        pairs: sentence pairs scored.
        scores: metric -> fraction (0 to 1).
    """

    name: str
    languages: tuple[str, str]
    pairs: int
    scores: Mapping[str, float]


class Items(NamedTuple):
    """The values that the main metric of a subset was computed from, one per item in data order.

    The score is the mean of the values. If there is a ``gold`` value per item, the score is the
    Spearman correlation of the values with ``gold``, or the average precision of the values if
    ``gold`` is boolean. With ``weights``, the score is the sum of the values divided by the sum of
    the weights. Two encoders can be compared item by item.
    """

    values: Float64[ndarray, " n"]
    gold: Float64[ndarray, " n"] | Bool[ndarray, " n"] | None = None
    weights: Float64[ndarray, " n"] | None = None


class Example(NamedTuple):
    """An item that went wrong: something else was retrieved than expected.

    Attributes:
        item: its place in the subset's items, counted from 0.
        query: the text of the query.
        expected: the text that should have been retrieved.
        retrieved: the text retrieved instead.
        expected_score: of the expected text; None if it was not ranked.
        retrieved_score: of the retrieved text.
        languages: of query and retrieved text, ``eng_Latn`` codes.
        measure: name of the scores, ``cosine``.
    """

    item: int
    query: str
    expected: str
    retrieved: str
    expected_score: float | None
    retrieved_score: float
    languages: tuple[str, str]
    measure: str = "cosine"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """The result of a task.

    Attributes:
        task: the protocol, followed by the data set's name if that is not the protocol's own.
        version: of the protocol; results of unequal versions can't be compared.
        main_metric: the metric a table shows.
        higher_is_better: false for error rates.
        dataset: the folder's name.
        data_sha256: of the language pairs and texts that were scored.
        data_revision: the published revision, if the data were recognized.
        settings: the task's options, the requested languages among them.
        changed: the options that differ from the protocol's defaults.
        subsets: one entry per language pair.
        groups: group -> metric -> fraction; a group's name carries the count of its languages.
        seconds: wall time of the task.
        provenance: model, machine and versions; filled in by the suite.
        members: group -> the subsets in it, by name.
        notes: remarks for a reader of the numbers, such as queries that were counted as 0.
        items: subset -> inputs of its main score; not every task keeps them.
        examples: subset -> a sample of errors, for a reader; only tasks that retrieve have
            it.
        tables: name -> ``row-column`` -> fraction, such as an accuracy for every ordered pair of
            languages.
        shown: metrics next to the main one in a table of all tasks.
        lower_is_better: metrics for which lower is better, although higher is better for the main
            metric.
        mteb: mteb's own ``result`` and ``model_meta``, if mteb computed the scores; they are
            written to separate files.
    """

    task: str
    version: str
    main_metric: str
    higher_is_better: bool
    dataset: str
    data_sha256: str
    data_revision: str | None
    settings: Mapping[str, object]
    changed: tuple[str, ...]
    subsets: tuple[SubsetScores, ...]
    groups: Mapping[str, Mapping[str, float]]
    seconds: float
    provenance: Mapping[str, object] = field(default_factory=dict)
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tables: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    lower_is_better: tuple[str, ...] = ()
    # not compared, as == of arrays has no truth value
    items: Mapping[str, Items] = field(default_factory=dict, compare=False, repr=False)
    examples: Mapping[str, tuple[Example, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    mteb: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def main_score(self) -> float:
        """The unweighted mean of the main metric over all language pairs."""
        return mean_scores(self.subsets)[self.main_metric]

    def is_better_high(self, metric: str) -> bool:
        """Return whether higher values of a metric are better."""
        return self.higher_is_better and metric not in self.lower_is_better


def mean_scores(subsets: Sequence[SubsetScores], *, by_pairs: bool = False) -> dict[str, float]:
    """Compute the mean of every metric over language pairs.

    Args:
        subsets: at least one.
        by_pairs: weight each language pair by its number of sentence pairs, which pools the errors;
            otherwise, all weights are equal.
    """
    weights = [1] * len(subsets)
    if by_pairs:
        weights = [subset.pairs for subset in subsets]
    total = sum(weights)

    def mean(metric: str) -> float:
        weighted = zip(weights, subsets, strict=True)
        return sum(weight * subset.scores[metric] for weight, subset in weighted) / total

    # all subsets of a task have the same metrics
    return {metric: mean(metric) for metric in subsets[0].scores}


def with_shared_metrics(subsets: Sequence[SubsetScores]) -> list[SubsetScores]:
    """Return the subsets with only the metrics that all of them have, so that means cover all."""
    shared = set.intersection(*(set(subset.scores) for subset in subsets))
    in_order = [metric for metric in subsets[0].scores if metric in shared]
    found = []
    for subset in subsets:
        found.append(replace(subset, scores={metric: subset.scores[metric] for metric in in_order}))
    return found
