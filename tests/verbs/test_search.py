"""``interlingua.search`` gives back what ``interlingua search`` prints."""

from __future__ import annotations

import io
import json

import pytest

import interlingua
from interlingua.errors import ConfigError
from interlingua.retrieval.searcher import build_index
from tests.retrieval.test_searcher import files, model  # noqa: F401

pytest.importorskip("lancedb")


@pytest.fixture
def index(model, files, tmp_path):  # noqa: F811
    build_index(model, files, tmp_path / "index")
    return tmp_path / "index"


def test_each_question_has_its_ranking(done, index):
    options = {"top": 3, "mode": "hybrid", "per_language": 1}
    found = interlingua.search(index, ["Die Katze", "the mat"], **options)
    command = "--top 3 --mode hybrid --per-language 1 --json"
    said = done(f"search {index} 'Die Katze' 'the mat'", command)
    printed = [json.loads(line)["hits"] for line in said.out.splitlines()]
    assert [[hit["id"] for hit in hits] for hits in printed] == [
        [hit.id for hit in ranking.hits] for ranking in found
    ]
    assert len(found) == 2
    assert {hit.language for hit in found[0].hits} == {"deu_Latn", "eng_Latn", "tha_Thai"}


@pytest.mark.parametrize("questions", [[], "", ["Die Katze", " "]])
def test_a_question_that_is_empty_is_refused(tmp_path, questions):
    with pytest.raises(ConfigError, match="question is empty"):
        interlingua.search(tmp_path / "no index is read", questions)


def test_one_question_needs_no_list(index):
    one = interlingua.search(index, "Die Katze", languages=["de"], top=5)
    assert {hit.language for hit in one} == {"deu_Latn"}
    assert one.hits == one == interlingua.search(index, ["Die Katze"], languages="de", top=5)[0]


def test_questions_of_standard_input(index, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("Die Katze\n\nthe mat\n"))
    assert interlingua.search(index, "-") == interlingua.search(index, ["Die Katze", "the mat"])


def test_numbers_out_of_range_are_refused(index):
    with pytest.raises(ConfigError, match="top: expected"):
        interlingua.search(index, "Die Katze", top=0)
