"""Random vectors of length 1, and the margins as the paper writes them."""

from __future__ import annotations

import numpy as np

MARGINS = {"ratio": lambda a, b: a / b, "distance": lambda a, b: a - b, "absolute": lambda a, b: a}


def unit(rng, n, d=5):
    rows = rng.standard_normal((n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
