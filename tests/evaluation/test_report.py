from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
import pytest
from rich.console import Console

from interlingua.errors import ConfigError
from interlingua.evaluation.comparison import compare
from interlingua.evaluation.report import cut_texts, render, terminal_tables
from interlingua.evaluation.task import SubsetScores, TaskResult
from tests.evaluation import results_made


def make(name="a_model", *, task="tatoeba", scores=(0.9, 0.5), higher=True, revision="r1", **changes):
    metric = "accuracy" if higher else "xsim"
    subsets = tuple(
        SubsetScores(name=f"{code}-eng", languages=(f"{code}_{script}", "eng_Latn"), pairs=10, scores={metric: score})
        for (code, script), score in zip((("deu", "Latn"), ("rus", "Cyrl")), scores, strict=True)
    )
    result = TaskResult(
        task=task, version="1", main_metric=metric, higher_is_better=higher, dataset="d", data_sha256="f" * 64,
        data_revision=None, settings={"compare": "index"}, changed=(), subsets=subsets,
        groups={"all_2": {metric: sum(scores) / 2}, "latin_script_1": {metric: scores[0]}}, seconds=1.0,
        provenance={"prompt": "", "model": {"name": name, "revision": revision, "overrides": ()}},
    )  # fmt: skip
    return dataclasses.replace(result, **changes)


def test_terminal_tables_show_percent():
    console = Console(width=120, record=True, file=io.StringIO())
    for table in terminal_tables(make()):
        console.print(table)
    text = console.export_text()
    assert all(word in text for word in ("German", "Russian", "90.0", "50.0", "latin_script_1", "70.0", "rus-eng"))


def test_cut_texts_of_all_tasks_are_one_sentence():
    def cut(task, texts, cut_texts):
        made = make(task=task)
        model = {**made.provenance["model"], "max_tokens": 64}
        return dataclasses.replace(made, provenance={"model": model, "texts": texts, "truncated_texts": cut_texts})

    results = [cut("tatoeba", 12_000, 1_500), cut("sts", 5, 0), cut("xsim", 700, 3)]
    expected = "1,500 of 12,000 texts of tatoeba, 3 of 700 texts of xsim were cut to 64 tokens"
    assert cut_texts(results) == expected
    assert cut_texts([cut("sts", 5, 0), cut("xsim", 9, None)]) is None


def test_markdown_by_groups():
    (table,) = compare([make(), make("other", scores=(0.8, 0.8))])
    assert render(table) == (
        "### tatoeba: accuracy, %, higher is better\n\n"
        "| group | a_model | other |\n|---|---:|---:|\n"
        "| all_2 | 70.0 | **80.0** |\n| latin_script_1 | **90.0** | 80.0 |\n"
    )


def test_error_rates_have_two_digits_and_the_lowest_is_best():
    one = make(task="xsim", scores=(0.0006, 0.01), higher=False)
    other = make("b", task="xsim", scores=(0.1, 0), higher=False)
    (table,) = compare([one, other], by="languages")
    assert "| deu-eng | **0.06** | 10.00 |" in render(table)
    assert "| rus-eng | 1.00 | **0.00** |" in render(table)
    assert "lower is better" in render(table)


def test_a_missing_language_is_an_empty_cell_and_csv_is_plain():
    short = dataclasses.replace(make("short"), subsets=make().subsets[:1])
    (table,) = compare([make(), short], by="languages")
    assert list(csv.reader(render(table, "csv").splitlines())) == [
        ["tatoeba", "a_model", "short"],
        ["deu-eng", "90.0", "90.0"],
        ["rus-eng", "50.0", ""],
    ]


def test_latex_is_escaped():
    (table,) = compare([make(), make("b", scores=(0.1, 0.1))])
    text = render(table, "latex")
    assert r"group & a\_model & b \\" in text
    assert r"all\_2 & \textbf{70.0} & 10.0 \\" in text
    assert text.count(r"\begin{tabular}{lrr}") == text.count(r"\end{tabular}") == 1


def test_one_table_per_task():
    assert [table.title.partition(":")[0] for table in compare([make(), make(task="xsim", higher=False)])] == [
        "tatoeba",
        "xsim",
    ]


def test_tasks_without_the_metric_are_left_out():
    (table,) = compare([make(), make(task="xsim", higher=False)], metric="xsim")
    assert table.title == "xsim: xsim, %, lower is better"


