"""How good links between sentences are: strict and lax precision, recall and F1 as vecalign's ``score.py`` has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import NamedTuple

from interlingua.mining.alignment import Link

Sides = tuple[tuple[int, ...], tuple[int, ...]]


class LinkScores(NamedTuple):
    """Shares, 0 to 1."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """What links have in common with the right ones; counts of several documents add up.

    A link is strictly right if it is among the gold links. It is right in the lax sense also if one of its source
    sentences and one of its target sentences are in one gold link. Gold links that leave a sentence alone are looked
    for by precision and not by recall.

    Attributes:
        links: found, each once, sentences left alone too.
        strict: of these, right.
        lax: of these, right in the lax sense.
        gold: links with sentences on both sides.
        gold_strict: of these, found.
        gold_lax: of these, found in the lax sense.
    """

    links: int = 0
    strict: int = 0
    lax: int = 0
    gold: int = 0
    gold_strict: int = 0
    gold_lax: int = 0

    @classmethod
    def of(cls, links: Iterable[Link], gold: Iterable[Link]) -> LinkCounts:
        """Compares the links of a document with the right ones."""
        found, right = ({link[:2] for link in side if link.source or link.target} for side in (links, gold))
        joining = {link for link in found if all(link)}, {link for link in right if all(link)}
        return cls(*_agreement(found, right), *_agreement(joining[1], joining[0]))

    def __add__(self, other: LinkCounts) -> LinkCounts:
        return LinkCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def strict_scores(self) -> LinkScores:
        """By equal links."""
        return _scores(self.strict, self.links, self.gold_strict, self.gold)

    @property
    def lax_scores(self) -> LinkScores:
        """By links that overlap on both sides."""
        return _scores(self.lax, self.links, self.gold_lax, self.gold)


def _agreement(links: set[Sides], right: set[Sides]) -> tuple[int, int, int]:
    """How many links, how many of them are right, and how many overlap with a right one."""
    targets: dict[int, set[int]] = defaultdict(set)
    for source, target in right:
        for number in source:
            targets[number].update(target)
    strict = len(links & right)
    lax = sum(any(targets[number] & set(target) for number in source) for source, target in links - right)
    return len(links), strict, strict + lax


def _scores(right: int, links: int, found: int, gold: int) -> LinkScores:
    precision = right / links if links else 0.0
    recall = found / gold if gold else 0.0
    return LinkScores(precision, recall, 2 * precision * recall / (precision + recall) if right and found else 0.0)
