"""The readers of labeled texts; tests/evaluation/data has the published sets that use them."""

from __future__ import annotations

import pytest

from interlingua.corpus.formats.labeled_texts import (
    decoded_bytes,
    read_labeled_json,
    read_labeled_table,
    read_labeled_texts,
)
from interlingua.errors import DataError
from tests.corpus.conftest import write


def test_a_table_and_json_lines_give_the_same(tmp_path):
    table = write(tmp_path / "de.train.tsv", "good\tein Text", "bad\tnoch einer")
    lines = [{"label": "good", "text": "ein Text"}, {"label": "bad", "text": "noch einer"}]
    expected = (["ein Text", "noch einer"], ["good", "bad"])
    assert read_labeled_texts(table) == expected
    assert read_labeled_texts(write(tmp_path / "de.train.jsonl.gz", *lines)) == expected


def test_columns_and_ids(tmp_path):
    path = write(tmp_path / "a.tsv", "index_id\tcategory\ttext", "7\tsports\ta", "8\thealth\tb")
    found = read_labeled_table(path, label=1, text=2, columns=3, has_ids=True)
    assert found == (["a", "b"], ["sports", "health"])


@pytest.mark.parametrize(
    ("content", "place"),
    [("a\tb\nc\n", ":2: .*found 1 column"), ("a\tb\n\tc\n", ":2: the label"), ("", "is empty")],
    ids=["columns", "label", "empty"],
)
def test_broken_tables_are_one_line(tmp_path, content, place):
    with pytest.raises(DataError, match=place):
        read_labeled_texts(write(tmp_path / "a.tsv", content))


def test_a_key_that_is_missing(tmp_path):
    path = write(tmp_path / "a.jsonl", {"stars": 5}, {"stars": 1})
    with pytest.raises(DataError, match=r":1: .*review_body"):
        read_labeled_json(path, label="stars", text="review_body")


def test_literals_of_bytes():
    assert decoded_bytes("b'Gr\\xc3\\xbc\\xc3\\x9fe'") == "Grüße"
    assert decoded_bytes("b or not b") == "b or not b"
