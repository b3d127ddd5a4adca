from __future__ import annotations

import dataclasses
import json

import pytest

from interlingua.errors import ConfigError
from interlingua.evaluation.report.page import is_language_matrix, page_data
from interlingua.report.pages import macro
from tests.evaluation.page_made import CODES, all_pairs, make, panel
from tests.progress_records import Recorded


def test_what_the_page_shows():
    weak, strong = make("weak", 0.5), make("strong", 0.9, seed=1)
    data = page_data([weak, strong])
    assert json.loads(json.dumps(data)) == data
    assert [model["name"] for model in data["models"]] == ["weak", "strong"]
    assert data["models"][0]["facts"] == {"revision": "r-weak", "pooling": "mean"}
    (task,) = data["tasks"]
    assert task["metrics"] == [
        {"name": "accuracy", "label": "accuracy"},
        {"name": "accuracy_forward", "label": "accuracy forward"},
    ]
    assert (task["matrix"], task["pairs"], task["digits"]) == (False, [], 1)
    german = task["rows"][0]
    assert german["title"] == "German"
    assert german["languages"] == ["deu_Latn", "eng_Latn"]
    assert german["pairs"] == 200
    assert german["values"] == [
        weak.subsets[0].scores["accuracy"],
        strong.subsets[0].scores["accuracy"],
    ]
    assert german["best"] == [1]
    assert german["other"] == {"accuracy_forward": [0.5, 0.5]}
    base, (difference, low, high, p_value) = german["tests"]
    assert base is None
    assert difference == pytest.approx(german["values"][1] - german["values"][0], abs=1e-4)
    assert low < difference < high
    assert p_value < 0.05
    assert task["mean"]["values"] == [weak.main_score, strong.main_score]
    assert task["groups"][0]["name"] == "all_3"
    assert data["languages"]["rus_Cyrl"] == {
        "name": "Russian",
        "script": "Cyrl",
        "family": "Indo-European: Slavic",
    }


def test_scores_are_rounded_once():
    score = 0.57050039  # 57.1 %, but 57.0 % by way of 0.5705
    assert [f"{100 * value:.1f}" for value in (score, round(score, 6))] == ["57.1", "57.0"]
    first = make("a", 0.5)
    subsets = tuple(dataclasses.replace(one, scores={"accuracy": score}) for one in first.subsets)
    analysis = panel("a", 0.2)
    analysis["measures"][0]["by_language"] = {"deu_Latn": score}
    data = page_data([dataclasses.replace(first, subsets=subsets, items={})], analyses=[analysis])
    task, measure, _ = data["tasks"]
    shown = [(task, task["mean"]), (task, task["rows"][0]), (measure, measure["rows"][0])]
    assert [macro("number", "compare_tables.html")(of, row["values"][0]) for of, row in shown] == [
        "57.1"
    ] * 3


def test_each_task_is_told():
    told = Recorded()
    page_data([make("a", 0.5), make("a", 0.5, task="xsim")], progress=told)
    assert told.states == [("tatoeba", 1, 2), ("xsim", 2, 2)]


def test_the_baseline_may_be_another():
    data = page_data([make("weak", 0.5), make("strong", 0.9)], baseline="strong")
    assert data["baseline"] == 1
    assert data["tasks"][0]["mean"]["tests"][0][0] < 0
    assert data["tasks"][0]["mean"]["tests"][1] is None
    with pytest.raises(ConfigError, match=r"column 'stronk'; .*'strong'"):
        page_data([make("weak", 0.5), make("strong", 0.9)], baseline="stronk")


def test_ordered_pairs_of_languages_are_a_matrix():
    first, second = make("a", 0.5, pairs=all_pairs()), make("b", 0.9, pairs=all_pairs(), seed=1)
    (task,) = page_data([first, second])["tasks"]
    assert task["matrix"]
    assert [pair["languages"] for pair in task["pairs"]] == [list(pair) for pair in all_pairs()]
    assert all(pair["tests"][1][3] < 0.05 for pair in task["pairs"])
    german = task["rows"][0]
    assert german["name"] == "deu_Latn"
    assert german["title"] == "German"
    assert german["languages"] == ["deu_Latn"]
    of_german = [s.scores["accuracy"] for s in first.subsets if "deu_Latn" in s.languages]
    assert len(of_german) == 4
    assert german["values"][0] == pytest.approx(sum(of_german) / 4, abs=1e-5)
    assert german["tests"][1][3] < 0.05
    assert german["other"]["accuracy_forward"] == [0.5, 0.5]


def test_the_mean_of_a_transfer_leaves_out_what_stays_in_one_language():
    made = make("a", 0.5, pairs=[*all_pairs(), ("deu_Latn", "deu_Latn")], task="zero_shot_news")
    (task,) = page_data([made])["tasks"]
    between = [s.scores["accuracy"] for s in made.subsets if len(set(s.languages)) == 2]
    assert task["averaged"] == len(between) == len(task["pairs"]) - 1
    assert task["mean"]["values"] == [pytest.approx(sum(between) / len(between), abs=1e-5)]


def test_pairs_with_english_alone_are_no_matrix():
    def subsets(*pairs):
        return {one.name: one for one in make("a", 0.5, pairs=list(pairs)).subsets}

    assert is_language_matrix(subsets(*all_pairs()))
    assert not is_language_matrix(
        subsets(("deu_Latn", "eng_Latn"), ("rus_Cyrl", "eng_Latn"), ("arb_Arab", "eng_Latn"))
    )
    assert not is_language_matrix(subsets(("deu_Latn", "eng_Latn"), ("eng_Latn", "deu_Latn")))
    assert not is_language_matrix(
        subsets(("deu_Latn", "deu_Latn"), ("rus_Cyrl", "rus_Cyrl"), ("arb_Arab", "arb_Arab"))
    )


