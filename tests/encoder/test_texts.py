from __future__ import annotations

import types

import numpy as np
import pytest

from interlingua.encoder.texts import PAIRS, check_text, checked_texts, refuse_container
from interlingua.errors import ConfigError, DataError

pandas = pytest.importorskip("pandas")


def test_texts_pass_as_they_are():
    texts = ["a", "", "ü 漢 😀", str(np.array(["x"])[0])]
    assert list(checked_texts(texts)) == texts
    assert list(checked_texts(iter(texts))) == texts
    assert list(checked_texts(pandas.Series(texts, index=[9, 8, 7, 6]))) == texts
    assert list(checked_texts(np.array(["a", "b"]))) == ["a", "b"]
    assert list(checked_texts({"b": 1, "a": 2}.keys())) == ["b", "a"]


def test_a_table_of_pairs_is_given_by_two_columns():
    with pytest.raises(ConfigError, match="zip"):
        refuse_container(pandas.DataFrame({"de": ["a"], "en": ["b"]}), PAIRS)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one", "in a list"),
        (b"one", "found bytes"),
        ({"text": ["a"]}, r"found a dict; .*table\['text'\]"),
        (pandas.DataFrame({"text": ["a"]}), "found a DataFrame"),
        ({"a", "b"}, "a set, .*order"),
        (3, "found int"),
        (np.array("one"), "found ndarray"),
    ],
)
def test_what_holds_no_list_of_texts_is_refused_at_once(texts, message):
    with pytest.raises(ConfigError, match=f"source: .*{message}"):
        checked_texts(texts, "source")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "None, a missing"),
        (float("nan"), "nan, a missing"),
        (pandas.NA, "<NA>, a missing"),
        (b"text", r"bytes; decode them"),
        (["a", "b"], "a list; flatten"),
        (np.array(["a", "b"]), "a ndarray; flatten"),
        (7, "7, an int"),
        ("half \ud83d", r"incomplete character, '\\ud83d'"),
    ],
)
def test_an_element_that_is_no_text_is_named_by_its_row(value, message):
    with pytest.raises(DataError, match=f"texts: row 1 .*{message}"):
        list(checked_texts(["fine", value]))


def test_rows_are_checked_when_their_turn_comes():
    texts = checked_texts(iter(["a", None]))
    assert isinstance(texts, types.GeneratorType)
    assert next(texts) == "a"
    assert check_text("b", 3) == "b"
