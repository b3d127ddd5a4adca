from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.results import (
    items_path,
    read_result,
    read_results,
    result_path,
    write_result,
    write_table,
)
from interlingua.evaluation.scores import Example, Items
from interlingua.evaluation.suite import evaluate_suite
from tests.evaluation.results_made import make

MTEBS = (
    '{"task_name": "T", "mteb_version": "2", "dataset_revision": "r", "scores": {"test":'
    ' [{"main_score": 0.5, "hf_subset": "a", "languages": ["deu-Latn"]}]}}'
)
"""A result as mteb writes it: only folders name the model."""


@pytest.fixture
def result(pair_folder, number_encoder):
    return evaluate_suite(number_encoder, ["tatoeba"], pair_folder)[0]


def test_round_trip(result, tmp_path):
    path = write_result(result, tmp_path)
    file = f"tatoeba_tatoeba_laser-{result.data_sha256[:8]}.json"
    assert path == tmp_path / "results/NumberEncoder/no_revision_available" / file
    again = read_result(path)
    assert dataclasses.replace(again, provenance={}) == dataclasses.replace(result, provenance={})
    assert again.provenance == json.loads(json.dumps(result.provenance))


def test_a_table_holds_all_but_items_members_and_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = []
    for name, items in (("a", [[1.0, 0.0], [0.5]]), ("b", None)):
        made = make(name, items=items, tables={"t": {"1-2": 0.3}}, notes=("n",))
        command = f"evaluate {tmp_path}/runs/{name} {Path.home()}/data"
        results.append(
            dataclasses.replace(made, provenance={**made.provenance, "command": command})
        )
    table = tmp_path / "all.jsonl"
    write_table(results, table)
    expected = []
    for result, name in zip(results, "ab", strict=True):
        made = {**result.provenance, "command": f"evaluate runs/{name} ~/data"}
        expected.append(
            dataclasses.replace(result, provenance=made, items={}, members={}, tables={})
        )
    assert read_results([table]) == expected
    assert read_results([table])[0].items == {}
    assert table.read_text(encoding="utf-8").count("\n") == 2


@pytest.mark.parametrize("line", ["[]", "{}", "nonsense", MTEBS])
def test_a_line_that_is_no_result_is_named(tmp_path, line):
    table = tmp_path / "all.jsonl"
    write_table([make()], table)
    with table.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match=r"all\.jsonl:2") as raised:
        read_results([table])
    assert "\n" not in str(raised.value)


def test_an_empty_table_and_a_folder_of_tables_are_refused(tmp_path):
    table = tmp_path / "all.jsonl"
    table.touch()
    with pytest.raises(DataError, match=r"all\.jsonl"):
        read_results([table])
    with pytest.raises(DataError, match=r"\.jsonl"):
        read_results([tmp_path])
    with pytest.raises(DataError, match=r"none\.jsonl"):
        read_results([tmp_path / "none.jsonl"])


def test_examples_are_kept_beside_and_never_of_another_run(result, tmp_path):
    path = write_result(result, tmp_path)
    found = read_result(path, examples=True).examples
    assert {one.query for one in found["fra-eng"]} == {
        "nombre 0",
        "nombre 1",
        "number 0",
        "number 1",
    }
    assert {name: len(of_pair) for name, of_pair in found.items()} == {"fra-eng": 4}
    assert read_result(path).examples == {}
    assert read_results([tmp_path], examples=True)[0].examples == found
    write_result(dataclasses.replace(result, examples={}), tmp_path)
    assert read_result(path, examples=True).examples == {}


def test_mteb_reads_it(result, tmp_path):
    mteb_results = pytest.importorskip("mteb.results")
    theirs = mteb_results.TaskResult.from_disk(write_result(result, tmp_path))
    assert theirs.get_score() == pytest.approx(result.main_score)
    assert theirs.get_score(languages=["rus"]) == 1.0
    assert theirs.task_name == "tatoeba_tatoeba_laser"


