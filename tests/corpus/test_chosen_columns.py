"""Columns of a table of pairs that the user names: as written first, then in any capitals."""

from __future__ import annotations

import pytest

from interlingua.corpus.formats.bitext import ChosenColumns
from interlingua.corpus.formats.table_columns import chosen_place, find_columns
from interlingua.errors import DataError


@pytest.mark.parametrize(
    ("name", "names", "place"),
    [
        ("Text", ["text", "Text"], 1),
        ("target_text", ["id", "Target Text"], 1),
        ("2", ["a", "b"], 1),
        ("TEXT", ["text", "Text"], -1),
        ("a", ["a", "a"], -1),
        ("3", ["a", "b"], -1),
    ],
)
def test_a_column_is_found_by_its_name_as_written_then_in_any_capitals(name, names, place):
    assert chosen_place(name, names) == place


def test_a_name_of_two_columns_is_refused():
    with pytest.raises(DataError, match=r"a\.csv:1: .*'TEXT'.* 1 to 3"):
        find_columns(["text", "Text", "en"], "a.csv", chosen=ChosenColumns("TEXT", "en"))
