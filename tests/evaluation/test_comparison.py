from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import ConfigError
from interlingua.evaluation.comparison import Cell, compare
from interlingua.evaluation.report import render
from tests.evaluation.results_made import make

RNG = np.random.default_rng(0)
WEAK, STRONG = [RNG.random(300) < 0.5 for _ in range(2)], [RNG.random(300) < 0.8 for _ in range(2)]


def values(table):
    return {row.name: [cell and round(cell.value, 6) for cell in row.cells] for row in table.rows}


def test_seeds_become_mean_and_standard_deviation():
    results = [make("ems-s1", scores=(0.9, 0.5)), make("ems-s2", scores=(0.7, 0.3)), make("other", scores=(0.6, 0.6))]
    (table,) = compare(results, group="-s[0-9]")
    assert table.columns == ["ems (2 seeds)", "other"]
    row = table.rows[0]
    assert row.name == "all_2"
    assert row.cells[0].value == pytest.approx(0.6)
    assert row.cells[0].spread == pytest.approx(np.std([0.7, 0.5], ddof=1))
    assert row.cells[1] == Cell(0.6)


def test_seeds_that_were_not_measured_alike_are_refused():
    for what, change in {
        "data": {"data_sha256": "0" * 64},
        "protocol versions": {"version": "2"},
    }.items():
        with pytest.raises(ConfigError, match=f"tatoeba: the seeds of one arm differ in {what} .*measure them alike"):
            compare([make("e-s1"), make("e-s2", **change)], group="-s[0-9]")


def test_a_seed_without_the_score_leaves_the_cell_empty():
    short = make("e-s2", groups={"all_2": {"accuracy": 0.5}})
    (table,) = compare([make("e-s1"), short], group="-s[0-9]")
    assert values(table) == {"all_2": [0.6], "latin_script_1": [None]}


def test_one_table_of_all_tasks():
    results = [
        make("a"),
        make("b", scores=(0.6, 0.6)),
        make("a", task="xsim", scores=(0.1, 0.3), higher=False),
        make("b", settings={"compare": "text"}, changed=("compare",), scores=(1, 1)),
    ]
    (table,) = compare(results, by="tasks")
    assert table.columns == ["a", "b"]
    assert values(table) == {
        "tatoeba: accuracy, mean of 2": [0.7, 0.6],
        "tatoeba: accuracy, mean of 2 (compare=text)": [None, 1.0],
        "xsim: xsim, mean of 2": [0.2, None],
    }
    assert [(row.digits, row.higher_is_better) for row in table.rows] == [(1, True), (1, True), (2, False)]
    assert table.comparable == [True, True]


def test_groups_of_all_tasks_in_one_table():
    results = [make("a"), make("b", task="xsim", scores=(0.1, 0.3), higher=False)]
    (table,) = compare(results, join=True)
    assert values(table) == {
        "tatoeba: all_2": [0.7, None],
        "tatoeba: latin_script_1": [0.9, None],
        "xsim: all_2": [None, 0.2],
        "xsim: latin_script_1": [None, 0.1],
    }
    assert (table.corner, table.title) == ("task: group", "all tasks: main scores, %")
    assert [row.name for row in compare(results, join=True, by="languages", only="xsim: rus")[0].rows] == [
        "xsim: rus-eng"
    ]


def test_what_differs_from_the_baseline_is_marked():
    results = [make("weak", items=WEAK), make("strong", items=STRONG), make("same", items=WEAK)]
    for by in ("groups", "languages", "tasks"):
        (table,) = compare(results, by=by, baseline="weak")
        assert all([cell.differs for cell in row.cells] == [False, True, False] for row in table.rows), by
        assert table.notes == [
            "† differs from weak: p < 0.05, paired bootstrap of the items, 2,000 resamples, each row alone"
        ]
    (table,) = compare(results[:1] + results[2:], baseline="weak")
    assert table.notes == []
    with pytest.raises(ConfigError, match=r"there is no column 'week'; did you mean 'weak'\?"):
        compare(results, baseline="week")


