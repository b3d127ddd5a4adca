from __future__ import annotations

import pytest

from interlingua.evaluation.report.grouping import group_columns
from interlingua.evaluation.report.panel import panel_tasks, place_analyses
from tests.evaluation.page_made import make, panel

COLUMNS = group_columns([make("a", 0.5), make("b", 0.9)])


def test_panels_find_their_models():
    placed, further = place_analyses(
        [panel("b", 0.2), panel("c", 0.4), panel("a", 0.5, analysis="word_order")], COLUMNS
    )
    assert {place: one["provenance"]["model"]["name"] for place, one in placed.items()} == {
        1: "b",
        2: "c",
    }
    assert further == [{"name": "c", "revision": "r-c", "overrides": []}]
    with_prompt = {"model": {"name": "b", "revision": "r-b", "overrides": ["prompt='query: '"]}}
    assert place_analyses([panel("b", 0.2, provenance=with_prompt)], COLUMNS)[0].keys() == {2}
    again = panel("b", 0.9)
    assert place_analyses([panel("b", 0.2), again], COLUMNS)[0] == {1: again}
    assert place_analyses([panel("b", 0.2, analysis="agnosticism_my_folder")], COLUMNS)[
        0
    ].keys() == {1}


def test_a_measure_looks_like_a_task():
    placed, _ = place_analyses([panel("a", 0.2), panel("b", 0.6)], COLUMNS)
    bias, hubness = panel_tasks(placed, 2, 0)
    assert bias["name"] == "same-language bias"
    assert bias["higher"] is False
    assert bias["scale"] == 100
    assert bias["digits"] == 1
    assert bias["unit"] == "%"
    assert bias["mean"]["values"] == [one["measures"][0]["value"] for one in placed.values()]
    assert bias["mean"]["intervals"] == [[0.2, 0.3], [0.2, 0.3]]
    base, (difference, _, _, p_value) = bias["mean"]["tests"]
    assert base is None
    assert difference == pytest.approx(
        bias["mean"]["values"][1] - bias["mean"]["values"][0], abs=1e-4
    )
    assert p_value < 0.05
    assert bias["rows"] == [
        {
            "name": "deu_Latn",
            "title": "German",
            "languages": ["deu_Latn"],
            "values": [0.25, 0.25],
            "other": {},
        }
    ]
    assert bias["matrix"]
    assert bias["pairs"][0]["title"] == "German → Russian"
    assert bias["pairs"][0]["values"] == [0.5, 0.5]
    assert hubness["higher"] is None
    assert hubness["scale"] == 1
    assert hubness["digits"] == 3
    assert hubness["ideal"] is None
    assert (hubness["rows"], hubness["pairs"], hubness["matrix"]) == ([], [], False)
    assert "tests" not in hubness["mean"]
    assert hubness["mean"]["intervals"] == [None, None]


def test_panels_on_other_data_are_marked_and_not_tested():
    placed, _ = place_analyses([panel("a", 0.2), panel("b", 0.6, data_sha256="1" * 64)], COLUMNS)
    bias = panel_tasks(placed, 2, 0)[0]
    assert bias["comparable"] == [True, False]
    assert "cannot be compared" in bias["notes"][0]
    assert "tests" not in bias["mean"]


def test_without_panels_there_is_nothing():
    assert panel_tasks({}, 2, 0) == []


def test_columns_without_a_panel_are_empty():
    placed, _ = place_analyses([panel("b", 0.6)], COLUMNS)
    bias = panel_tasks(placed, 2, 0)[0]
    assert bias["mean"]["values"][0] is None
    assert bias["rows"][0]["values"] == [None, 0.25]
