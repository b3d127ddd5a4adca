import numpy as np
import pytest

from interlingua.corpus.near_duplicates import NearDuplicates
from interlingua.prepare.progress import Stages
from interlingua.prepare.selection import drop_near_duplicates
from interlingua.prepare.shards import Fate, Shard


def shard_of(folder, number, rows):
    shard = Shard(folder, number, 0, ("deu_Latn", "eng_Latn"))
    keys = np.arange(len(rows), dtype=np.uint64)
    shard.append(
        "".join(f"{a}\t{b}\n" for a, b in rows).encode(), keys, keys, np.zeros(len(rows), np.uint8)
    )
    shard.fates = np.zeros(len(rows), np.uint8)
    return shard


def test_the_later_pair_goes_across_shards_and_dropped_rows_count_for_nothing(tmp_path):
    german, english = (
        "der alte Mann ging langsam nach Hause",
        "the old man walked home slowly that evening",
    )
    first = shard_of(tmp_path, 0, [("etwas anderes", "something else"), (german, english)])
    second = shard_of(
        tmp_path,
        1,
        [(german + "!", english + "s"), ("noch etwas", "yet another"), (german, english + "t")],
    )
    second.fates[0] = Fate.duplicate
    drop_near_duplicates([first, second], 0.8, tmp_path / "near", Stages())
    assert first.fates.tolist() == [0, 0]
    assert second.fates.tolist() == [Fate.duplicate, 0, Fate.near_duplicate]
    assert list((tmp_path / "near").iterdir()) == []


def test_one_equal_side_is_not_enough(tmp_path):
    english = "the old man walked home slowly that evening"
    rows = [
        ("der alte Mann ging an jenem Abend langsam heim", english),
        ("sehr gemächlich lief der Greis nach Hause", english),
    ]
    shard = shard_of(tmp_path, 0, rows)
    drop_near_duplicates([shard], 0.8, tmp_path / "near", Stages())
    assert shard.fates.tolist() == [0, 0]


def test_an_error_leaves_no_index_behind(tmp_path, monkeypatch):
    def broken(self, texts):
        raise OSError("No space left on device")

    monkeypatch.setattr(NearDuplicates, "add", broken)
    shard = shard_of(tmp_path, 0, [("ein Haus", "a house")])
    with pytest.raises(OSError, match="No space left"):
        drop_near_duplicates([shard], 0.8, tmp_path / "near", Stages())
    assert list((tmp_path / "near").iterdir()) == []
