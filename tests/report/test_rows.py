from __future__ import annotations

from typing import NamedTuple

import pytest

from interlingua.report.rows import RowList, data_frame


class Row(NamedTuple):
    name: str
    value: int


def test_rows_become_a_frame_with_their_columns():
    pytest.importorskip("pandas")
    frame = RowList([Row("a", 1), Row("b", 2)]).to_pandas()
    assert list(frame.columns) == ["name", "value"]
    assert frame["value"].tolist() == [1, 2]
    assert data_frame(iter([])).empty


def test_many_rows_are_shown_in_a_short_line():
    rows = RowList([Row("a" * 1000, n) for n in range(5000)])
    assert "5,000" in repr(rows)
    assert len(repr(rows)) < 200
    assert repr(RowList([Row("a", 1)])) == "<RowList of 1: Row(name='a', value=1)>"
    assert repr(RowList()) == "<RowList of 0>"
