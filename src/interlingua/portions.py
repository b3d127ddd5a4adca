"""Work cut into portions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of so many items, in order.

    The last one may be shorter. No more than one is in memory.
    """
    left = iter(items)
    while portion := list(itertools.islice(left, size)):
        yield portion


def ceil_div(n: int, m: int) -> int:
    """N / m, rounded up."""
    return -(-n // m)
