"""Random numbers by name: every draw is a pure function of (seed, purpose, step).

No draw depends on earlier draws, so parts of a run can be added, left out or computed by other
processes without changing the numbers of the other parts.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream_key(seed: int, *purpose: str | int) -> int:
    """Compute a 128-bit key of a seed and a purpose, e.g. ``stream_key(7, "dropout", step)``.

    The key is a hash, so streams of different purposes are independent, and no stream depends on
    the version of a library.
    """
    # The name includes the types, because 1 and "1" are different purposes.
    name = "\0".join(f"{type(part).__name__}:{part}" for part in (seed, *purpose))
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest(), "little")


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the NumPy generator (Philox) of a named stream."""
    return np.random.Generator(np.random.Philox(key=stream_key(seed, *purpose)))


def seed_for(seed: int, *purpose: str | int) -> int:
    """Return the seed in [0, 2^63) of a named stream, for example for ``torch.manual_seed``."""
    return stream_key(seed, *purpose) >> 65
