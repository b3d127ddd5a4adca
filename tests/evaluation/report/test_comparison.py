from __future__ import annotations

import pytest

from interlingua.errors import ConfigError
from interlingua.evaluation.report.comparison import compare_results
from interlingua.evaluation.report.grouping import protocol_of, tasks_of
from interlingua.evaluation.report.rendering import best_cells
from interlingua.evaluation.scores import SubsetScores
from tests.evaluation.results_made import make, values
from tests.progress_records import Recorded


def test_seeds_that_were_not_measured_alike_are_refused():
    for what, change in {
        "data": {"data_sha256": "0" * 64},
        "protocol versions": {"version": "2"},
    }.items():
        with pytest.raises(ConfigError, match=f"tatoeba: .*{what}"):
            compare_results([make("e-s1"), make("e-s2", **change)], group="-s[0-9]")


def test_one_table_of_all_tasks():
    results = [
        make("a"),
        make("b", scores=(0.6, 0.6)),
        make("a", task="xsim", scores=(0.1, 0.3), higher=False),
        make("b", settings={"compare": "text"}, changed=("compare",), scores=(1, 1)),
    ]
    (table,) = compare_results(results, by="tasks")
    assert table.columns == ["a", "b"]
    assert values(table) == {
        "tatoeba: accuracy, mean of 2": [0.7, 0.6],
        "tatoeba: accuracy, mean of 2 (compare=text)": [None, 1.0],
        "xsim: xsim, mean of 2": [0.2, None],
    }
    assert [(row.digits, row.higher_is_better) for row in table.rows] == [
        (1, True),
        (1, True),
        (2, False),
    ]
    assert table.comparable == [True, True]


def test_groups_of_all_tasks_in_one_table():
    results = [make("a"), make("b", task="xsim", scores=(0.1, 0.3), higher=False)]
    (table,) = compare_results(results, join=True)
    assert values(table) == {
        "tatoeba: all_2": [0.7, None],
        "tatoeba: latin_script_1": [0.9, None],
        "xsim: all_2": [None, 0.2],
        "xsim: latin_script_1": [None, 0.1],
    }
    assert (table.corner, table.title) == ("task: group", "all tasks: main scores, %")
    assert [
        row.name
        for row in compare_results(results, join=True, by="languages", only="xsim: rus")[0].rows
    ] == ["xsim: rus-eng"]


def test_columns_that_cant_be_compared_are_marked_or_refused():
    by_text = {"settings": {"compare": "text"}, "changed": ("compare",)}
    results = [make("a"), make("b", data_sha256="0" * 64), make("c"), make("d", **by_text)]
    (table,) = compare_results(results)
    assert table.comparable == [True, False, True, False]
    assert table.notes[:2] == [
        "the columns differ in data (ffffffffffff, 000000000000, ffffffffffff, ffffffffffff) and"
        " cannot be compared directly",
        "the columns differ in settings (the protocol's own, the protocol's own, the protocol's"
        " own, compare=text) and cannot be compared directly",
    ]
    with pytest.raises(ConfigError, match=r"tatoeba: the columns .*--strict"):
        compare_results(results, strict=True)
    assert compare_results([make("a"), make("c")], strict=True)


def test_rows_by_pattern():
    (table,) = compare_results([make("a")], only="latin|muse")
    assert [row.name for row in table.rows] == ["latin_script_1"]
    with pytest.raises(ConfigError, match=r"no row .*'muse'"):
        compare_results([make("a")], only="muse")


def test_long_settings_are_counted_where_that_tells_them_apart():
    def asked(name, *languages):
        return make(name, settings={"languages": [*languages]}, changed=("languages",))

    (table,) = compare_results([asked("a", *"defs"), make("b")], by="tasks")
    assert [row.name for row in table.rows] == [
        "tatoeba: accuracy, mean of 2 (4 languages)",
        "tatoeba: accuracy, mean of 2",
    ]
    (table,) = compare_results([asked("a", *"defs"), asked("b", *"defi")], by="tasks")
    assert [row.name for row in table.rows] == [
        f"tatoeba: accuracy, mean of 2 (languages={listed})" for listed in ("d+e+f+s", "d+e+f+i")
    ]


def test_what_was_asked_of_all_columns_is_said_once():
    few = {"settings": {"languages": ["de"]}, "changed": ("languages",)}
    (table,) = compare_results([make("a", **few), make("b", **few)])
    assert table.notes == ["all columns: languages=de"]


@pytest.mark.parametrize("join", [False, True])
def test_each_task_is_told_before_its_differences_are_tested(join):
    results = [make(name, task=task) for name in "ab" for task in ("tatoeba", "xsim")]
    told = Recorded()
    compare_results(results, baseline="a", join=join, progress=told)
    assert told.states == [("tatoeba", 1, 2), ("xsim", 2, 2)]
    nothing = Recorded()
    compare_results(results, join=join, progress=nothing)
    assert not nothing.counts


