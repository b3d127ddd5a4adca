from __future__ import annotations

import pytest

from interlingua.errors import ConfigError
from interlingua.evaluation.report.grouping import group_columns, settings_of
from tests.evaluation.results_made import make


def names_of(columns):
    return [column.name for column in columns]


def test_a_column_per_model_over_all_tasks():
    results = [make("a"), make("b"), make("a", task="xsim", higher=False)]
    columns = group_columns(results)
    assert [column.label for column in columns] == ["a", "b"]
    assert [result.task for result in columns[0].results] == ["tatoeba", "xsim"]
    assert names_of(columns) == ["a", "b"]


def test_a_file_named_twice_counts_once():
    assert len(group_columns([make("a"), make("a")])[0].results) == 1


def test_the_same_measured_again_is_no_seed():
    results = [make("a"), make("a", seconds=2.0)]
    assert names_of(group_columns(results)) == ["a r-a", "a r-a (result 2)"]
    with pytest.raises(ConfigError, match=r"a r-a .* 2 times on tatoeba"):
        group_columns(results, "-s[0-9]")


def test_revisions_prompts_and_settings_tell_columns_apart():
    by_text = {"settings": {"compare": "text"}, "changed": ("compare",)}
    results = [
        make("a", revision="r1"),
        make("a", revision="r1", overrides=["prompt='q: '"]),
        make("a", **by_text),
    ]
    assert names_of(group_columns(results)) == [
        "a r1",
        "a r1 (prompt='q: ')",
        "a r-a (compare=text)",
    ]
    assert len(group_columns([make("a"), make("a", **by_text)], by_settings=False)) == 1


def test_a_pattern_cut_out_of_names_joins_seeds():
    results = [make("ems-s1-best"), make("ems-s2-best"), make("mexma-s1-best"), make("LaBSE")]
    columns = group_columns(results, "-s[0-9]+-best")
    assert names_of(columns) == ["ems (2 seeds)", "mexma", "LaBSE"]
    assert [column.seeds for column in columns] == [2, 1, 1]
    with pytest.raises(ConfigError, match=r"'\[': not a regular expression"):
        group_columns(results, "[")


def test_seeds_with_another_prompt_are_another_arm():
    columns = group_columns(
        [make("e-s1"), make("e-s2"), make("e-s1", overrides=["prompt='q: '"])], "-s[0-9]"
    )
    assert names_of(columns) == ["e (2 seeds)", "e (prompt='q: ')"]


@pytest.mark.parametrize(
    ("models", "label"),
    [
        (("ems-s1", "ems-s2"), "ems"),
        (("ems-s1-best", "ems-s2-best"), "ems-best"),
        (("runs-seed1", "runs-seed13"), "runs"),
        (("bees1", "bees2"), "bees"),
        (("run-s1-best", "run-s13-best"), "run-best"),
        (("one", "two"), "one"),
    ],
)
def test_models_of_one_config_are_called_by_what_their_names_share(models, label):
    results = [make(name, training={"arm": "c1", "seed": i}) for i, name in enumerate(models)]
    assert names_of(group_columns([*results, make("other")], "config")) == [
        f"{label} (2 seeds)",
        "other",
    ]


def test_models_of_unknown_training_stay_apart():
    results = [make("a"), make("a", revision="r2"), make("b", training={"arm": "c1"})]
    assert [len(column.results) for column in group_columns(results, "config")] == [2, 1]


def test_settings_in_words():
    result = make(
        settings={"languages": ["de", "fr"], "k": 4, "compare": "text"},
        changed=("languages", "compare"),
    )
    assert settings_of(result) == "languages=de+fr, compare=text"


def test_another_set_of_one_name_shows_its_folder():
    results = [make("a"), make("a", dataset="two/heldout", data_sha256="2" * 64)]
    assert names_of(group_columns(results)) == ["a r-a", "a r-a (two/heldout, result 2)"]
    [column] = group_columns(results, by_settings=False)  # a section for each
    assert len(column.results) == 2
