from __future__ import annotations

import csv
import json

import pytest

from interlingua.cli import main


@pytest.fixture
def files(tmp_path):
    paths = []
    for name, accuracy in (("one", 0.5), ("two", 0.75)):
        path = tmp_path / "results" / name / "abc" / "tatoeba.json"
        path.parent.mkdir(parents=True)
        entry = {"main_score": accuracy, "accuracy": accuracy, "pairs": 4, "hf_subset": "deu-eng"}
        own = {
            "version": "1", "main_metric": "accuracy", "higher_is_better": True, "dataset": "tatoeba_laser",
            "data_sha256": "0" * 64, "data_revision": None, "settings": {}, "changed": [],
            "groups": {"muse_1of14": {"accuracy": accuracy}},
            "provenance": {"prompt": "", "model": {"name": name, "revision": "abc", "overrides": []}},
        }  # fmt: skip
        scores = {"test": [{**entry, "languages": ["deu-Latn", "eng-Latn"]}]}
        path.write_text(
            json.dumps({"task_name": "tatoeba", "scores": scores, "evaluation_time": 1, "interlingua": own})
        )
        paths.append(path)
    return paths


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main.main(["compare", *map(str, arguments)])
    return stop.value.code or 0, capsys.readouterr()


def test_files_side_by_side(capsys, files):
    code, said = run(capsys, *files)
    assert code == 0, said.err
    assert "| group | one | two |" in said.out
    assert "| muse_1of14 | 50.0 | **75.0** |" in said.out


def test_a_folder_by_languages_as_csv(capsys, files):
    code, said = run(capsys, files[0].parents[2], "--by", "languages", "--format", "csv")
    assert code == 0, said.err
    assert list(csv.reader(said.out.splitlines())) == [["tatoeba", "one", "two"], ["deu-eng", "50.0", "75.0"]]


def test_one_table_of_all_with_arms_in_rows(capsys, files):
    code, said = run(capsys, *files, "--by", "tasks", "--rows", "arms", "--group", "e$")
    assert code == 0, said.err
    assert "| arm | tatoeba: accuracy |" in said.out
    assert "| on | 50.0 |" in said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "html"], "format 'html' is not one of markdown, csv, latex"),
        (["--by", "models"], "by 'models' is not one of groups, languages, tasks"),
        (["--baseline", "onne"], "there is no column 'onne'"),
        (["--only", "xtreme"], "no row contains 'xtreme'"),
        (["--metric", "f1"], "metric 'f1' is not one of accuracy"),
        (["nothing.json"], "nothing.json: can't be read"),
    ],
)
def test_slips_are_one_line(capsys, files, arguments, message):
    code, said = run(capsys, files[0], *arguments)
    assert code == 2
    assert message in said.err
    assert said.err.count("\n") == 1