def test_mtebs_own_files_are_read(tmp_path):
    path = tmp_path / "intfloat__e5" / "abc" / "Tatoeba.json"
    path.parent.mkdir(parents=True)
    entry = {
        "main_score": 0.5,
        "f1": 0.5,
        "hf_subset": "deu-eng",
        "languages": ["deu-Latn", "eng-Latn"],
    }
    scores = {"test": [entry]}
    path.write_text(
        json.dumps(
            {
                "dataset_revision": "r",
                "task_name": "Tatoeba",
                "mteb_version": "2.0",
                "scores": scores,
            }
        )
    )
    result = read_result(path)
    assert (result.task, result.version, result.main_score) == ("Tatoeba", "mteb 2.0", 0.5)
    assert result.subsets[0].languages == ("deu_Latn", "eng_Latn")
    assert result.provenance["model"]["name"] == "intfloat__e5"
    assert result.groups == {"all_1": {"main_score": 0.5}}


@pytest.mark.parametrize(
    "options", [{"prompt": "query: "}, {"languages": ["deu", "fra", "rus"]}, {"compare": "text"}]
)
def test_other_settings_never_overwrite(result, pair_folder, number_encoder, tmp_path, options):
    (other,) = evaluate_suite(number_encoder, ["tatoeba"], pair_folder, **options)
    assert result_path(result, tmp_path) != result_path(other, tmp_path)
    assert result_path(other, tmp_path).parent.name.startswith("no_revision_available-")


def test_a_hub_ids_slash_is_no_folder(result, tmp_path):
    model = {**result.provenance["model"], "name": "intfloat/e5: small", "revision": "abc"}
    named = dataclasses.replace(result, provenance={**result.provenance, "model": model})
    assert result_path(named, tmp_path).parts[-3:-1] == ("intfloat__e5__small", "abc")


def test_another_part_of_a_published_set_does_not_overwrite_what_is_there(result, tmp_path):
    whole = dataclasses.replace(result, data_revision="v1", data_sha256="a" * 64)
    part = dataclasses.replace(result, data_revision="v1", data_sha256="b" * 64)
    first, second, again = (write_result(one, tmp_path) for one in (whole, part, part))
    assert second == again == first.with_stem(f"{first.stem}-bbbbbbbb")
    assert read_result(first).data_sha256 == whole.data_sha256


def test_folders_of_one_name_with_other_data_never_overwrite(pair_folder, number_encoder, tmp_path):
    files = []
    for corpus in ("a", "b"):
        shutil.copytree(pair_folder, tmp_path / corpus / "heldout")
        if corpus == "b":
            file = next((tmp_path / corpus / "heldout").glob("deu*"))
            file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
        (result,) = evaluate_suite(number_encoder, ["tatoeba"], tmp_path / corpus)
        files.append(write_result(result, tmp_path / "out"))
    assert len({*files}) == 2
    assert [read_result(file).task for file in files] == ["tatoeba_heldout"] * 2
    published = dataclasses.replace(result, data_revision="v1")
    assert result_path(published, tmp_path).name == "tatoeba_heldout.json"


def test_folders_are_searched_and_errors_are_one_line(result, tmp_path):
    path = write_result(result, tmp_path)
    assert [found.task for found in read_results([tmp_path, path])] == [result.task] * 2
    with pytest.raises(DataError, match=r"none\.json: cannot be read"):
        read_result(tmp_path / "none.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no result files"):
        read_results([tmp_path / "empty"])
    for content in (
        "{",
        "[]",
        "{}",
        '{"scores": {}}',
        '{"task_name": "t", "scores": {"test": []}}',
    ):
        path.write_text(content)
        with pytest.raises(DataError, match="not a result file"):
            read_result(path)


def test_a_cut_items_file_is_one_line(result, tmp_path):
    path = write_result(result, tmp_path)
    whole = items_path(path).read_bytes()
    for content in (whole[:100], b""):
        items_path(path).write_bytes(content)
        with pytest.raises(DataError, match=f"^{items_path(path)}: "):
            read_result(path)
    content = json.loads(path.read_text())
    del content["interlingua"]["files"]  # as earlier versions wrote it
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=rf"^{items_path(path)}: cannot be read"):
        read_result(path)


