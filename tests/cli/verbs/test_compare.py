from __future__ import annotations

import csv
import json

import pytest


@pytest.fixture
def files(tmp_path):
    paths = []
    for name, accuracy in (("one", 0.5), ("two", 0.75)):
        path = tmp_path / "results" / name / "abc" / "tatoeba.json"
        path.parent.mkdir(parents=True)
        entry = {"main_score": accuracy, "accuracy": accuracy, "pairs": 4, "hf_subset": "deu-eng"}
        own = {
            "version": "1",
            "main_metric": "accuracy",
            "higher_is_better": True,
            "dataset": "tatoeba_laser",
            "data_sha256": "0" * 64,
            "data_revision": None,
            "settings": {},
            "changed": [],
            "groups": {"muse_1of14": {"accuracy": accuracy}},
            "provenance": {
                "prompt": "",
                "model": {"name": name, "revision": "abc", "overrides": []},
            },
        }
        scores = {"test": [{**entry, "languages": ["deu-Latn", "eng-Latn"]}]}
        path.write_text(
            json.dumps(
                {"task_name": "tatoeba", "scores": scores, "evaluation_time": 1, "interlingua": own}
            )
        )
        paths.append(path)
    return paths


def test_files_side_by_side(done, files):
    said = done("compare", *files)
    assert "| group | one | two |" in said.out
    assert "| muse_1of14 | 50.0 | **75.0** |" in said.out


def test_of_several_tasks_a_table_of_all_comes_first(done, files):
    for path in files:
        content = json.loads(path.read_text()) | {"task_name": "mixed_pool"}
        path.with_stem("mixed_pool").write_text(json.dumps(content))
    folder = files[0].parents[2]
    said = done(f"compare {folder}")
    titles = [line for line in said.out.splitlines() if line.startswith("### ")]
    assert titles == [
        "### all tasks: means over language pairs, %",
        "### tatoeba: accuracy, %, higher is better",
        "### mixed_pool: accuracy, %, higher is better",
    ]
    assert "| mixed_pool: accuracy | 50.0 | **75.0** |" in said.out
    assert done(f"compare {folder} --format csv").out.count("tatoeba") == 2
    assert "all tasks" not in done(f"compare {folder} --only muse").out


def test_a_folder_by_languages_as_csv(done, files):
    said = done(f"compare {files[0].parents[2]} --by languages --format csv")
    assert [line[:5] for line in csv.reader(said.out.splitlines())] == [
        ["task", "rows", "metric", "model", "value"],
        ["tatoeba", "deu-eng", "accuracy", "one", "0.5"],
        ["tatoeba", "deu-eng", "accuracy", "two", "0.75"],
    ]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.md", "### tatoeba"),
        ("r.tex", "% tatoeba"),
        ("r.csv", "task,rows"),
        ("r.html", "<!doctype html>"),
    ],
)
def test_the_suffix_says_the_format(done, files, tmp_path, name, start):
    said = done(f"compare {files[0].parents[2]} -o {tmp_path}/{name}")
    assert said.out == f"written: {tmp_path / name}\n"
    assert (tmp_path / name).read_text("utf-8").startswith(start)


def test_an_analysis_beside_the_results_is_shown_with_them(refused, done, files):
    measure = {
        "name": "hubness",
        "title": "hubness",
        "value": 1.5,
        "unit": "",
        "better": "lower",
        "ideal": 0.0,
        "low": None,
        "high": None,
        "by_language": {},
        "definition": "How skewed.",
    }
    content = {
        "format": "interlingua-analysis-1",
        "analysis": "agnosticism",
        "version": "1",
        "dataset": "flores",
        "dataset_revision": None,
        "data_sha256": "0" * 64,
        "settings": {},
        "changed": [],
        "languages": ["deu_Latn"],
        "sentences": 3,
        "measures": [measure],
        "tables": {},
        "examples": [],
        "notes": [],
        "seconds": 1.0,
        "provenance": {"model": {"name": "one", "revision": "abc", "overrides": []}},
    }
    path = files[0].with_name("agnosticism.analysis.json")
    path.write_text(json.dumps(content))
    for named in ([files[0].parents[2]], [*files, path]):
        said = done("compare", *named, "--format html")
        assert "How skewed." in said.out
        assert ">1.500<" in said.out
    table = "### agnosticism: 1 languages, 3 lines each of flores\n\n| measure | one |"
    for named, tasks in (([*files, path], 1), ([path], 0), ([files[0].parents[2]], 1)):
        said = done("compare", *named)
        assert (said.out.count("### tatoeba"), said.out.count(table)) == (tasks, 1)
    said = done("compare", *files, f"{path} --metric accuracy")  # which no analysis has
    assert table not in said.out
    said = refused(f"compare {path} --by languages")
    assert said.err == "interlingua: no result files found; run `interlingua evaluate`\n"


def test_a_page_shows_how_far_it_is(done, files, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    said = done("compare", *files, f"-o {tmp_path}/r.html")
    assert "1 of 1 tasks" in said.err
    said = done("compare", *files, f"-o {tmp_path}/r.html --quiet")
    assert said.err == ""


def test_one_table_of_all_with_arms_in_rows(done, files):
    said = done("compare", *files, "--by tasks --rows arms --group 'e$'")
    assert "| arm | tatoeba: accuracy |" in said.out
    assert "| on | 50.0 |" in said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--format pdf", "unknown format 'pdf'; use one of: markdown, latex, csv, html"),
        ("-o report.pdf", "report.pdf: expected a suffix of: .md"),
        ("-o report.html --by tasks", "--by has no effect, because the page shows"),
        ("--by models", "unknown by 'models'; use one of: groups, languages, tasks"),
        ("--baseline onne", "unknown column 'onne'"),
        ("--baseline onne -o report.html", "unknown column 'onne'"),
        ("--only xtreme", "no row contains 'xtreme'"),
        ("--metric f1", "unknown metric 'f1'; use one of: accuracy"),
        ("nothing.json", "nothing.json: cannot be read"),
    ],
)
def test_slips_are_one_line(refused, files, arguments, message):
    assert message in refused(f"compare {files[0]}", arguments).err
