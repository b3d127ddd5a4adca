from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
import pytest
from rich.console import Console

from interlingua.errors import ConfigError
from interlingua.evaluation.report.comparison import compare_results
from interlingua.evaluation.report.rendering import (
    CSV_COLUMNS,
    best_cells,
    cut_texts,
    format_of,
    render_tables,
    result_terminal_tables,
)
from interlingua.evaluation.scores import SubsetScores
from tests.evaluation.results_made import make


def printed(*tables):
    console = Console(width=120, record=True, file=io.StringIO())
    for table in tables:
        console.print(table)
    return console.export_text()


def test_terminal_tables_show_percent():
    text = printed(*result_terminal_tables(make()))
    assert all(
        word in text
        for word in ("German", "Russian", "90.0", "50.0", "latin_script_1", "70.0", "rus-eng")
    )


def test_cut_texts_of_all_tasks_are_one_sentence():
    def cut(task, texts, cut_texts):
        made = make(task=task)
        model = {**made.provenance["model"], "max_tokens": 64}
        return dataclasses.replace(
            made, provenance={"model": model, "texts": texts, "truncated_texts": cut_texts}
        )

    results = [cut("tatoeba", 12_000, 1_500), cut("sts", 5, 0), cut("xsim", 700, 3)]
    expected = "1,500 of 12,000 texts of tatoeba, 3 of 700 texts of xsim were cut to 64 tokens"
    assert cut_texts(results) == expected
    assert cut_texts([cut("sts", 5, 0), cut("xsim", 9, None)]) is None


def test_markdown_by_groups():
    tables = compare_results([make(), make("other", scores=(0.8, 0.8))])
    assert render_tables(tables) == (
        "### tatoeba: accuracy, %, higher is better\n\n"
        "| group | a_model | other |\n|---|---:|---:|\n"
        "| all_2 | 70.0 | **80.0** |\n| latin_script_1 | **90.0** | 80.0 |\n"
    )


def test_error_rates_have_two_digits_and_the_lowest_is_best():
    one = make(task="xsim", scores=(0.0006, 0.01), higher=False)
    other = make("b", task="xsim", scores=(0.1, 0), higher=False)
    text = render_tables(compare_results([one, other], by="languages"))
    assert "| deu-eng | **0.06** | 10.00 |" in text
    assert "| rus-eng | 1.00 | **0.00** |" in text
    assert "lower is better" in text


def test_a_missing_language_is_an_empty_cell_and_csv_is_plain():
    short = dataclasses.replace(make("short"), subsets=make().subsets[:1])
    tables = compare_results([make(), short], by="languages")
    assert "| rus-eng | 50.0 |  |" in render_tables(tables)
    rest = ["", "", "", "", "", "", "yes"]
    assert lines(render_tables(tables, "csv")) == [
        list(CSV_COLUMNS),
        ["tatoeba", "deu-eng", "accuracy", "a_model", "0.9", *rest],
        ["tatoeba", "deu-eng", "accuracy", "short", "0.9", *rest],
        ["tatoeba", "rus-eng", "accuracy", "a_model", "0.5", *rest],
    ]


