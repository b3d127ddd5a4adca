"""Iteration over portions of work, some of them submitted ahead of their results."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of ``size`` items, in order.

    The last list may be shorter. Only one list at a time is in memory.
    """
    # One iterator for all of them: each islice continues where the previous one stopped.
    remaining = iter(items)
    while portion := list(itertools.islice(remaining, size)):
        yield portion


def taken_ahead(items: Iterable[T], count: int) -> Iterator[T]:
    """Yield the items in order; take each item and the next ``count - 1`` before yielding it.

    So if tasks are submitted when they are taken, at most ``count`` tasks run at a time.
    """
    waiting: deque[T] = deque()
    for item in items:
        waiting.append(item)
        if len(waiting) == count:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def ceil_div(n: int, m: int) -> int:
    """Return ``n`` / ``m``, rounded up."""
    # // rounds down, so divide the negative and negate the result; floats would not be exact.
    return -(-n // m)
