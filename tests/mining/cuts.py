"""A choice of pairs with all that any verb can choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from interlingua.config import Above
from interlingua.config.options import option
from interlingua.mining.pair_cut import PairCut
from interlingua.verbs.score import ScoreOptions


@dataclass(frozen=True)
class AnyCut(PairCut):
    """Options that select the pairs to keep."""

    probability: Annotated[float, Above(0, below=1)] | None = option(None, "See ``score``.")
    prior: Annotated[float, Above(0, below=1)] | None = option(None, "See ``score``.")
    like_laser: bool = option(False, "See ``mine``.")
    least_probability = ScoreOptions.least_probability
    known_prior = ScoreOptions.known_prior

    @property
    def is_like_laser(self):
        return self.like_laser
