"""Similarity sets with the cosines in their texts."""

from __future__ import annotations

import numpy as np

GOLD = [0.0, 1.2, 2.5, 2.5, 4.0, 5.0]
COSINES = [0.11, 0.05, 0.4, 0.62, 0.62, 0.93]


class Angles:
    """The second text of a pair, ``b 0.62``, has the cosine it says with any text ``a``."""

    def __init__(self):
        self.languages = []

    def encode(self, texts, *, language=None):
        self.languages.append(language)
        cosines = [float(text.split()[1]) if text.startswith("b") else 1.0 for text in texts]
        return np.array([[c, np.sqrt(1 - c * c)] for c in cosines], dtype=np.float32) * 3


def rows(cosines=COSINES, gold=GOLD, letters="ab"):
    return "".join(
        f"{g}\t{letters[0]} x\t{letters[1]} {c}\n" for g, c in zip(gold, cosines, strict=True)
    )


def protocol_sized(folder, names):
    """Write sets of 250 pairs, like STS17's.

    The k-th set's cosines agree with the judgments but for k swaps.
    """
    folder.mkdir()
    for k, name in enumerate(names):
        cosines = np.linspace(0, 0.99, 250)
        cosines[: 2 * k] = cosines[: 2 * k][::-1]
        (folder / f"{name}.tsv").write_text(rows(cosines, np.linspace(0, 5, 250).round(4)))
    return folder


def write_sts17(folder):
    folder.mkdir()
    for name in ("track1.ar-ar", "track2.ar-en", "track6.tr-en", "track4b.es-en"):
        (folder / f"{name}.tsv").write_text(rows())
    return folder
