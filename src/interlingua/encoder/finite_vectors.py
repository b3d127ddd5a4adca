"""Checks of vectors: refusal of NaN and infinity, and a warning of zeros."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.errors import DataError, InterlinguaError

Error = Callable[[str], InterlinguaError]
log = logging.getLogger("interlingua")
_IS_SILENT = ContextVar("zeros_unreported", default=False)


def check_finite(
    vectors: Float32[ndarray, "n d"], name: Callable[[int], str], *, error: Error = DataError
) -> None:
    """Check that all numbers are finite.

    Args:
        vectors: the output of an encoder.
        name: returns the name of a row for the message, e.g. the text that was embedded.
        error: class to raise.

    Raises:
        InterlinguaError: a row is not finite; the message names the first one.
    """
    finite = np.isfinite(vectors).all(axis=1)
    if finite.all():
        return
    broken = int(np.count_nonzero(~finite))
    count = "" if broken == 1 else f" and {broken - 1:,} more"
    # argmin of booleans is the first False.
    raised = error(
        f"the encoder returned NaN or infinity for {name(int(np.argmin(finite)))}{count}; pass"
        " --dtype float32, remove the text, or use other vectors"
    )
    # A caller that tries other settings recognizes this error by the attribute.
    raised.vectors_not_finite = True
    raise raised


@contextlib.contextmanager
def zeros_unreported() -> Iterator[None]:
    """Silence ``warn_of_zeros``, for texts that are not the user's."""
    token = _IS_SILENT.set(True)
    try:
        yield
    finally:
        _IS_SILENT.reset(token)


def warn_of_zeros(
    vectors: Float32[ndarray, "n d"], name: Callable[[int], str], *, origin: str
) -> bool:
    """Warn of vectors of zeros, which have a cosine of 0 with everything.

    Args:
        vectors: finite ones.
        name: returns the name of a row for the message, such as its text.
        origin: source of the vectors.

    Returns:
        True if it has warned.
    """
    if _IS_SILENT.get():
        return False
    is_zero = ~vectors.any(axis=1)
    if not is_zero.any():
        return False
    log.warning(
        "%s: %s of %s vectors are zeros, the first for %s; their cosine with any text is 0:"
        " check the model, or remove these texts",
        *(origin, f"{int(is_zero.sum()):,}", f"{len(vectors):,}", name(int(np.argmax(is_zero)))),
    )
    return True
