"""Changes of an index over HTTP, and changes of it by other processes."""

from __future__ import annotations

import json
import shutil
import time

import numpy as np
import pytest

pytest.importorskip("lancedb")

from interlingua.errors import ConfigError
from interlingua.retrieval.chunks import ChunkSettings
from interlingua.retrieval.passage_files import passage_of
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import REFRESH_SECONDS, Searcher, delete_from_index
from interlingua.serving.settings import ServeSettings

KEY = {"authorization": "Bearer secret"}
PASSAGES = [
    {
        "id": "n1",
        "text": "en1 en2 en9",
        "title": "en7",
        "language": "en",
        "year": 2024,
        "url": "https://example.org/1",
    },
    {"id": 2, "text": "de9 de8", "url": "javascript:alert(1)"},
]


@pytest.fixture
def copied(searcher, tmp_path):
    """A separate index for each test."""
    folder = shutil.copytree(searcher.index.folder, tmp_path / "index")
    return Searcher(PassageIndex(folder), searcher.model)


@pytest.fixture
def client(start, copied):
    client = start(searcher=copied, api_key="secret", admin=True)
    client.headers.update(KEY)
    return client


def ids(client, **body):
    reply = client.post("/search", json={"query": "en1 en2 en9", "top": 100, **body})
    assert reply.status_code == 200, reply.text
    return [hit["id"] for hit in reply.json()["hits"]]


def test_added_passages_are_found_at_once_with_title_metadata_and_link(client, copied, encoder):
    body = {"passages": PASSAGES, "language": "de"}
    reply = client.post("/index/add", json=body)
    assert reply.json() == {
        "added": 2,
        "replaced": 0,
        "deleted": 0,
        "unchanged": 0,
        "passages": 32,
    }
    found = client.post("/search", json={"query": "en7 en1 en2 en9", "top": 32}).json()["hits"]
    hit = next(hit for hit in found if hit["id"] == "n1")
    assert (hit["title"], hit["language"], hit["metadata"]["year"]) == ("en7", "eng_Latn", 2024)
    assert hit["link"] == "https://example.org/1"
    other = next(hit for hit in found if hit["id"] == "2")
    assert (other["link"], other["language"]) == (None, "deu_Latn")
    expected = encoder.encode(["en7 en1 en2 en9"], prompt="")
    assert np.abs(copied.index.vectors(["n1"]) - expected).max() < 1e-5
    assert ids(client, mode="text")[0] == "n1"


def test_a_changed_passage_is_replaced_and_an_equal_one_is_not(client):
    client.post("/index/add", json={"passages": PASSAGES})
    changed = [{**PASSAGES[0], "text": "en3"}, PASSAGES[1]]
    reply = client.post("/index/add", json={"passages": changed}).json()
    assert reply == {"added": 0, "replaced": 1, "deleted": 0, "unchanged": 1, "passages": 32}


def test_a_cut_passage_counts_with_its_chunks_as_on_the_command_line(client, copied, tmp_path):
    copied.model.chunks = ChunkSettings(16, 0)
    words = [f"en{number % 9}." for number in range(60)]
    long, short = ({"id": "long", "text": " ".join(words[:end])} for end in (60, 30))
    other = PassageIndex(shutil.copytree(copied.index.folder, tmp_path / "other"))
    for record, has_more in ((long, True), (short, False)):
        reply = client.post("/index/add", json={"passages": [record]}).json()
        passages = list(copied.model.chunked([passage_of(record, "", 0, "")]))
        expected = other.add(passages, copied.model.embed_passages)
        assert {name: reply[name] for name in counts_of(expected)} == counts_of(expected)
        assert len(passages) > 1
        assert (expected.added > 1, expected.deleted > 1) == (has_more, not has_more)
    assert reply["passages"] == 30 + len(passages)


def counts_of(added):
    return {name: getattr(added, name) for name in ("added", "replaced", "unchanged", "deleted")}


