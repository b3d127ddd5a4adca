"""A calibration by hand."""

from __future__ import annotations

import dataclasses

from interlingua.mining.calibration.calibration import Bin, Calibration, Cut


def calibration(**changes):
    """Build a curve from odds of -3 at a score of 1 to 3 at 1.2, with changes."""
    plain = Calibration(
        source_language="zho_Hans",
        target_language="eng_Latn",
        model="model",
        scoring="mine ratio k=4 max",
        basis="probes",
        shape="logistic",
        scores=(1.0, 1.2),
        log_odds=(-3.0, 3.0),
        fitted_prior=0.5,
        prior=0.5,
        pairs=100,
        measures={"ece": 0.01},
        bins=(Bin(0.1, 0.2, 50, 1.0),),
        cuts=(Cut(0.9, 1.15, 30, 27.5),),
    )
    return dataclasses.replace(plain, **changes)
