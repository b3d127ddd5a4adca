from __future__ import annotations

import pytest

from interlingua.config.options import is_frame
from interlingua.corpus.frames import (
    arrow_values,
    column_names,
    column_values,
    frame_pairs,
    frame_records,
    is_arrow,
    plain_values,
)
from interlingua.errors import ConfigError, DataError

COLUMNS = {"de": ["eins", "zwei"], "en": ["one", "two"], "year": [1, 2]}


def made(library, columns):
    """Build a table of a library from the columns."""
    module = pytest.importorskip(library.partition(".")[0])
    if library == "pyarrow":
        return module.table(columns)
    if library == "datasets":
        return module.Dataset.from_dict(columns)
    return module.DataFrame(columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "datasets"])
def test_a_table_of_each_library_gives_the_same_plain_values(library):
    frame = made(library, COLUMNS)
    assert is_frame(frame)
    assert column_names(frame) == ["de", "en", "year"]
    assert column_values(frame, "de") == ["eins", "zwei"]
    records = list(frame_records(frame))
    assert records == [
        {"de": "eins", "en": "one", "year": 1},
        {"de": "zwei", "en": "two", "year": 2},
    ]
    assert type(records[0]["year"]) is int
    pairs, languages = frame_pairs(frame)
    assert list(pairs) == [("eins", "one"), ("zwei", "two")]
    assert languages == ("deu_Latn", "eng_Latn")
    assert next(iter(frame_pairs(frame, "en", "de").pairs)) == ("one", "eins")


def test_columns_that_name_no_sides_are_the_first_and_the_second():
    frame = made("pandas", {"left": ["a"], "right": ["b"]})
    assert list(frame_pairs(frame).pairs) == [("a", "b")]
    assert frame_pairs(frame).languages is None
    turned = made("pandas", {"target": ["a"], "source": ["b"]})
    assert list(frame_pairs(turned).pairs) == [("b", "a")]


def test_columns_that_are_not_known_are_named():
    frame = made("pandas", {"left": ["a"], "right": ["b"], "third": ["c"]})
    with pytest.raises(DataError, match="left, right, third"):
        frame_pairs(frame)
    with pytest.raises(DataError, match="'right'"):
        frame_pairs(frame, "left", "rigt")
    with pytest.raises(ConfigError, match="source_column"):
        frame_pairs(frame, "left")
    twice = frame[["left", "left"]]
    with pytest.raises(DataError, match="several"):
        column_values(twice, "left")


def test_what_is_not_one_table_is_refused():
    lazy = made("polars", COLUMNS).lazy()
    with pytest.raises(ConfigError, match="collect"):
        column_names(lazy)
    datasets = pytest.importorskip("datasets")
    several = datasets.DatasetDict(train=made("datasets", COLUMNS))
    with pytest.raises(ConfigError, match="train"):
        column_names(several)


def test_a_missing_value_of_pandas_is_none():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", None], "day": [pandas.NaT, pandas.Timestamp(0)]})
    first, second = frame_records(frame)
    assert first["day"] is None
    assert second["text"] is None


def test_arrow_arrays_in_several_parts_are_plain_values():
    pyarrow = pytest.importorskip("pyarrow")
    array = pyarrow.chunked_array([["a"] * 20_000, ["b"]])
    assert is_arrow(array)
    assert not is_arrow(["a"])
    assert list(arrow_values(array))[-2:] == ["a", "b"]
    assert list(plain_values(array)) == ["a"] * 20_000 + ["b"]
    assert plain_values(["a"]) == ["a"]