def test_keys_of_passages_are_those_of_files_or_are_named(client, copied):
    usual = {"docid": 5, "Contents": "en1 en2", "lang": "de", "note": "x"}
    reply = client.post("/index/add", json={"passages": [usual]})
    assert reply.json()["added"] == 1, reply.text
    named = {"key": "k", "body": "en3", "headline": "en4", "tongue": "en", "text": "as it is"}
    columns = {"text_column": "body", "title_column": "headline"}
    columns |= {"id_column": "key", "language_column": "tongue", "language": None}
    reply = client.post("/index/add", json={"passages": [named], **columns})
    assert reply.json()["added"] == 1, reply.text
    five, k = sorted(PassageIndex(copied.index.folder).passages("id IN ('5', 'k')"))
    assert (five.text, five.language) == ("en1 en2", "deu_Latn")
    assert (k.text, k.title, k.language) == ("en3", "en4", "eng_Latn")
    metadata = [json.loads(passage.metadata) for passage in (five, k)]
    assert metadata == [{"note": "x"}, {"text": "as it is"}]


def test_passages_are_deleted_by_ids_and_by_a_condition(client):
    client.post("/index/add", json={"passages": PASSAGES})
    assert client.post("/index/delete", json={"ids": ["2", "none"]}).json()["deleted"] == 1
    assert "n1" in ids(client)
    reply = client.post("/index/delete", json={"where": "title = 'en7'"}).json()
    assert reply == {"deleted": 1, "passages": 30}
    assert "n1" not in ids(client)


def test_conditions_of_a_search(client):
    client.post("/index/add", json={"passages": PASSAGES})
    assert ids(client, where="json_get_int(metadata, 'year') = 2024") == ["n1"]
    for wrong in ("year = = 3", "1 = 1); x", "unknown_function(3)"):
        reply = client.post("/search", json={"query": "en1", "where": wrong})
        assert reply.status_code == 422
        assert "valid" in reply.text or "complete" in reply.text


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("add", {"passages": []}, 400),
        ("add", {"passages": ["en1"]}, 400),
        ("add", {"passages": [{"text": "en1"}]}, 422),
        ("add", {"passages": [{"id": "", "text": "en1"}]}, 422),
        ("add", {"passages": [{"id": True, "text": "en1"}]}, 422),
        ("add", {"passages": [{"id": "a", "body": "en1"}]}, 422),
        ("add", {"passages": [{"id": "a", "text": "en1"}], "text_column": "body"}, 422),
        ("add", {"passages": [{"id": "a", "text": " "}]}, 422),
        ("add", {"passages": [{"id": "a", "text": "en1", "language": "Klingonese"}]}, 422),
        ("add", {"passages": [{"id": "a", "text": "en1"}] * 2}, 422),
        ("delete", {}, 422),
        ("delete", {"where": "id = = 3"}, 422),
    ],
)
def test_what_can_not_be_done_changes_nothing(client, copied, path, body, status):
    reply = client.post(f"/index/{path}", json=body)
    assert reply.status_code == status
    assert PassageIndex(copied.index.folder).count() == 30


def test_the_routes_need_the_option_and_the_key(start, copied):
    body = {"passages": PASSAGES}
    closed = start(searcher=copied, api_key="secret")
    assert closed.post("/index/add", json=body, headers=KEY).status_code == 404
    assert closed.post("/index/delete", json={"ids": ["n1"]}, headers=KEY).status_code == 404
    open_to_keys = start(searcher=copied, api_key="secret", admin=True)
    assert open_to_keys.post("/index/add", json=body).status_code == 401
    with pytest.raises(ConfigError, match="api-key"):
        ServeSettings(admin=True)


def test_a_change_by_another_process_is_seen_within_a_second(client, copied):
    before = ids(client)
    assert client.get("/index/info").json()["passages"] == len(before) == 30
    delete_from_index(copied.index.folder, [before[0]], "language = 'deu_Latn'")
    assert REFRESH_SECONDS < 1
    time.sleep(REFRESH_SECONDS)
    found = ids(client)  # the first search after that time
    assert found == [name for name in before[1:] if name.startswith("eng")]
    info = client.get("/index/info").json()
    assert info["languages"] == {"eng_Latn": len(found)}
    assert (info["model"], info["dim"], info["is_approximate"]) == ("tiny", 32, False)


def test_an_index_that_was_removed_is_the_servers_fault(client, copied, log):
    ids(client)
    shutil.rmtree(copied.index.folder)
    time.sleep(0.6)
    reply = client.post("/search", json={"query": "en1"})
    assert reply.status_code == 500
    assert str(copied.index.folder) not in reply.text
    assert str(copied.index.folder) in log[-1]["error"]
