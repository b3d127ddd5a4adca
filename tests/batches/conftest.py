"""Small token stores."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.batches.records import TokenStore, TokenStoreWriter

COUNTS = {("deu_Latn", "eng_Latn"): 120, ("eng_Latn", "jpn_Jpan"): 37, ("eng_Latn", "kat_Geor"): 5}


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """162 pairs in three language pairs.

    The tokens of a row name its pair, its side and the row itself.
    """
    path = tmp_path_factory.mktemp("store") / "train"
    draw = np.random.default_rng(0)
    with TokenStoreWriter(path, vocabulary_size=70_000) as writer:
        for index, (pair, count) in enumerate(COUNTS.items()):
            sides = [
                [
                    [1000 * index + 300 * side + row] * int(draw.integers(1, 9))
                    for row in range(count)
                ]
                for side in (0, 1)
            ]
            writer.append(pair, *sides)
    return TokenStore.open(path)
