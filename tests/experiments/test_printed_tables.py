"""experiments/mexma/printed_tables.*: the printed averages follow from the rows, and results of
ours get columns."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interlingua.config.registry import SUITES
from interlingua.evaluation.results import write_result
from interlingua.evaluation.scores import SubsetScores
from tests.evaluation.results_made import make
from tests.scripts import load_script

SCRIPT = Path(__file__).parents[2] / "experiments" / "mexma" / "printed_tables.py"


printed_tables = load_script(SCRIPT)
TABLES = printed_tables.read_tables()


@pytest.mark.parametrize("table", TABLES.table, ids=lambda table: str(table.number))
def test_printed_averages_are_means_of_the_rows(table):
    for column, average in enumerate(table.average):
        values = [row.values[column] for row in table.rows]
        assert sum(values) / len(values) == pytest.approx(
            average, abs=0.0101
        )  # two are cut, not rounded


@pytest.mark.parametrize("table", TABLES.table, ids=lambda table: str(table.number))
def test_a_suite_has_the_tasks_of_its_table(table):
    tasks = [f"mteb:{row.task}" for row in table.rows]
    assert list(SUITES[f"mexma_table{table.number}"]) == list(dict.fromkeys(tasks))


def an_english_result(task, name, value):
    subset = SubsetScores(
        name=name, languages=("eng_Latn", "eng_Latn"), pairs=9, scores={"cosine_spearman": value}
    )
    return make(task=f"mteb_{task}", main_metric="cosine_spearman", subsets=(subset,))


def test_means_are_over_the_rows_that_all_columns_have(tmp_path, capsys, monkeypatch):
    write_result(an_english_result("STS17", "en-en", 0.6), tmp_path)
    write_result(an_english_result("STS12", "default", 0.5), tmp_path)
    monkeypatch.setattr(sys, "argv", ["printed_tables.py", str(tmp_path)])
    printed_tables.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("###")] == [
        "### Table 27: English STS, cosine_spearman, %"
    ]
    assert "| STS12 | 64.69 | 65.46 | 65.08 | 67.32 | 50.00 |" in lines
    assert "| STS13 | 63.50 | 62.79 | 67.98 | 67.05 |  |" in lines
    assert "| mean of 2 | 70.86 | 72.70 | 72.27 | 74.14 | 55.00 |" in lines


def test_results_of_other_tasks_are_refused_with_the_remedy(tmp_path, capsys, monkeypatch):
    write_result(make(), tmp_path)
    monkeypatch.setattr(sys, "argv", ["printed_tables.py", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        printed_tables.main()
    assert "--suite mexma_table27" in capsys.readouterr().err
