"""Compare the kind of held-out texts with that of the texts that are mined or filtered.

Scores are learned from held-out translations. If these are much shorter or longer than the other
texts, or in other scripts, their scores differ too, and the calibration is less accurate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua.corpus.cleaning.codepoints import encode_codepoints, join_lines
from interlingua.corpus.cleaning.scripts import OTHER, script_numbers

COMPARED = 2000
"""Maximum number of texts of a side that are compared."""
MOST_LENGTHS = 1.5
"""Largest accepted ratio of the two median lengths."""
MOST_LETTERS = 0.15
"""Largest accepted share of letters in other scripts."""


def differences_of_kind(
    languages: tuple[str, str],
    held_out: tuple[Sequence[str], Sequence[str]],
    others: tuple[Sequence[str], Sequence[str]],
) -> list[str]:
    """Return warnings, one for each side and kind of difference.

    Args:
        languages: of source and target.
        held_out: texts of either side.
        others: texts of either side to compare them with.
    """
    lines = []
    for language, known, texts in zip(languages, held_out, others, strict=True):
        if not known or not texts:
            continue
        lengths = [float(np.median(list(map(len, side)))) for side in (known, texts)]
        if max(lengths) > MOST_LENGTHS * max(1.0, min(lengths)):
            lines.append(
                f"warning: the {language or 'held-out'} texts used for calibration have a median"
                f" length of {lengths[0]:.0f} characters, your texts {lengths[1]:.0f}; the"
                " calibration is valid only for texts of the same kind"
            )
        apart = 0.5 * float(np.abs(_scripts(known) - _scripts(texts)).sum())
        if apart > MOST_LETTERS:
            lines.append(
                f"warning: {apart:.0%} of the letters of the {language or 'held-out'} texts used"
                " for calibration are in other scripts than your texts; the calibration is valid"
                " only for texts of the same kind"
            )
    return lines


def _scripts(texts: Sequence[str]) -> Float64[ndarray, " scripts"]:
    """Compute the share of the letters in each script."""
    numbers = script_numbers()[encode_codepoints(join_lines(texts))]
    # Script 0 contains all characters that are no letters.
    counts = np.bincount(numbers, minlength=OTHER + 1)[1:].astype(np.float64)
    return np.asarray(counts / max(1.0, counts.sum()))
