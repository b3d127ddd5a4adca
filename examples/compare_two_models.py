"""Compare two models on your own translations, with a test of significance.

    python examples/compare_two_models.py [MODEL [OTHER_MODEL]]

Without an argument the small model is compared with a class that knows only spelling: whatever has
a method ``encode`` can be measured.
"""

from __future__ import annotations

import shutil
import sys
import zlib
from collections.abc import Sequence

import numpy as np

import interlingua
import toy


class Spelling:
    """Counts of character trigrams, hashed into 512 columns."""

    def encode(self, texts: Sequence[str], **options: object) -> np.ndarray:
        """Return a row for each text."""
        table = np.zeros((len(texts), 512), dtype=np.float32)
        for row, text in enumerate(texts):
            for start in range(len(text) - 2):
                table[row, zlib.crc32(text[start : start + 3].lower().encode()) % 512] += 1
        return table


def main(model: str, other: str | None) -> None:
    """Measure both on German and Spanish translations of English, and print one table."""
    shutil.rmtree("toy/reports", ignore_errors=True)  # results of other runs would be columns too
    rows = toy.sentences(200, seed=41)
    toy.write_pairs(toy.FOLDER / "test-pairs", rows)

    options = {
        "suite": "tatoeba",
        "data": "toy/test-pairs",
        "output": "toy/reports",
        "check": False,
    }
    interlingua.evaluate(model, name="model", **options)
    interlingua.evaluate(other or Spelling(), name="other", **options)
    comparison = interlingua.compare(
        "toy/reports/results", by="languages", baseline="other", format="markdown"
    )
    print(comparison.text)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0] if given else str(toy.model()), given[1] if len(given) > 1 else None)
