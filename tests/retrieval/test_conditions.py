"""Conditions with the names of metadata as they are written in the files."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("lancedb")

from interlingua.errors import ConfigError
from interlingua.retrieval.conditions import with_metadata
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex

YEARS = [999, 2000, 2010, 2024]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    settings = IndexSettings(model="m", digest="x", dim=2)
    index = PassageIndex.create(tmp_path_factory.mktemp("conditions") / "index", settings)
    passages = []
    for row, year in enumerate(YEARS):
        fields = {"year": year, "topic": ["it's", "art"][row % 2], "is_new": year > 2005}
        fields |= {"größe": row / 2, "page no": row, "a.b": row, "code": f"0{row}"}
        fields |= {"date": f"{year}-01-0{row + 1}", "from": "AB"[row % 2], "content": "c" * row}
        fields |= {"vector": row, "float": row, "file": f"f{row}", "document": "d", "offset": row}
        if row == 0:
            fields["note"] = "x"
        metadata = json.dumps(fields)
        passages.append(Passage(str(row), f"text {row}", language="deu_Latn", metadata=metadata))
    index.add(passages, lambda wanted: np.ones((len(wanted), 2), dtype=np.float32))
    return index


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("year = 2024", "3"),
        ("year >= 2000", "123"),  # as numbers: 999 is less
        ("2000 < year", "23"),
        ("year BETWEEN 2000 AND 2010", "12"),
        ("year NOT IN (2000, 2010)", "03"),
        ("year in (999)", "0"),
        ("topic = 'art'", "13"),
        ("topic = 'it''s' and year < 2005", "0"),
        ("topic LIKE 'a%'", "13"),
        ("topic <> 'year = 3'", "0123"),
        ("is_new", "23"),
        ("NOT is_new AND year > 1000", "1"),
        ("is_new = false", "01"),
        ("year > 2005 AND is_new", "23"),
        ("größe >= 0.5", "123"),
        ('"page no" = 2', "2"),
        ("`page no` = 2", "2"),
        ("a.b = 1", "1"),
        ("code = '01'", "1"),
        ("note IS NOT NULL", "0"),
        ("note IS NULL", "123"),
        ("(year = 999 OR topic = 'art') AND language = 'deu_Latn'", "013"),
        ("json_get_int(metadata, 'year') = 2024", "3"),
        ("json_extract(metadata, '$.year') = '2024'", "3"),
        ("lower(text) = 'text 1'", "1"),
        ("id = '2'", "2"),
        # Words of SQL and columns of the table that are no use in a condition are names, too.
        ("date = '2010-01-03'", "2"),
        ("'2010-01-03' < date", "03"),
        ("date LIKE '20%' AND NOT date IN ('2000-01-02')", "23"),
        ("date IS NULL OR from = 'B'", "13"),
        ("TRY_CAST(date AS date) > date '2009-12-31' AND float < 3", "2"),
        ("length(date) = 9 OR length(content) = 3", "03"),
        ("upper(topic) = 'ART'", "13"),
        ("vector = 2", "2"),
        ("year + 1 > 2010 AND 2 * größe >= 2", "23"),
        ("year -999 = 0", "0"),
        # Fields with the names of the index's own columns.
        ("metadata.file = 'f1'", "1"),
        ("metadata.offset >= 2 AND offset = 0", "23"),
        ("\"metadata.document\" = 'd'", "0123"),
        ("file = 'f1'", ""),
    ],
)
def test_fields_are_compared_by_the_kind_of_the_other_side(index, where, rows):
    hits = index.nearest(np.ones(2, dtype=np.float32), 10, where=where)
    assert "".join(sorted(hit.id for hit in hits)) == rows
    assert [passage.id for passage in index.passages(where)] == list(rows)


@pytest.mark.parametrize("where", ["yaer = 2024", 'topic = "art"', "year = 2024 AND topik = 'x'"])
def test_a_name_that_no_passage_has_is_an_error(index, where):
    with pytest.raises(ConfigError, match=r"yaer|art|topik"):
        index.nearest(np.ones(2, dtype=np.float32), 10, where=where)
    with pytest.raises(ConfigError, match=r"yaer|art|topik"):
        index.delete(where=where)


def test_a_quote_in_a_name_ends_no_string():
    found = with_metadata('"a\'b" = 1', lambda name: name == "a'b")
    assert "'a''b'" in found


def test_a_condition_of_columns_stays_as_it_is():
    where = "language = 'x' AND length(title) > 3 OR id IN ('1', 'year = 3')"
    assert with_metadata(where, lambda name: False) == where
