"""The base of the checks that list differences between the two texts of a pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua.mining.checks import Check, Pairs

_SHOWN = 4
"""Maximum number of differences that a reason names."""


class PairRule(Check):
    """A check that counts differences and names them; a single difference rejects a pair.

    Attributes:
        signs: the rule concerns only texts with at least one of these characters; empty = any text.
    """

    default_limit = 1
    signs: ClassVar[str] = ""

    def differences(self, source: str, target: str) -> Sequence[str]:
        """Return the differences, each in a few words."""
        raise NotImplementedError

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Count the differences of each pair."""
        found = np.zeros(len(pairs.sources))
        signs = self.signs
        for row, (source, target) in enumerate(zip(pairs.sources, pairs.targets, strict=True)):
            # Most texts have no such sign, and looking for one is quicker than any pattern.
            if not signs or any(sign in source or sign in target for sign in signs):
                found[row] = len(self.differences(source, target))
        return found

    def explain(self, source: str, target: str) -> str:
        """Name the first differences."""
        found = self.differences(source, target)
        more = ["..."] if len(found) > _SHOWN else []
        return ", ".join([*found[:_SHOWN], *more])


def one_sided(source: Counter[str], target: Counter[str]) -> list[str]:
    """Return the signs of only one side, in words; a sign that is missing twice is named twice."""
    missing = [f"{sign} is missing" for sign in (source - target).elements()]
    added = [f"{sign} is not in the source" for sign in (target - source).elements()]
    return missing + added
