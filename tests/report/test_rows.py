from __future__ import annotations

from typing import NamedTuple

import pytest

from interlingua.alignment.align import AlignReport
from interlingua.mining.mine import MinedPairs
from interlingua.report.rows import RowList, data_frame
from interlingua.retrieval.searcher import Ranking
from interlingua.verbs.align import Links
from interlingua.verbs.evaluate import Evaluated
from interlingua.verbs.score import ScoredStream


class Row(NamedTuple):
    name: str
    value: int


def test_rows_become_a_frame_with_their_columns():
    pytest.importorskip("pandas")
    frame = RowList([Row("a", 1), Row("b", 2)]).to_pandas()
    assert list(frame.columns) == ["name", "value"]
    assert frame["value"].tolist() == [1, 2]
    assert data_frame(iter([])).empty


def test_a_frame_without_rows_has_the_columns_of_its_kind():
    pytest.importorskip("pandas")
    assert list(data_frame([], ["a", "b"]).columns) == ["a", "b"]
    kinds = [Ranking([], []), MinedPairs(), Links([], AlignReport()), Evaluated([], None)]
    first = [list(kind.to_pandas().columns)[:3] for kind in kinds]
    assert first[0] == ["id", "score", "text"]
    assert first[1] == ["score", "source", "target"]
    assert first[2] == ["source", "target", "cost"]
    assert first[3] == ["task", "source_language", "target_language"]
    assert list(ScoredStream().to_pandas().columns) == ["source", "target", "score"]


def test_many_rows_are_shown_in_a_short_line():
    rows = RowList([Row("a" * 1000, n) for n in range(5000)])
    assert "5,000" in repr(rows)
    assert len(repr(rows)) < 200
    assert repr(RowList([Row("a", 1)])) == "<RowList of 1: Row(name='a', value=1)>"
    assert repr(RowList()) == "<RowList of 0>"
