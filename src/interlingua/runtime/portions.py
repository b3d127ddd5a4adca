"""Work cut into portions, and taken ahead of its results."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of ``size`` items, in order.

    The last one may be shorter. No more than one is in memory.
    """
    # One iterator for all of them: each islice goes on where the one before stopped.
    remaining = iter(items)
    while portion := list(itertools.islice(remaining, size)):
        yield portion


def taken_ahead(items: Iterable[T], count: int) -> Iterator[T]:
    """The items in order, each when ``count`` of them from it on have been taken.

    So of tasks that are submitted as they are taken, ``count`` are under way and no more.
    """
    waiting: deque[T] = deque()
    for item in items:
        waiting.append(item)
        if len(waiting) == count:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def ceil_div(n: int, m: int) -> int:
    """``n`` / ``m``, rounded up."""
    # // rounds down, so the negative is divided and negated again; floats are not exact.
    return -(-n // m)
