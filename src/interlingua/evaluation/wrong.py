"""The wrong neighbors of all models side by side: who retrieved what, and who found the right
text.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from interlingua.evaluation.grouping import Section
from interlingua.evaluation.scores import Example, TaskResult

MOST = 2_000
"""Queries on a page at most, shared out among tasks and language pairs; about half a kilobyte
each."""

_Key = tuple[str, int, str, str]
_Item = dict[str, Any]


def wrong_items(found: Sequence[Section], most: int = MOST) -> list[_Item]:
    """The queries that some model got wrong, as plain data.

    Args:
        found: tasks, in the page's order.
        most: of all tasks together; of each task, and of each of its language pairs, as many as of
            the others, as far as it has them.

    Returns:
        Per query its ``task`` (a place in ``found``), ``subset``, ``item``, ``language``, texts,
        what was ``found`` by each model that was wrong, and which models were ``right``; of those
        in neither list nothing was kept.
    """
    return _in_turn([_in_turn(_of_task(place, section)) for place, section in enumerate(found)])[
        :most
    ]


def _in_turn(queues: Sequence[Sequence[_Item]]) -> list[_Item]:
    """The first of every queue, then the second of every queue, ..."""
    return [item for turn in itertools.zip_longest(*queues) for item in turn if item is not None]


def _of_task(place: int, section: Section) -> list[list[_Item]]:
    """A queue of queries per language pair, in the order in which a model kept them."""
    queues: dict[str, dict[_Key, _Item]] = {}
    order: dict[_Key, int] = {}
    for column, results in enumerate(section.chosen):
        for result in results[:1]:  # of several seeds one is enough to read
            for subset, examples in result.examples.items():
                queue = queues.setdefault(subset, {})
                for kept, one in enumerate(examples):
                    key = _key(subset, one)
                    order[key] = min(kept, order.get(key, kept))
                    item = queue.setdefault(key, _entry(place, subset, one))
                    item["found"].append(
                        {
                            "model": column,
                            "text": one.retrieved,
                            "language": one.languages[1],
                            "score": round(one.retrieved_score, 4),
                            "expected": None
                            if one.expected_score is None
                            else round(one.expected_score, 4),
                        }
                    )
    found = []
    for queue in queues.values():
        found.append([queue[key] for key in sorted(queue, key=order.__getitem__)])
        for item in queue.values():
            wrong = {one["model"] for one in item["found"]}
            item["right"] = [
                column
                for column, results in enumerate(section.chosen)
                if results
                and column not in wrong
                and _was_right(results[0], item["subset"], item["item"])
            ]
    return found


def _key(subset: str, one: Example) -> _Key:
    return subset, one.item, one.languages[0], one.query


def _entry(place: int, subset: str, one: Example) -> _Item:
    return {
        "task": place,
        "subset": subset,
        "item": one.item,
        "language": one.languages[0],
        "query": one.query,
        "expected": one.expected,
        "measure": one.measure,
        "found": [],
    }


def _was_right(result: TaskResult, subset: str, item: int) -> bool:
    """Whether the item's value is the best there is, which for a mean of directions means both."""
    kept = result.items.get(subset)
    if kept is None or item >= len(kept.values):
        return False
    return float(kept.values[item]) == (1.0 if result.higher_is_better else 0.0)
