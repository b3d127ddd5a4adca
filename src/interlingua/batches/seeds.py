"""Random numbers by name: every draw is a pure function of (seed, purpose, step), never of what was
drawn before.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream_key(seed: int, *purpose: str | int) -> int:
    """128-bit key of the stream that belongs to a seed and a purpose, e.g.
    ``stream_key(7, "dropout", step)``.

    The key is a hash, so streams of different purposes are independent and none depends on the
    library's version.
    """
    name = "\0".join(f"{type(part).__name__}:{part}" for part in (seed, *purpose))
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest(), "little")


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """NumPy generator (Philox) of a named stream."""
    return np.random.Generator(np.random.Philox(key=stream_key(seed, *purpose)))


def seed_for(seed: int, *purpose: str | int) -> int:
    """Seed in [0, 2^63) of a named stream, for generators that take one integer
    (``torch.manual_seed``).
    """
    return stream_key(seed, *purpose) >> 65
