"""Random vectors in float64, and what a loop makes of two of them."""

from __future__ import annotations

import math

import torch


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def embeddings(rows, *, dim=5, seed=0):
    return draw(rows, dim, seed=seed)


def cosine(u, v):
    dot = sum(a * b for a, b in zip(u.tolist(), v.tolist(), strict=True))
    return dot / (math.hypot(*u.tolist()) * math.hypot(*v.tolist()))
