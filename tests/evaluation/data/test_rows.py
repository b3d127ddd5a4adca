from __future__ import annotations

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.rows import json_fields, numbered_rows


def test_rows_have_the_numbers_of_their_lines(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("1\ta\n0\tb\n")
    assert list(numbered_rows(path, 2)) == [(1, ["1", "a"]), (2, ["0", "b"])]


def test_a_row_with_another_number_of_columns_is_refused(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("1\ta\n0\n")
    with pytest.raises(DataError, match=r"pairs.tsv:2: 1 .* 2$"):
        list(numbered_rows(path, 2))


def test_fields_come_in_the_order_of_the_keys_as_text(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"label": 1, "more": 2, "text": "a"}\n\n{"text": "b", "label": 0}\n')
    assert list(json_fields(path, "text", "label")) == [(1, ["a", "1"]), (3, ["b", "0"])]


def test_an_object_without_a_key_is_refused(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"text": "a"}\n')
    with pytest.raises(DataError, match=r"pairs.jsonl:1: no label .*text, label"):
        list(json_fields(path, "text", "label"))
