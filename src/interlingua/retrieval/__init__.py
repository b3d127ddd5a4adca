"""Search: the exact k nearest vectors (``exact_topk``), and indexes over passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.retrieval.topk import Neighbors, exact_topk, mutual_topk

__all__ = ["Neighbors", "exact_topk", "mutual_topk"]


def __getattr__(name: str) -> Any:
    """Import the search only when it is first used, because this also imports torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from interlingua.retrieval import topk

    return getattr(topk, name)