def test_tasks_stand_in_the_order_of_the_registry():
    names = [
        "sts17",
        "my_task",
        "lareqa_mine",
        "bucc_margin",
        "mixed_pool",
        "xsim_pp_heldout",
        "tatoeba_x",
        "xsim",
    ]
    expected = [
        "tatoeba_x",
        "xsim",
        "xsim_pp_heldout",
        "mixed_pool",
        "sts17",
        "lareqa_mine",
        "bucc_margin",
        "my_task",
    ]
    results = [make("a", task=name) for name in names]
    assert tasks_of(results) == expected
    assert [table.title.partition(":")[0] for table in compare_results(results)] == expected


@pytest.mark.parametrize(
    ("task", "protocol"),
    [
        ("xsim", "xsim"),
        ("xsim_pp_flores", "xsim_pp"),
        ("xsim_heldout", "xsim"),
        ("xsimple", None),
        ("mteb_STS17", "mteb"),
    ],
)
def test_the_protocol_of_a_task(task, protocol):
    assert protocol_of(task) == protocol


def shown_metrics(name, accuracy, bias):
    scores = {"accuracy": accuracy, "bias": bias, "other": 0.5}
    subsets = (
        SubsetScores(name="deu", languages=("deu_Latn", "deu_Latn"), pairs=9, scores=scores),
    )
    groups = {"all_1": scores}
    return make(
        name, subsets=subsets, groups=groups, shown=("bias", "absent"), lower_is_better=("bias",)
    )


def test_a_table_of_all_tasks_has_the_metrics_that_a_task_shows():
    results = [shown_metrics("a", 0.9, 0.3), shown_metrics("b", 0.8, 0.1)]
    (table,) = compare_results(results, by="tasks")
    assert values(table) == {"tatoeba: accuracy": [0.9, 0.8], "tatoeba: bias": [0.3, 0.1]}
    assert [row.higher_is_better for row in table.rows] == [True, False]
    assert [row.name for row in compare_results(results, by="tasks", metric="other")[0].rows] == [
        "tatoeba: other"
    ]
    assert [row.metric for row in compare_results(results, join=True)[0].rows] == ["accuracy"]


def test_a_metric_that_is_better_low_says_so():
    (table,) = compare_results(
        [shown_metrics("a", 0.9, 0.3), shown_metrics("b", 0.8, 0.1)], metric="bias"
    )
    assert table.title == "tatoeba: bias, %, lower is better"
    assert [best_cells(row, table.comparable) for row in table.rows] == [[False, True]]


def with_bm25(name, scores, **changes):
    return make(
        name,
        task="xquad",
        settings={"bm25": True, "bm25_k1": 2.0},
        changed=("bm25", "bm25_k1"),
        scores=scores,
        **changes,
    )


@pytest.mark.parametrize("options", [{}, {"by": "tasks"}, {"group": "-s[0-9]"}])
def test_results_are_compared_where_options_only_add_metrics(options):
    results = [
        make("worse", task="xquad", scores=(0.5, 0.5)),
        make("worst", task="xquad", scores=(0.4, 0.4)),
        with_bm25("best-s1", (0.8, 0.8)),
        make("best-s2", task="xquad", scores=(0.8, 0.8)),
    ]
    (table,) = compare_results(results, **options)
    assert all(table.comparable)
    best = best_cells(table.rows[0], table.comparable)
    assert [name[:4] for name, is_best in zip(table.columns, best, strict=True) if is_best] == (
        ["best"] * (1 if "group" in options else 2)
    )


def test_one_model_with_and_without_added_metrics_is_not_two_seeds():
    results = [make("a", task="xquad"), with_bm25("a", (0.9, 0.5)), make("b", task="xquad")]
    (table,) = compare_results(results, by="tasks")
    assert len(table.columns) == 3
    assert [len(row.cells) for row in table.rows] == [3]
    assert all(cell.spread is None for cell in table.rows[0].cells)


def test_a_group_takes_the_result_with_the_added_metrics():
    results = [
        make("a-s1", task="xquad"),
        with_bm25("a-s1", (0.9, 0.5)),
        make("a-s2", task="xquad"),
    ]
    (table,) = compare_results(results, group="-s[0-9]")
    assert len(table.columns) == 1
    with pytest.raises(ConfigError, match="2 times"):
        compare_results(
            [results[0], with_bm25("a-s1", (0.9, 0.5)), with_bm25("a-s1", (0.8, 0.5))],
            group="-s[0-9]",
        )


def test_a_baseline_that_a_task_lacks_is_noted():
    results = [
        make("a", items=([1, 0, 1], [1, 1, 0])),
        make("b", items=([1, 1, 1], [1, 1, 1])),
        make("b", task="xsim", higher=False),
        make("c", task="xsim", higher=False),
    ]
    tables = compare_results(results, baseline="a")
    noted = [any("baseline a" in note for note in table.notes) for table in tables]
    assert noted == [False, True]
    with pytest.raises(ConfigError, match="'d'"):
        compare_results(results, baseline="d")
