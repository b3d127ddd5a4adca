"""The wrong neighbors of all models side by side, next to the models that were right."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.evaluation.report.grouping import Section
from interlingua.evaluation.scores import Example, TaskResult

_MOST = 2_000
"""Maximum number of queries on a page, divided among tasks and language pairs; each takes about
half a kilobyte."""

_Key = tuple[str, int, str, str]
_Item = dict[str, Any]


def wrong_items(found: Sequence[Section], most: int = _MOST) -> list[_Item]:
    """Return the queries that some model got wrong, as plain data.

    Args:
        found: tasks, in the page's order.
        most: maximum number of queries of all tasks together. It is divided equally among tasks,
            and among the language pairs of a task, as far as they have that many queries.

    Returns:
        For each query, its ``task`` (an index in ``found``), ``subset``, ``item``, ``language`` and
        texts, the texts ``found`` by the models that were wrong, and the models that were
        ``right``. For models in neither list, nothing was kept.
    """
    # alternate between the language pairs of each task, and then between tasks
    of_tasks = [_in_turn(_of_task(index, section)) for index, section in enumerate(found)]
    return _in_turn(of_tasks)[:most]


def _in_turn(queues: Sequence[Sequence[_Item]]) -> list[_Item]:
    """Return the first item of every queue, then the second of every queue, and so on."""
    return [item for turn in itertools.zip_longest(*queues) for item in turn if item is not None]


def _of_task(task: int, section: Section) -> list[list[_Item]]:
    """Return a queue of queries per language pair, in the order in which models kept them."""
    # of several seeds one is enough to read
    first_seeds = {column: results[0] for column, results in enumerate(section.chosen) if results}
    queues: dict[str, dict[_Key, _Item]] = {}
    # query -> the first of its places in the models' samples
    order: dict[_Key, int] = {}
    for column, result in first_seeds.items():
        for subset, examples in result.examples.items():
            queue = queues.setdefault(subset, {})
            for place, example in enumerate(examples):
                # queries of different models are the same if their keys are equal
                key = (subset, example.item, example.languages[0], example.query)
                # models keep samples in one order: a smaller place is an earlier query
                order[key] = min(place, order.get(key, place))
                item = queue.setdefault(key, _entry(task, subset, example))
                item["found"].append(_retrieved(column, example))
    found = []
    for queue in queues.values():
        found.append([queue[key] for key in sorted(queue, key=order.__getitem__)])
        for item in queue.values():
            item["right"] = _right_models(item, first_seeds)
    return found


def _retrieved(column: int, example: Example) -> dict[str, Any]:
    """Return the neighbor that a model retrieved instead."""
    expected: float | None = None
    if example.expected_score is not None:
        expected = round(example.expected_score, 4)
    return {
        "model": column,
        "text": example.retrieved,
        "language": example.languages[1],
        "score": round(example.retrieved_score, 4),
        "expected": expected,
    }


def _right_models(item: _Item, results: Mapping[int, TaskResult]) -> list[int]:
    """Return the models that found the expected text, as far as their items were kept.

    A model that kept no example of the query may have been wrong too, beyond the limit of its
    sample, so the missing example does not show that it was right.
    """
    wrong = {one["model"] for one in item["found"]}
    right = []
    for column, result in results.items():
        if column not in wrong and _was_right(result, item["subset"], item["item"]):
            right.append(column)
    return right


def _entry(task: int, subset: str, one: Example) -> _Item:
    return {
        "task": task,
        "subset": subset,
        "item": one.item,
        "language": one.languages[0],
        "query": one.query,
        "expected": one.expected,
        "measure": one.measure,
        "found": [],
    }


def _was_right(result: TaskResult, subset: str, item: int) -> bool:
    """Return whether the item has the best value; a mean of two directions must be best in both."""
    kept = result.items.get(subset)
    if kept is None or item >= len(kept.values):
        return False
    best = 1.0 if result.higher_is_better else 0.0
    return float(kept.values[item]) == best
