from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from interlingua.errors import ConfigError
from interlingua.evaluation.report.comparison import ComparisonCell, compare_results
from interlingua.evaluation.report.rendering import render_tables
from interlingua.evaluation.scores import SubsetScores
from tests.evaluation.results_made import make, values

RNG = np.random.default_rng(0)
WEAK, STRONG = [RNG.random(300) < 0.5 for _ in range(2)], [RNG.random(300) < 0.8 for _ in range(2)]


def test_seeds_become_mean_and_standard_deviation():
    results = [
        make("ems-s1", scores=(0.9, 0.5)),
        make("ems-s2", scores=(0.7, 0.3)),
        make("other", scores=(0.6, 0.6)),
    ]
    (table,) = compare_results(results, group="-s[0-9]")
    assert table.columns == ["ems (2 seeds)", "other"]
    row = table.rows[0]
    assert row.name == "all_2"
    assert row.cells[0].value == pytest.approx(0.6)
    assert row.cells[0].spread == pytest.approx(np.std([0.7, 0.5], ddof=1))
    assert row.cells[1] == ComparisonCell(0.6)


def test_a_seed_without_the_score_leaves_the_cell_empty():
    short = make("e-s2", groups={"all_2": {"accuracy": 0.5}})
    (table,) = compare_results([make("e-s1"), short], group="-s[0-9]")
    assert values(table) == {"all_2": [0.6], "latin_script_1": [None]}


def test_what_differs_from_the_baseline_is_marked():
    results = [make("weak", items=WEAK), make("strong", items=STRONG), make("same", items=WEAK)]
    for by in ("groups", "languages", "tasks"):
        (table,) = compare_results(results, by=by, baseline="weak")
        assert all(
            [cell.differs for cell in row.cells] == [False, True, False] for row in table.rows
        ), by
        assert table.notes == [
            "† differs from weak: p < 0.05, paired bootstrap of the items, 2,000 resamples, each"
            " row tested separately"
        ]
    (table,) = compare_results(results[:1] + results[2:], baseline="weak")
    assert table.notes == []
    with pytest.raises(ConfigError, match=r"column 'week'; .*'weak'"):
        compare_results(results, baseline="week")


def test_nothing_is_marked_where_items_were_not_kept_or_are_not_the_score():
    other = make("other", items=STRONG)
    without = make("weak", scores=[np.mean(values) for values in WEAK])
    (table,) = compare_results([without, other], baseline="weak")
    assert not any(cell.differs for row in table.rows for cell in row.cells)
    pooled = [
        make(name, items=items, groups={"all_2": {"accuracy": mean}})
        for name, items, mean in (("weak", WEAK, 0.2), ("other", STRONG, 0.9))
    ]
    assert not any(
        cell.differs
        for row in compare_results(pooled, baseline="weak")[0].rows
        for cell in row.cells
    )


def test_nothing_is_marked_between_unlike_data():
    other = make("other", items=STRONG, data_sha256="0" * 64)
    (table,) = compare_results([make("weak", items=WEAK), other], baseline="weak")
    assert table.comparable == [True, False]
    assert not any(cell.differs for row in table.rows for cell in row.cells)


def test_seeds_are_compared_as_an_arm():
    results = [make(f"weak-s{n}", items=WEAK) for n in (1, 2)] + [
        make(f"strong-s{n}", items=STRONG) for n in (1, 2)
    ]
    (table,) = compare_results(results, group="-s[0-9]", baseline="weak")
    assert [cell.differs for cell in table.rows[0].cells] == [False, True]


def test_costs_of_training():
    cheap, dear = (
        {"arm": name, "pairs": pairs, "seconds": 10.5} for name, pairs in (("c", 1000), ("d", 3000))
    )
    dear |= {"cpu_seconds": 7, "peak_rss_bytes": 3 * 2**29}
    results = [make("e-s1", training=cheap), make("e-s2", training=dear), make("minilm")]
    (table,) = compare_results(results, costs=True, only="all_2", group="-s[0-9]")
    assert values(table) == {
        "all_2": [0.7, 0.7],
        "training pairs": [2000, None],
        "training CPU seconds": [7, None],
        "training wall seconds": [10.5, None],
        "training peak memory, GiB": [3 * 2**29, None],
    }
    assert "| training peak memory, GiB | 1.50 |  |" in render_tables([table])
    assert table.rows[1].higher_is_better is None
    assert table.rows[1].cells[0].spread == pytest.approx(np.sqrt(2) * 1000)


def test_the_mean_of_a_transfer_is_over_pairs_of_two_languages():
    """Exclude learning and testing in one language, which is no zero-shot transfer."""

    def transfer(name, between):
        pairs = [
            (("deu_Latn", "rus_Cyrl"), between),
            (("rus_Cyrl", "deu_Latn"), between),
            (("deu_Latn",) * 2, 1.0),
        ]
        subsets = tuple(
            SubsetScores(
                name="-".join(codes), languages=codes, pairs=10, scores={"accuracy": score}
            )
            for codes, score in pairs
        )
        return make(name, task="zero_shot_news", subsets=subsets)

    results = [transfer("a", 0.5), transfer("b", 0.25)]
    (table,) = compare_results(results, by="tasks")
    assert values(table) == {"zero_shot_news: accuracy, mean of 2": [0.5, 0.25]}
    (table,) = compare_results(
        [replace(results[0], subsets=results[0].subsets[2:])], by="tasks"
    )  # only requested
    assert values(table) == {"zero_shot_news: accuracy": [1.0]}
