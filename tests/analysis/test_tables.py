from __future__ import annotations

import io

import pytest
from rich.console import Console

from interlingua.analysis.differences import changes
from interlingua.analysis.record import Measure
from interlingua.analysis.tables import (
    analysis_terminal_tables,
    difference_interval,
    extremes,
    format_value,
    interval_of,
)
from tests.analysis.test_differences import BETTER, WORSE
from tests.analysis.test_record import analysis


def text_of(found):
    console = Console(width=200, record=True, file=io.StringIO())
    for table in analysis_terminal_tables(found):
        console.print(table)
    return console.export_text()


@pytest.mark.parametrize(
    ("value", "unit", "expected", "signed"),
    [
        (0.1234, "share", "12.3 %", "+12.3"),
        (0.1234, "cosine", "0.123", "+0.123"),
        (-1.5, "nats", "-1.500 nats", "-1.500"),
        (123.45, "", "123.5", "+123.5"),
        (-119.65, "percent", "-119.65 %", "-119.65 %"),
    ],
)
def test_numbers_with_units(value, unit, expected, signed):
    assert format_value(value, unit) == expected
    assert format_value(value, unit, sign=True) == signed


def test_one_model():
    said = text_of([[analysis("mine")]])
    for part in (
        "mine: agnosticism (version 1): 2 languages, 3 lines each of texts",
        "found",
        "83.3 %",
        "higher",
        "50.0 to 100.0",
        "German 66.7 %, English 100.0 %",
        "skew",
        "1.500",
        "lower",
    ):
        assert part in said, part


def test_two_models():
    said = text_of([[analysis("before", values=WORSE)], [analysis("after", values=BETTER)]])
    for part in ("before", "after", "40.0 %", "70.0 %", "+30.0", "better"):
        assert part in said, part


def test_what_only_one_has_stands_alone():
    said = text_of([[analysis("a")], [analysis("b"), analysis("b", task="word_order")]])
    assert "b: word_order" in said
    assert "a: agnosticism" not in said


def test_small_parts():
    bare = Measure(name="x", value=0.5, unit="cosine", definition="", low=0.25, high=0.75)
    assert interval_of(bare) == "0.250 to 0.750"
    assert extremes(bare) == ""
    assert interval_of(Measure(name="x", value=0.5, unit="", definition="")) == ""
    change = changes(analysis(values=WORSE), analysis(values=BETTER))
    low, _, high = difference_interval(change[0]).partition(" to ")
    assert 18 < float(low) < 30 < float(high) < 42
    assert difference_interval(change[1]) == ""
