"""A random sample of a stream of any length; memory holds only the sample."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def reservoir(items: Iterable[T], size: int, *, seed: int) -> list[T]:
    """Draw a uniform sample of the items; Li (1994), algorithm L.

    Every item is equally likely to be in the sample. The function draws a few numbers for each item
    that is replaced, and none for skipped items. The result depends only on the items and the seed.

    Args:
        items: read once.
        size: of the sample, at least 1; if there are fewer items, all are returned.
        seed: of the draw.
    """
    stream = iter(items)
    sample = list(itertools.islice(stream, size))
    draw = random.Random(seed)
    weight = 1.0
    # The weight W is the largest of ``size`` random numbers below the last W. An item enters the
    # sample if its random number is below W, so the number of skipped items is geometric.
    while len(sample) == size:
        weight *= math.exp(math.log(1 - draw.random()) / size)
        skipped = math.floor(math.log(1 - draw.random()) / math.log(1 - weight))
        found = list(itertools.islice(stream, skipped, skipped + 1))
        if not found:
            break
        sample[draw.randrange(size)] = found[0]
    return sample
