"""Which scored pairs are kept: the options that ``mine`` and ``score`` have in common.

The options classes of the verbs inherit them, and the filter receives such options. This module
loads neither numpy nor torch, as ``--help`` imports it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from interlingua.config import Above
from interlingua.config.options import FILTERING, Options, option
from interlingua.errors import ConfigError
from interlingua.storage.files import PathLike


@dataclass(frozen=True)
class PairCut(Options):
    """Options that select the pairs to keep; without any option, all pairs are kept."""

    threshold: float | None = option(
        None,
        "Minimum score of a pair, in the unit of the margin.",
        group=FILTERING,
    )
    precision: Annotated[float, Above(0, 1)] | None = option(
        None,
        "Keep as many pairs as possible with this expected precision, greater than 0 and at"
        " most 1; needs a calibration.",
        group=FILTERING,
    )

    glossary: PathLike | None = option(
        None,
        "Glossary of terms and their translations, .tbx or a table of two columns. The"
        " check glossary compares pairs with it; --drop glossary rejects pairs by this check.",
        group=FILTERING,
        kind=Path,
        reads="file",
    )

    def check_cut(self) -> None:
        """Check the options.

        Raises:
            ConfigError: they exclude each other, or the threshold is not a number.
        """
        if self.threshold is not None and self.precision is not None:
            raise ConfigError("--threshold and --precision cannot be combined; remove one")
        if self.threshold is not None and math.isnan(self.threshold):
            raise ConfigError("--threshold: expected a number, such as 1.05, found NaN")

    @property
    def least_score(self) -> float | None:
        """The threshold, unless a subclass uses the threshold of LASER's script."""
        return self.threshold

    @property
    def least_probability(self) -> float | None:
        """Minimum probability of a pair, which only ``score`` has as an option."""
        return None

    @property
    def known_prior(self) -> float | None:
        """Share of right pairs, an option of ``score`` only; None = estimated from the scores."""
        return None

    @property
    def is_like_laser(self) -> bool:
        """True if a score equal to the threshold is cut too; an option of ``mine`` only."""
        return False

    @property
    def needs_calibration(self) -> list[str]:
        """Names of the options that are set and require probabilities."""
        values = {
            "probability": self.least_probability,
            "precision": self.precision,
            "prior": self.known_prior,
        }
        return [name for name, value in values.items() if value is not None]
