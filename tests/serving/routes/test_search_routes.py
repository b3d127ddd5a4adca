"""/search: the same ranking as in Python, and what is refused."""

from __future__ import annotations

import shutil

import pytest

from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import Searcher

pytest.importorskip("lancedb")


@pytest.fixture
def client(start, searcher):
    return start(searcher=searcher)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "text"},
        {"mode": "hybrid", "top": 3},
        {"mode": "feedback", "per_language": 3},
        {"per_language": 2},
        {"languages": ["de"]},
    ],
)
def test_the_ranking_is_that_of_python(client, searcher, options):
    reply = client.post("/search", json={"query": "de3 en4", **options}).json()
    expected = searcher.search("de3 en4", **options)
    assert [hit["id"] for hit in reply["hits"]] == [hit.id for hit in expected.hits]
    assert [hit["score"] for hit in reply["hits"]] == pytest.approx(
        [hit.score for hit in expected.hits], abs=1e-5
    )
    assert reply["languages"] == [share._asdict() for share in expected.shares]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"query": ""}, 400),
        ({"query": " "}, 422),
        ({"query": "x" * 20_000}, 400),
        ({"query": "x", "top": 0}, 400),
        ({"query": "x", "top": 1000}, 400),
        ({"query": "x", "mode": "vektor"}, 400),
        ({"query": "x", "languages": ["fr"]}, 422),
        ({"query": "x", "languages": ["Klingonese"]}, 422),
        ({"query": "x", "language": "Klingonese"}, 422),
        ({"query": "x", "per_language": 0}, 400),
    ],
)
def test_what_can_not_be_done(client, body, status):
    reply = client.post("/search", json=body)
    assert reply.status_code == status
    assert isinstance(reply.json()["error"], str)


@pytest.mark.parametrize("mode", ["vector", "text"])
def test_a_damaged_index_is_the_server_s_fault(start, searcher, tmp_path, log, mode):
    folder = shutil.copytree(searcher.index.folder, tmp_path / "index")
    client = start(searcher=Searcher(PassageIndex(folder), searcher.model))
    shutil.rmtree(folder / "passages.lance" / "data")
    reply = client.post("/search", json={"query": "de3", "mode": mode})
    assert reply.status_code == 500
    assert str(tmp_path) not in reply.text
    assert str(folder) in log[-1]["error"]


def test_info_says_whether_questions_need_a_language(client, searcher, monkeypatch):
    assert client.get("/info").json()["question_needs_language"] is False
    monkeypatch.setattr(type(searcher.model), "needs_language", True)
    assert client.get("/info").json()["question_needs_language"] is True
    assert client.post("/search", json={"query": "de3"}).status_code == 422
    assert client.post("/search", json={"query": "de3", "language": "de"}).status_code == 200


def test_info_counts_the_passages(start, client):
    assert client.get("/info").json()["indexed_passages"] == {"deu_Latn": 15, "eng_Latn": 15}
    other = start()
    assert other.get("/info").json()["indexed_passages"] is None
    assert other.post("/search", json={"query": "x"}).status_code == 404