def test_what_cant_be_compared_is_said():
    (table,) = compare([make(), make("b", data_sha256="0" * 64, version="2")])
    assert table.notes == [
        "the columns differ in protocol versions (1, 2) and can't be compared as they are",
        "the columns differ in data (ffffffffffff, 000000000000) and can't be compared as they are",
    ]
    assert "- the columns differ in data" in render(table)
    assert "% the columns differ in data" in render(table, "latex")


def test_columns_of_one_model_are_told_apart():
    model = {"name": "a_model", "revision": "r1", "overrides": ["prompt='q: '"]}
    with_prompt = make(provenance={"prompt": "q: ", "model": model})
    (table,) = compare([make(), with_prompt, make(revision="r2", settings={"compare": "text"}, changed=("compare",))])
    assert table.columns == ["a_model r1", "a_model r1 (prompt='q: ')", "a_model r2 (compare=text)"]
    (alone,) = compare([with_prompt])
    assert alone.columns == ["a_model"]
    assert alone.notes == ["a_model: prompt='q: '"]


def test_unknown_metric_and_format():
    with pytest.raises(ConfigError, match="metric 'f1' is not one of accuracy"):
        compare([make()], metric="f1")
    with pytest.raises(ConfigError, match="format 'html' is not one of markdown, csv, latex"):
        render(compare([make()])[0], "html")


def seeds_and_costs():
    first, second = (
        results_made.make(f"ems-s{n}", scores=scores, training={"arm": "x", "pairs": 614_400 + n})
        for n, scores in ((1, (0.9, 0.5)), (2, (0.7, 0.3)))
    )
    other = results_made.make("other", scores=(0.5, 0.5), data_sha256="0" * 64)
    (table,) = compare([first, second, other], group="-s[0-9]", costs=True, only="all")
    return table


def test_spreads_marks_and_costs_in_markdown():
    text = render(seeds_and_costs())
    assert "| group | ems (2 seeds) | other † |" in text
    assert "| all_2 | 60.0 ± 14.1 | 50.0 |" in text  # nothing is best where nothing can be compared
    assert "| training pairs | 614,402 ± 1 |  |" in text
    assert "- † can't be compared with the first column" in text


def test_csv_has_one_number_per_cell():
    assert list(csv.reader(render(seeds_and_costs(), "csv").splitlines())) == [
        ["tatoeba", "ems (2 seeds)", "ems (2 seeds) sd", "other †"],
        ["all_2", "60.0", "14.14", "50.0"],
        ["training pairs", "614402", "1", ""],
    ]


def test_latex_of_spreads_and_marks():
    text = render(seeds_and_costs(), "latex")
    assert r"group & ems (2 seeds) & other $^{\dagger}$ \\" in text
    assert r"all\_2 & 60.0 $\pm$ 14.1 & 50.0 \\" in text


def test_arms_in_rows():
    text = render(compare([make(), make("other", scores=(0.8, 0.8))])[0], rows="arms")
    assert text.splitlines()[2:] == [
        "| arm | all_2 | latin_script_1 |",
        "|---|---:|---:|",
        "| a_model | 70.0 | **90.0** |",
        "| other | **80.0** | 80.0 |",
    ]
    with pytest.raises(ConfigError, match="rows 'columns' is not one of scores, arms"):
        render(compare([make()])[0], rows="columns")


def test_significance_in_each_format():
    rng = np.random.default_rng(0)
    weak, strong = ([rng.random(300) < p for _ in range(2)] for p in (0.4, 0.9))
    results = [results_made.make("weak", items=weak), results_made.make("strong", items=strong)]
    (table,) = compare(results, baseline="weak", only="all")
    value = f"{100 * table.rows[0].cells[1].value:.1f}"
    assert f"| **{value}**\\* |" in render(table)
    assert r"- \* differs from weak" in render(table)
    assert f"\\textbf{{{value}}}$^{{*}}$" in render(table, "latex")
    assert f",{value}\n" in render(table, "csv")


def test_groups_with_metrics_of_their_own_are_shown():
    result = make(groups={"all_2": {"accuracy": 0.7, "accuracy_pooled": 0.625}, "latin_script_1": {"accuracy": 0.9}})
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(terminal_tables(result)[1])
    assert "accuracy pooled" in (text := console.export_text())
    assert "62.5" in text


def test_pairs_without_english_behind_name_both_languages():
    subset = SubsetScores(name="en-ar", languages=("eng_Latn", "arb_Arab"), pairs=3, scores={"accuracy": 0.5})
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(terminal_tables(make(subsets=(subset,)))[0])
    assert "English - Arabic" in console.export_text()
