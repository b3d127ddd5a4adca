"""Work cut into portions."""

from __future__ import annotations

import itertools
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


def ceil_div(n: int, m: int) -> int:
    """``n`` / ``m``, rounded up."""
    # // rounds down, so the negative is divided and negated again; floats are not exact.
    return -(-n // m)
