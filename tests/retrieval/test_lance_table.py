"""Rows of an index, its strings in SQL, and LanceDB's errors as one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.retrieval.lance_table import (
    TEXT_COLUMNS,
    content_key,
    lance_reads,
    lance_writes,
    sql_strings,
    table_rows,
    table_schema,
    text_digest,
)
from interlingua.retrieval.passage_files import Passage


def test_rows_hold_what_the_passages_hold():
    pytest.importorskip("pyarrow")
    passages = [
        Passage("a", "one", "t", "deu_Latn", '{"x": 1}', "f", "d", 7, "h"),
        Passage("b", "two"),
    ]
    vectors = np.array([[1, 2], [3, 4]], np.float32)
    rows = table_rows(passages, vectors)
    assert rows.schema == table_schema(2)
    first, second = rows.to_pylist()
    texts = ["a", "one", "t", "deu_Latn", "f", "d", "h"]
    assert [first[name] for name in TEXT_COLUMNS] == texts
    assert (first["offset"], second["offset"]) == (7, 0)
    assert (first["vector"], second["vector"]) == ([1, 2], [3, 4])
    assert (first["metadata"], second["content"]) == ('{"x": 1}', content_key(passages[1]))


def test_strings_of_sql_are_escaped():
    assert sql_strings(["a", "it's", "' OR 1=1 --"]) == "'a', 'it''s', ''' OR 1=1 --'"


@pytest.mark.parametrize("field", Passage._fields[1:])
def test_the_content_changes_with_each_field_but_the_id(field):
    passage = Passage("a", "one")
    assert content_key(passage._replace(**{field: "other"})) != content_key(passage)
    assert content_key(passage._replace(id="b")) == content_key(passage)


def test_a_key_is_the_same_everywhere_and_fits_in_64_bits():
    assert text_digest("a") == text_digest("a") != text_digest("b")
    assert all(-(2**63) <= text_digest(str(n)) < 2**63 for n in range(1000))
    assert any(text_digest(str(n)) < 0 for n in range(1000))


@pytest.mark.parametrize(
    "error", [RuntimeError("lance error: no space\nbacktrace"), OSError("disk full")]
)
def test_a_failed_write_is_one_line(error):
    with (
        pytest.raises(DataError, match="folder: cannot be written") as caught,
        lance_writes(Path("folder")),
    ):
        raise error
    assert "\n" not in str(caught.value)


def test_a_condition_that_is_not_valid_is_the_users():
    with pytest.raises(ConfigError, match="--where 'x ='"), lance_reads(Path("folder"), "x ="):
        raise ValueError("no such column")


@pytest.mark.parametrize("where", [None, "x = 1"])
@pytest.mark.parametrize(
    "error", [RuntimeError("lance error: LanceError(IO): cut"), OSError("gone")]
)
def test_damage_is_never_the_conditions_fault(where, error):
    with (
        pytest.raises(CheckpointError, match="folder: is damaged"),
        lance_reads(Path("folder"), where),
    ):
        raise error