def test_nothing_is_marked_where_items_were_not_kept_or_are_not_the_score():
    other = make("other", items=STRONG)
    without = make("weak", scores=[np.mean(values) for values in WEAK])
    (table,) = compare([without, other], baseline="weak")
    assert not any(cell.differs for row in table.rows for cell in row.cells)
    pooled = [make(name, items=items, groups={"all_2": {"accuracy": mean}}) for name, items, mean in
              (("weak", WEAK, 0.2), ("other", STRONG, 0.9))]  # fmt: skip
    assert not any(cell.differs for row in compare(pooled, baseline="weak")[0].rows for cell in row.cells)


def test_nothing_is_marked_between_unlike_data():
    other = make("other", items=STRONG, data_sha256="0" * 64)
    (table,) = compare([make("weak", items=WEAK), other], baseline="weak")
    assert table.comparable == [True, False]
    assert not any(cell.differs for row in table.rows for cell in row.cells)


def test_seeds_are_compared_as_an_arm():
    results = [make(f"weak-s{n}", items=WEAK) for n in (1, 2)] + [make(f"strong-s{n}", items=STRONG) for n in (1, 2)]
    (table,) = compare(results, group="-s[0-9]", baseline="weak")
    assert [cell.differs for cell in table.rows[0].cells] == [False, True]


def test_columns_that_cant_be_compared_are_marked_or_refused():
    by_text = {"settings": {"compare": "text"}, "changed": ("compare",)}
    results = [make("a"), make("b", data_sha256="0" * 64), make("c"), make("d", **by_text)]
    (table,) = compare(results)
    assert table.comparable == [True, False, True, False]
    assert table.notes[:2] == [
        "the columns differ in data (ffffffffffff, 000000000000, ffffffffffff, ffffffffffff) and can't be compared as"
        " they are",
        "the columns differ in settings (the protocol's own, the protocol's own, the protocol's own, compare=text) and"
        " can't be compared as they are",
    ]
    with pytest.raises(ConfigError, match=r"tatoeba: the columns differ in data .*; drop --strict to mark them"):
        compare(results, strict=True)
    assert compare([make("a"), make("c")], strict=True)


def test_rows_by_pattern():
    (table,) = compare([make("a")], only="latin|muse")
    assert [row.name for row in table.rows] == ["latin_script_1"]
    with pytest.raises(ConfigError, match="no row contains 'muse'"):
        compare([make("a")], only="muse")


def test_long_settings_are_counted_where_that_tells_them_apart():
    def asked(name, *languages):
        return make(name, settings={"languages": [*languages]}, changed=("languages",))

    (table,) = compare([asked("a", *"defs"), make("b")], by="tasks")
    assert [row.name for row in table.rows] == [
        "tatoeba: accuracy, mean of 2 (4 languages)",
        "tatoeba: accuracy, mean of 2",
    ]
    (table,) = compare([asked("a", *"defs"), asked("b", *"defi")], by="tasks")
    assert [row.name for row in table.rows] == [
        f"tatoeba: accuracy, mean of 2 (languages={listed})" for listed in ("d+e+f+s", "d+e+f+i")
    ]


def test_what_was_asked_of_all_columns_is_said_once():
    few = {"settings": {"languages": ["de"]}, "changed": ("languages",)}
    (table,) = compare([make("a", **few), make("b", **few)])
    assert table.notes == ["all columns: languages=de"]


def test_costs_of_training():
    cheap, dear = ({"arm": name, "pairs": pairs, "seconds": 10.5} for name, pairs in (("c", 1000), ("d", 3000)))
    dear |= {"cpu_seconds": 7, "peak_rss_bytes": 3 * 2**29}
    results = [make("e-s1", training=cheap), make("e-s2", training=dear), make("minilm")]
    (table,) = compare(results, costs=True, only="all_2", group="-s[0-9]")
    assert values(table) == {
        "all_2": [0.7, 0.7],
        "training pairs": [2000, None],
        "training CPU seconds": [7, None],
        "training wall seconds": [10.5, None],
        "training peak memory, GiB": [3 * 2**29, None],
    }
    assert "| training peak memory, GiB | 1.50 |  |" in render([table])
    assert table.rows[1].higher_is_better is None
    assert table.rows[1].cells[0].spread == pytest.approx(np.sqrt(2) * 1000)
