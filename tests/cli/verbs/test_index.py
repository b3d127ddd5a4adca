from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from interlingua.config.registry import DEFAULT_MODEL
from interlingua.retrieval.passage_index import PassageIndex
from tests.retrieval.test_searcher import files, model  # noqa: F401

pytest.importorskip("lancedb")


def test_an_index_is_built_extended_and_cut(done, model, files, tmp_path, caplog):  # noqa: F811
    folder = tmp_path / "index"
    printed = done(f"index build {model}", *files[:2], f"-o {folder}")
    assert printed.err == f"{folder}: 40 passages added, 0 replaced, 0 deleted, 0 unchanged\n"
    printed = done(f"index build {model}", *files, f"-o {folder}")
    assert printed.out == ""
    assert "20 passages added, 0 replaced, 0 deleted, 40 unchanged" in printed.err
    printed = done(f"index add {folder} {files[0]} --language fr --quiet")
    assert printed.err == ""
    printed = done(f"index delete {folder} fra_Latn.txt:1 --where \"language = 'fra_Latn'\"")
    assert "20 passages deleted" in printed.err
    printed = done(f"index delete {folder} eng_Latn.txt:1 eng_Latn.txt eng_Latn.txt")
    assert "1 passage deleted" in printed.err
    assert "1 of 2 ids were not found" in caplog.records[-1].getMessage()
    assert "file = 'NAME'" in caplog.records[-1].getMessage()
    assert PassageIndex(folder).count() == 39


def test_an_empty_file_is_an_error(refused, model, files, tmp_path):  # noqa: F811
    (tmp_path / "fr.txt").write_text("\n")
    printed = refused(f"index build {model}", *files, f"{tmp_path}/fr.txt -o {tmp_path}/index")
    assert printed.out == ""
    assert "fr.txt: the file contains no passage" in printed.err
    assert not (tmp_path / "index").exists()


def test_before_a_file_the_model_may_be_left_out(done, model, files, tmp_path, monkeypatch):  # noqa: F811
    entry = SimpleNamespace(name=DEFAULT_MODEL, value="package:folder", load=lambda: lambda: model)
    monkeypatch.setattr("interlingua.config.registry.installed", lambda group: [entry])
    done("index build", *files[:2], f"-o {tmp_path}/index")
    index = PassageIndex(tmp_path / "index")
    assert (index.count(), index.settings.model) == (40, DEFAULT_MODEL)
    done(f"index add {tmp_path}/index {files[2]}")
    assert PassageIndex(tmp_path / "index").count() == 60


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ("bild m", "did you mean 'build'"),
        ("build m a.txt", "-o DIR"),
        ("build m a.txt -o x", "a.txt"),
        ("build m -o x", "m: no files of passages"),
        ("add x a.txt --prompt p", "--prompt is not an option of index add"),
        ("add x a.txt --dtype int8 --question-prompt p", "--question-prompt"),
        ("add x a.txt --approximate", "--approximate"),
        ("delete x", "--where"),
        ("delete x id --language de", "--language is not an option of index delete"),
        ("delete nothing id", "no index"),
    ],
)
def test_users_errors_are_one_line(refused, tmp_path, monkeypatch, arguments, match):
    monkeypatch.chdir(tmp_path)
    assert match in refused("index", arguments).err
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_an_index_is_shown_and_listed(done, model, files, tmp_path):  # noqa: F811
    records = tmp_path / "news.jsonl"
    records.write_text('{"id": "n1", "text": "en1", "title": "en2", "lang": "en", "year": 2024}\n')
    folder = tmp_path / "index"
    done(f"index build {model}", files[0], records, f"-o {folder}")
    printed = done(f"index info {folder}").out
    assert "passages         21" in printed
    assert "eng_Latn 1" in printed
    info = json.loads(done(f"index info {folder} --json").out)
    assert (info["passages"], info["is_approximate"]) == (21, False)
    lines = done(f"index list {folder}").out.splitlines()
    assert len(lines) == 21
    assert "eng_Latn  n1  en2: en1" in lines
    record = done(f'index list {folder} --where "year = 2024" --json').out
    expected = {"id": "n1", "text": "en1", "title": "en2", "language": "eng_Latn", "year": 2024}
    assert json.loads(record) == expected


def test_what_is_listed_can_be_added_again(done, model, files, tmp_path):  # noqa: F811
    folder = tmp_path / "index"
    (tmp_path / "a.jsonl").write_text('{"id": "n1", "text": "en1", "lang": "en", "year": 2024}\n')
    done(f"index build {model} {tmp_path}/a.jsonl -o {folder}")
    (tmp_path / "b.jsonl").write_text(done(f"index list {folder} --json").out)
    printed = done(f"index add {folder} {tmp_path}/b.jsonl")
    assert "0 passages added, 0 replaced, 0 deleted, 1 unchanged" in printed.err


def test_compaction_frees_the_disk(done, model, files, tmp_path):  # noqa: F811
    folder = tmp_path / "index"
    done(f"index build {model}", *files, f"-o {folder}")
    done(f"index delete {folder} --where \"language = 'deu_Latn'\"")
    before = json.loads(done(f"index info {folder} --json").out)
    after = json.loads(done(f"index compact {folder} --json").out)
    assert after["versions"] == 1 < before["versions"]
    assert after["bytes"] < before["bytes"]
    assert after["passages"] == before["passages"] == PassageIndex(folder).count()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ("info", "arguments"),
        ("info x y", "index info: expected one index"),
        ("list x --language de", "--language is not an option of index list"),
        ("compact nothing", "no index"),
    ],
)
def test_wrong_uses_of_the_actions_that_read(refused, arguments, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert match in refused(f"index {arguments}").err


def test_columns_are_named_for_the_build_and_for_added_files(done, refused, model, files, tmp_path):  # noqa: F811
    folder = tmp_path / "index"
    (tmp_path / "a.csv").write_text("Key,Body,Head,tongue,year\nr1,Eins.,Zahl,de,2024\n")
    (tmp_path / "b.jsonl").write_text('{"Key": "r2", "Body": "Two.", "tongue": "en"}\n')
    columns = "--text-column body --id-column key --language-column tongue"
    done(f"index build {model} {tmp_path}/a.csv {columns} --title-column head -o {folder}")
    done(f"index add {folder} {tmp_path}/b.jsonl {columns}")
    printed = done(f"index list {folder} --json")
    records = sorted(map(json.loads, printed.out.splitlines()), key=lambda record: record["id"])
    first = {"id": "r1", "text": "Eins.", "title": "Zahl", "language": "deu_Latn", "year": "2024"}
    assert records == [first, {"id": "r2", "text": "Two.", "language": "eng_Latn"}]
    printed = refused(f"index add {folder} {tmp_path}/a.csv --text-column Boddy")
    assert "a.csv:1: " in printed.err
    assert "Key, Body, Head, tongue, year" in printed.err