def test_latex_is_a_booktabs_table():
    text = render_tables(compare_results([make(), make("b", scores=(0.1, 0.1))]), "latex")
    assert text.splitlines() == [
        r"% tatoeba: accuracy, %, higher is better; \usepackage{booktabs}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"group & a\_model & b \\",
        r"\midrule",
        r"all\_2 & \textbf{70.0} & 10.0 \\",
        r"latin\_script\_1 & \textbf{90.0} & 10.0 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_escapes_every_name():
    text = render_tables(compare_results([make("50%_$x^{\\a}~<b>&#"), make("b")]), "latex")
    escaped = r"50\%\_\$x\textasciicircum{}\{\textbackslash{}a\}\textasciitilde{}\textless{}b\textgreater{}\&\#"  # noqa: E501
    assert f"group & {escaped} & b" in text


def test_markdown_escapes_bars():
    assert r"| group | a\|b |" in render_tables(compare_results([make("a|b")]))


def test_all_tables_in_one_csv():
    tables = compare_results([make(), make(task="xsim", higher=False)], only="all")
    assert [line[:4] for line in lines(render_tables(tables, "csv"))[1:]] == [
        ["tatoeba", "all_2", "accuracy", "a_model"],
        ["xsim", "all_2", "xsim", "a_model"],
    ]
    (joined,) = compare_results(
        [make(settings={"compare": "text"}, changed=("compare",))], by="tasks"
    )
    assert lines(render_tables([joined], "csv"))[1][:5] == [
        "tatoeba (compare=text)",
        "",
        "accuracy",
        "a_model",
        "0.7",
    ]


@pytest.mark.parametrize(
    ("format", "output", "found"),
    [
        (None, None, "markdown"),
        ("csv", None, "csv"),
        (None, "a/b.tex", "latex"),
        (None, "x.html", "html"),
        (None, "x.md", "markdown"),
        ("latex", "x.txt", "latex"),
    ],
)
def test_formats_by_suffix(format, output, found):
    assert format_of(format, output) == found


def test_best_cells_are_those_that_look_best():
    rows = compare_results(
        [make("a", scores=(0.9001, 0.5)), make("b", scores=(0.9004, 0.5)), make("c")],
        by="languages",
    )[0].rows
    assert [best_cells(row, [True, True, False]) for row in rows] == [
        [True, True, False],
        [True, True, False],
    ]
    assert best_cells(rows[0], [True, False, False]) == [False] * 3


def test_one_table_per_task():
    assert [
        table.title.partition(":")[0]
        for table in compare_results([make(), make(task="xsim", higher=False)])
    ] == [
        "tatoeba",
        "xsim",
    ]


def test_tasks_without_the_metric_are_left_out():
    (table,) = compare_results([make(), make(task="xsim", higher=False)], metric="xsim")
    assert table.title == "xsim: xsim, %, lower is better"


def test_what_cant_be_compared_is_said():
    (table,) = compare_results([make(), make("b", data_sha256="0" * 64, version="2")])
    assert table.notes == [
        "the columns differ in protocol versions (1, 2) and cannot be compared directly",
        "the columns differ in data (ffffffffffff, 000000000000) and cannot be compared directly",
    ]
    assert "- the columns differ in data" in render_tables([table])
    assert "% the columns differ in data" in render_tables([table], "latex")


def test_columns_of_one_model_are_told_apart():
    model = {"name": "a_model", "revision": "r1", "overrides": ["prompt='q: '"]}
    with_prompt = make(provenance={"prompt": "q: ", "model": model})
    (table,) = compare_results(
        [
            make(revision="r1"),
            with_prompt,
            make(revision="r2", settings={"compare": "text"}, changed=("compare",)),
        ]
    )
    assert table.columns == ["a_model r1", "a_model r1 (prompt='q: ')", "a_model r2 (compare=text)"]
    (alone,) = compare_results([with_prompt])
    assert alone.columns == ["a_model"]
    assert alone.notes == ["a_model: prompt='q: '"]


def test_unknown_metric_and_format():
    with pytest.raises(ConfigError, match=r"metric 'f1'; .*accuracy"):
        compare_results([make()], metric="f1")
    with pytest.raises(ConfigError, match=r"format 'pdf'; .*markdown, csv, latex"):
        render_tables(compare_results([make()]), "pdf")
    with pytest.raises(ConfigError, match=r"format 'pdf'; .*markdown, latex, csv, html"):
        format_of("pdf", None)
    with pytest.raises(ConfigError, match=r"x\.pdf: .*\.md, .*--format"):
        format_of(None, "x.pdf")


def lines(text):
    return list(csv.reader(text.splitlines()))


def seeds_and_costs():
    first, second = (
        make(f"ems-s{n}", scores=scores, training={"arm": "x", "pairs": 614_400 + n})
        for n, scores in ((1, (0.9, 0.5)), (2, (0.7, 0.3)))
    )
    other = make("other", scores=(0.5, 0.5), data_sha256="0" * 64)
    (table,) = compare_results([first, second, other], group="-s[0-9]", costs=True, only="all")
    return table


def test_spreads_marks_and_costs_in_markdown():
    text = render_tables([seeds_and_costs()])
    assert "| group | ems (2 seeds) | other ‡ |" in text
    assert "| all_2 | 60.0 ± 14.1 | 50.0 |" in text  # nothing is best where nothing can be compared
    assert "| training pairs | 614,402 ± 1 |  |" in text
    assert "- ‡ cannot be compared with the first column" in text


def test_csv_has_one_number_per_cell():
    assert [
        [*line[:6], line[-1]] for line in lines(render_tables([seeds_and_costs()], "csv"))[1:]
    ] == [
        ["tatoeba", "all_2", "accuracy", "ems (2 seeds)", "0.6", "0.141421", "yes"],
        ["tatoeba", "all_2", "accuracy", "other", "0.5", "", "no"],
        ["", "", "pairs", "ems (2 seeds)", "614402", "0.707107", "yes"],
    ]


def test_latex_of_spreads_and_marks():
    text = render_tables([seeds_and_costs()], "latex")
    assert r"group & ems (2 seeds) & other $^{\ddagger}$ \\" in text
    assert r"all\_2 & 60.0 $\pm$ 14.1 & 50.0 \\" in text


def test_arms_in_rows():
    text = render_tables(compare_results([make(), make("other", scores=(0.8, 0.8))]), rows="arms")
    assert text.splitlines()[2:] == [
        "| arm | all_2 | latin_script_1 |",
        "|---|---:|---:|",
        "| a_model | 70.0 | **90.0** |",
        "| other | **80.0** | 80.0 |",
    ]
    with pytest.raises(ConfigError, match=r"rows 'columns'; .*scores, arms"):
        render_tables(compare_results([make()]), rows="columns")
    with pytest.raises(ConfigError, match=r"--rows .*CSV"):
        render_tables(compare_results([make()]), "csv", rows="arms")


def test_significance_in_each_format():
    rng = np.random.default_rng(0)
    weak, strong = ([rng.random(300) < p for _ in range(2)] for p in (0.4, 0.9))
    results = [make("weak", items=weak), make("strong", items=strong)]
    (table,) = compare_results(results, baseline="weak", only="all")
    value = f"{100 * table.rows[0].cells[1].value:.1f}"
    assert f"| **{value}** † |" in render_tables([table])
    assert "- † differs from weak" in render_tables([table])
    assert f"\\textbf{{{value}}}$^{{\\dagger}}$" in render_tables([table], "latex")
    baseline, difference, low, high, p_value = lines(render_tables([table], "csv"))[2][6:11]
    gap = table.rows[0].cells[1].value - table.rows[0].cells[0].value
    assert (baseline, float(difference)) == ("weak", pytest.approx(gap, rel=1e-5))
    assert float(low) < gap < float(high)
    assert float(p_value) == pytest.approx(2 / 2001, rel=1e-5)


def test_groups_with_metrics_of_their_own_are_shown():
    result = make(
        groups={
            "all_2": {"accuracy": 0.7, "accuracy_pooled": 0.625},
            "latin_script_1": {"accuracy": 0.9},
        }
    )
    text = printed(result_terminal_tables(result)[1])
    assert "accuracy pooled" in text
    assert "62.5" in text


def test_pairs_without_english_behind_name_both_languages():
    subset = SubsetScores(
        name="en-ar", languages=("eng_Latn", "arb_Arab"), pairs=3, scores={"accuracy": 0.5}
    )
    assert "English - Arabic" in printed(result_terminal_tables(make(subsets=(subset,)))[0])


def test_tables_of_pairs_are_printed_as_a_matrix():
    cells = {"deu_Latn-rus_Cyrl": 0.25, "rus_Cyrl-deu_Latn": 0.5}
    *_, matrix = result_terminal_tables(make(tables={"accuracy_mixed_pool": cells}))
    assert matrix.title == "accuracy mixed pool, %"
    columns = [[column.header, *column.cells] for column in matrix.columns]
    assert columns[1:] == [["deu", "", "50.0"], ["rus", "25.0", ""]]
    assert list(matrix.columns[0].cells) == ["deu", "rus"]


def test_codes_keep_their_script_where_it_tells_them_apart():
    cells = {"zho_Hans-zho_Hant": 0.5, "zho_Hant-zho_Hans": 0.25}
    *_, matrix = result_terminal_tables(make(tables={"x": cells}))
    assert [column.header for column in matrix.columns[1:]] == ["zho_Hans", "zho_Hant"]


def test_wide_tables_are_named_and_not_printed():
    cells = {f"aaa-{number:03}": number / 30 for number in range(30)}
    _, by_group = result_terminal_tables(make(tables={"accuracy_mixed_pool": cells}))
    assert by_group.caption == "accuracy mixed pool, %: see the result file"


def test_a_table_of_one_number_is_one_line():
    _, by_group = result_terminal_tables(make(tables={"share": {"de-de": 0.5, "de-en": 0.5}}))
    assert by_group.caption == "share, %: 50.0 in all cells"
