import numpy as np
import pytest

from interlingua.preparation import shards
from interlingua.preparation.shards import DROPPED_FATES, Fate, Shard


@pytest.fixture
def shard(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_BLOCK_ROWS", 2)
    found = Shard(tmp_path, 7, 0, ("deu_Latn", "eng_Latn"))
    for first in (0, 3):
        rows = range(first, first + 3)
        text = "".join(f"s{i}\u2028\tt{i}\n" for i in rows).encode()
        found.append(
            text,
            np.array(rows, np.uint64),
            np.array(rows, np.uint64) + np.uint64(10),
            np.array(rows, np.uint8),
            np.array([np.nan if row % 2 else row / 2 for row in rows]),
        )
    found.fates = np.zeros(6, np.uint8)
    return found


def test_keys_and_words_come_back_in_order(shard):
    assert shard.rows == 6
    assert shard.source_keys.tolist() == [0, 1, 2, 3, 4, 5]
    assert shard.target_keys.tolist() == [10, 11, 12, 13, 14, 15]
    assert shard.words.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(shard.scores, [0, np.nan, 1, np.nan, 2, np.nan])


@pytest.mark.parametrize("chosen", [[], [0], [5], [1, 2, 3], [0, 5], [0, 1, 2, 3, 4, 5]])
def test_blocks_give_the_marked_rows(shard, chosen):
    mask = np.isin(np.arange(6), chosen)
    rows = [row for block in shard.blocks(mask) for row in zip(*block, strict=True)]
    assert rows == [(f"s{i}\u2028", f"t{i}") for i in chosen]


def test_fates(shard):
    shard.fates[1:3] = Fate.heldout
    assert (shard.count(Fate.train), shard.count(Fate.heldout)) == (4, 2)
    assert not {Fate.train, Fate.valid, Fate.heldout} & set(DROPPED_FATES)
