"""Encode with LASER2 (Heffernan et al. 2022): the rows "LASER2" of EMS's Tables IV to VI.

    pip install laser_encoders
    interlingua evaluate experiments.peers.laser2:embed --backend function --suite tatoeba

The weights are downloaded with the first text. One encoder and one vocabulary serve all languages.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def model() -> Any:
    """Load the model once."""
    from laser_encoders import LaserEncoderPipeline

    return LaserEncoderPipeline(laser="laser2")


def embed(texts: list[str]) -> Any:
    """Return a vector of width 1,024 for each text."""
    return model().encode_sentences(texts)
