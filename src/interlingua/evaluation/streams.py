"""Vectors of any number of texts: embedded a portion at a time into a file on disk, read as a memory map."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.errors import DataError
from interlingua.evaluation.metrics.retrieval import normalized

T = TypeVar("T")
PORTION_TEXTS = 8192


def stream_vectors(
    encode: Callable[[Sequence[T]], Float32[ndarray, "n d"]],
    texts: Iterable[T],
    *,
    normalize: bool = False,
    portion: int = PORTION_TEXTS,
) -> Float32[ndarray, "n d"]:
    """Embeds texts that may not fit into memory, nor their vectors.

    Args:
        encode: gives the vectors of a portion.
        texts: read once; what ``encode`` takes.
        normalize: scale each vector to length 1.
        portion: texts held at once.

    Returns:
        A read-only memory map of a file that is gone with it.

    Raises:
        DataError: there are no texts.
    """
    rows, dim, left = 0, 0, iter(texts)
    with tempfile.TemporaryFile(prefix="interlingua-") as file:
        while chunk := list(itertools.islice(left, portion)):
            vectors = np.asarray(encode(chunk), dtype=np.float32)
            dim = vectors.shape[1]
            file.write(np.ascontiguousarray(normalized(vectors) if normalize else vectors).data)
            rows += len(chunk)
        if not rows:
            raise DataError("no texts to embed; the file is empty")
        file.flush()
        return np.memmap(file, dtype=np.float32, mode="r", shape=(rows, dim))
