from __future__ import annotations

from interlingua.analysis.side_by_side import side_by_side
from interlingua.evaluation.report.rendering import render_tables
from tests.analysis.test_record import analysis


def test_a_row_for_each_measure_and_a_column_for_each_model():
    made = [
        analysis("a"),
        analysis("b", values=((1.0, 1.0, 1.0),) * 2),
        analysis("a", task="word_order", dataset=""),
    ]
    panel, order = side_by_side(made)
    assert render_tables([panel]).splitlines() == [
        "### agnosticism: 2 languages, 3 lines each of texts",
        "",
        "| measure | a | b |",
        "|---|---:|---:|",
        "| found, % | 83.3 | **100.0** |",
        "| skew | **1.500** | **1.500** |",
        "",
        "- a note",
    ]
    assert (order.title, order.columns) == ("word order", ["a"])
    last = render_tables([panel], "csv").splitlines()[-1].split(",")
    assert last[:5] == ["agnosticism", "skew", "skew", "b", "1.5"]


def test_what_cant_be_compared_is_marked_and_two_of_one_name_are_told_apart():
    first = analysis("a")
    model = {**first.provenance["model"], "revision": "def"}
    second = analysis(
        "a",
        data_sha256="0" * 64,
        notes=("another",),
        provenance={**first.provenance, "model": model},
    )
    (table,) = side_by_side([first, second, analysis("c", settings={"k": 5})])
    assert table.columns == ["a abc", "a def", "c"]
    assert table.comparable == [True, False, False]
    assert table.notes == ["a abc, c: a note", "a def: another"]


def test_a_measure_that_a_model_lacks_is_an_empty_cell():
    short = analysis("b", measures=analysis().measures[1:])
    (table,) = side_by_side([analysis("a"), short])
    assert [[cell is None for cell in row.cells] for row in table.rows] == [
        [False, True],
        [False, False],
    ]
    assert [row.name for row in table.rows] == ["found, %", "skew"]