def test_a_pair_that_one_model_lacks_leaves_no_mean_of_others():
    (task,) = page_data([make("a", 0.5, pairs=all_pairs()), make("b", 0.9, pairs=all_pairs()[1:])])[
        "tasks"
    ]
    german = next(row for row in task["rows"] if row["name"] == "deu_Latn")
    assert german["values"][0] is not None
    assert german["values"][1] is None


def test_rows_of_one_name_are_told_apart():
    pairs = [("spa_Latn", "spa_Latn"), ("spa_Latn", "eng_Latn"), ("deu_Latn", "eng_Latn")]
    (task,) = page_data([make("a", 0.5, pairs=pairs)])["tasks"]
    assert [row["title"] for row in task["rows"]] == [
        "Spanish (spa_Latn-spa_Latn)",
        "Spanish (spa_Latn-eng_Latn)",
        "German",
    ]


def test_each_choice_of_settings_is_a_task_of_its_own_and_what_differs_is_said():
    by_text = {"settings": {"compare": "text"}, "changed": ("compare",)}
    results = [
        make("a", 0.5),
        make("b", 0.9, **by_text),
        make("c", 0.5, data_sha256="0" * 64, notes=("mind this",)),
    ]
    first, second = page_data(results)["tasks"]
    assert [task["settings"] for task in (first, second)] == ["", "compare=text"]
    assert first["mean"]["values"][1] is None
    assert second["mean"]["values"][0] is None
    assert first["comparable"] == [True, True, False]
    assert "the columns differ in data" in first["notes"][0]
    assert first["notes"][1] == "mind this"
    with pytest.raises(ConfigError, match=r"tatoeba: the columns .*--strict"):
        page_data(results, strict=True)


def test_long_settings_are_shortened_as_far_as_tasks_stay_apart():
    def choice(task, languages):
        return make("a", 0.5, task=task, settings={"languages": languages}, changed=("languages",))

    one, other = [f"l{n}" for n in range(12)], [f"m{n}" for n in range(12)]
    tasks = page_data(
        [choice("xsim", one), choice("sib", one), choice("sib", other), make("a", 0.5, task="sick")]
    )["tasks"]
    assert [task["brief"] for task in tasks] == [
        "12 languages",
        "",
        tasks[2]["settings"],
        tasks[3]["settings"],
    ]
    assert tasks[0]["settings"] == tasks[2]["settings"] == "languages=" + "+".join(one)


def test_seeds_become_one_column():
    training = {"pairs": 1000, "seconds": 2.5}
    results = [make(f"ems-s{n}", share, seed=n) for n, share in ((1, 0.5), (2, 0.9))]
    for result in results:
        result.provenance["model"]["training"] = training
    data = page_data(results, group="-s[0-9]")
    assert [(model["name"], model["seeds"]) for model in data["models"]] == [("ems (2 seeds)", 2)]
    assert data["models"][0]["training"] == {"training pairs": 1000, "training wall seconds": 2.5}
    assert data["tasks"][0]["mean"]["spreads"][0] > 0.1


def test_languages_of_the_panel_and_of_wrong_neighbors_are_known():
    data = page_data([make("a", 0.5)], analyses=[panel("a", 0.3)])
    shown = [*CODES, "eng_Latn"]
    assert set(shown) <= set(data["languages"])
    assert [task["name"] for task in data["tasks"]] == ["tatoeba", "same-language bias", "hubness"]


def test_languages_that_nobody_knows_stand_for_themselves():
    data = page_data([make("a", 0.5, pairs=[("qqq_Latn", "eng_Latn"), ("deu_Latn", "eng_Latn")])])
    assert data["languages"]["qqq_Latn"] == {
        "name": "qqq_Latn",
        "script": "Latn",
        "family": "unknown family",
    }
    assert data["tasks"][0]["rows"][0]["title"] == "qqq_Latn"


def test_metrics_of_the_other_direction_and_those_shown_below_the_mean():
    result = make("a", 0.5)
    subsets = tuple(
        dataclasses.replace(one, scores={**one.scores, "bias": 0.25}) for one in result.subsets
    )
    result = dataclasses.replace(
        result, subsets=subsets, shown=("bias",), lower_is_better=("bias",)
    )
    (task,) = page_data([result])["tasks"]
    assert {"name": "bias", "label": "bias", "higher": False} in task["metrics"]
    assert "higher" not in task["metrics"][0]
    assert task["groups"][0] == {"name": "bias", "values": [0.25]}


def test_guessing_is_known_where_one_of_many_has_to_be_found():
    (task,) = page_data([make("a", 0.5)])["tasks"]
    assert [row["chance"] for row in task["rows"]] == [1 / row["pairs"] for row in task["rows"]]
    (other,) = page_data([make("a", 0.5, task="sts17")])["tasks"]
    assert all("chance" not in row for row in other["rows"])


def test_two_sets_of_one_name_are_told_by_their_folders():
    first = dataclasses.replace(
        make("a", 0.5, task="tatoeba_heldout"), dataset="one/heldout", data_sha256="1" * 64
    )
    second = dataclasses.replace(first, dataset="two/heldout", data_sha256="2" * 64)
    data = page_data([first, second])
    assert [task["settings"] for task in data["tasks"]] == ["one/heldout", "two/heldout"]
    same = dataclasses.replace(second, dataset="one/heldout")
    assert [task["settings"] for task in page_data([first, same])["tasks"]] == [
        "one/heldout 11111111",
        "one/heldout 22222222",
    ]
    (alone,) = page_data([first])["tasks"]
    assert alone["settings"] == ""
