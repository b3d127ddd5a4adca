from __future__ import annotations

import io
import json

import pytest

from interlingua.retrieval.searcher import build_index
from tests.retrieval.test_searcher import files, model  # noqa: F401

pytest.importorskip("lancedb")


@pytest.fixture
def index(model, files, tmp_path):  # noqa: F811
    build_index(model, files, tmp_path / "index")
    return tmp_path / "index"


def test_hits_are_lines_and_languages_are_reported(done, index):
    printed = done(f"search {index} 'Die Katze' --top 3 --per-language 1")
    rows = [line.split() for line in printed.out.splitlines()]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert {row[2] for row in rows} == {"deu_Latn", "eng_Latn", "tha_Thai"}
    assert "deu_Latn 33% (33% of the index)" in printed.err
    printed = done(f"search {index} 'Die Katze' --languages de --quiet")
    assert {line.split()[2] for line in printed.out.splitlines()} == {"deu_Latn"}
    assert printed.err == ""


def test_without_hits_it_says_what_to_try(done, index):
    printed = done(f"search {index} zzzunknown --mode text --languages de")
    assert printed.out == ""
    assert printed.err.startswith("nothing found; ")
    assert all(part in printed.err for part in ("--mode", "--languages"))
    assert printed.err.count("\n") == 1
    assert done(f"search {index} zzzunknown --mode text --quiet").err.startswith("nothing found; ")


def test_questions_are_read_from_standard_input_as_json(done, index, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("Die Katze\n\nthe mat\n"))
    printed = done(f"search {index} - --json --top 2 --mode hybrid")
    first, second = map(json.loads, printed.out.splitlines())
    assert (first["question"], second["question"]) == ("Die Katze", "the mat")
    assert [set(hit) for hit in first["hits"]] == [
        {"id", "score", "text", "title", "language", "metadata", "places", "link"}
        | {"document", "offset", "heading"}
    ] * 2
    assert sum(share["found"] for share in first["languages"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("question", "typed"), [("''", ""), ("' '", ""), ("-", ""), ("-", "\n \n")]
)
def test_an_empty_question_is_an_error(refused, index, monkeypatch, question, typed):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    printed = refused(f"search {index} {question}")
    assert printed.out == ""
    assert "question" in printed.err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ("--mode vektor", "vektor"),
        ("--languages fr", "fra_Latn"),
        ("--where 'nonsense ='", "--where"),
        ("--model gone", "gone"),
        ("--top 0", "--top"),
    ],
)
def test_users_errors_are_one_line(refused, index, options, match):
    assert match in refused(f"search {index} 'Die Katze'", options).err
