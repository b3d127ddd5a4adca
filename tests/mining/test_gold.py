from __future__ import annotations

import pytest

from interlingua.errors import DataError
from interlingua.mining.gold import gold_pairs, is_gold, read_gold
from tests.mining.invented import write_lines
from tests.mining.two_sides import mine, sides


def test_gold_files(tmp_path):
    assert read_gold(write_lines(tmp_path / "g", ["a\tb", " c\td "])) == [("a", "b"), ("c", "d")]
    with pytest.raises(DataError, match=r"g:2: .*id TAB .*1 column"):
        read_gold(write_lines(tmp_path / "g", ["a\tb", "c"]))
    with pytest.raises(DataError, match="file is empty"):
        read_gold(write_lines(tmp_path / "g", []))


def test_gold_pairs_by_names_and_by_texts(tmp_path):
    source, target, pairs = sides(tmp_path)
    mined = mine(source, target, tmp_path / "work")
    by_number = [(str(a + 1), str(b + 1)) for a, b in pairs]
    by_text = [(mined.x.texts[a], mined.y.texts[b]) for a, b in pairs]
    assert gold_pairs(by_number, mined.x, mined.y) == (set(pairs), 0)
    assert gold_pairs([*by_text, ("nothing", "1")], mined.x, mined.y) == (set(pairs), 1)
    assert is_gold(mined, set(pairs)).sum() == len(pairs)