def test_a_folder_of_analyses_alone_adds_no_result(result, tmp_path):
    write_result(result, tmp_path / "found")
    (tmp_path / "looked").mkdir()
    (tmp_path / "looked" / "agnosticism.analysis.json").write_text("{}")
    assert len(read_results([tmp_path / "found", tmp_path / "looked"])) == 1
    with pytest.raises(DataError, match=r"looked: no result .*interlingua evaluate"):
        read_results([tmp_path / "looked"])


def test_items_members_and_notes_come_back(result, tmp_path):
    kept = {"deu-eng": Items(np.array([1.0, 0.5])), "a/b": Items(np.array([0.1]), np.array([4.5]))}
    kept["pairs"] = Items(np.array([0.1, 0.9]), np.array([False, True]))
    kept["f1"] = Items(np.array([2.0, 0.0]), None, np.array([2.0, 1.0]))
    noted = dataclasses.replace(result, items=kept, notes=("one thing", "another"))
    path = write_result(noted, tmp_path)
    again = read_result(path)
    assert again.notes == ("one thing", "another")
    assert again.members == result.members
    assert result.members["all_3"] == ("deu-eng", "fra-eng", "rus-eng")
    assert [again.items["deu-eng"].values.tolist(), again.items["deu-eng"].gold] == [
        [1.0, 0.5],
        None,
    ]
    assert [again.items["a/b"].values.tolist(), again.items["a/b"].gold.tolist()] == [[0.1], [4.5]]
    assert again.items["pairs"].gold.dtype == bool
    assert (again.items["f1"].gold, again.items["f1"].weights.tolist()) == (None, [2.0, 1.0])
    assert again.items["a/b"].weights is None
    write_result(dataclasses.replace(result, items={}), tmp_path)
    assert read_result(path).items == {}
    assert not items_path(path).exists()


def test_the_items_mean_is_the_score(result):
    for subset in result.subsets:
        assert result.items[subset.name].values.mean() == pytest.approx(
            subset.scores[result.main_metric]
        )


def test_files_of_earlier_versions_are_read(result, tmp_path):
    path = write_result(result, tmp_path)
    content = json.loads(path.read_text())
    del content["interlingua"]["members"], content["interlingua"]["notes"]
    path.write_text(json.dumps(content))
    assert (read_result(path).members, read_result(path).notes) == ({}, ())


class Killed(BaseException):
    """Simulated SIGKILL, after which no file changes."""


def test_a_kill_at_any_moment_leaves_scores_with_their_own_items(result, tmp_path, monkeypatch):
    """Kill before each rename and removal. Either result is complete, with its own items."""
    example = Example(
        item=0,
        query="",
        expected="a",
        retrieved="b",
        expected_score=0.5,
        retrieved_score=0.6,
        languages=("deu_Latn", "eng_Latn"),
    )
    results = []
    for value in (0.25, 0.75):
        items = {subset.name: Items(np.full(3, value)) for subset in result.subsets}
        seen = {result.subsets[0].name: (example._replace(query=str(value)),)}
        results.append(dataclasses.replace(result, seconds=value, items=items, examples=seen))

    def dying(name, moment, calls):
        function = getattr(os, name)

        def call(*arguments, **options):
            calls.append(name)
            if len(calls) >= moment:
                raise Killed
            return function(*arguments, **options)

        return call

    outcomes, ended = [], False
    while not ended:
        folder, calls = tmp_path / str(len(outcomes)), []
        write_result(results[0], folder)
        with monkeypatch.context() as patch:
            for name in ("replace", "unlink"):
                patch.setattr(os, name, dying(name, len(outcomes) + 1, calls))
            try:
                write_result(results[1], folder)
                ended = True
            except Killed:
                pass
        [found] = read_results([folder], examples=True)
        assert {name: set(items.values.tolist()) for name, items in found.items.items()} == {
            subset.name: {found.seconds} for subset in result.subsets
        }
        assert [one.query for of_pair in found.examples.values() for one in of_pair] == [
            str(found.seconds)
        ]
        outcomes.append(found.seconds)
    assert not list(folder.rglob("*.next"))
    assert outcomes == sorted(outcomes)
    assert outcomes.count(0.25) >= 3
    assert outcomes.count(0.75) >= 3
