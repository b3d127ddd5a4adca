"""Mining and alignment of what a request holds: the same as in Python."""

from __future__ import annotations

import pytest
import torch

from interlingua import align, mine
from tests.written_files import written_files

SOURCE = ["en1 en2 en3", "en4 en5", "en6", "en7 en8"]
TARGET = ["de1 de2 de3", "de4 de5", "de6"]


def test_mined_pairs_are_those_of_python(client, encoder):
    body = {"source": SOURCE, "target": TARGET, "k": 2, "margin": "distance"}
    found = client.post("/mine", json=body).json()["pairs"]
    expected = mine(encoder, SOURCE, TARGET, k=2, margin="distance")
    assert [(pair["source_row"], pair["target_row"]) for pair in found] == [
        pair[3:] for pair in expected
    ]
    assert [pair["score"] for pair in found] == pytest.approx(
        [pair.score for pair in expected], abs=1e-6
    )
    cut = client.post("/mine", json={**body, "threshold": 99}).json()
    assert cut == {"pairs": []}


def test_links_are_those_of_python(client, encoder):
    found = client.post("/align", json={"source": SOURCE, "target": TARGET}).json()["links"]
    expected = align(encoder, SOURCE, TARGET)
    assert [(tuple(link["source"]), tuple(link["target"])) for link in found] == [
        link[:2] for link in expected
    ]
    assert found[0]["source_text"] == " ".join(SOURCE[row] for row in expected[0].source)


@pytest.mark.parametrize("path", ["/mine", "/align"])
def test_a_request_leaves_no_file(client, path):
    body = {"source": SOURCE, "target": TARGET, "source_language": "en", "target_language": "de"}
    client.post(path, json=body)  # the first request may import modules
    with written_files() as found:
        assert client.post(path, json=body).status_code == 200
    assert found == []


def test_plain_text_is_split_into_sentences(client):
    body = {
        "source": "Eins ist da. Zwei kommt noch.",
        "target": "One is here. Two is coming.",
        "source_language": "de",
    }
    reply = client.post("/align", json=body).json()
    assert reply["source"] == ["Eins ist da.", "Zwei kommt noch."]
    assert reply["target"] == ["One is here.", "Two is coming."]


def test_align_names_the_codes_of_its_languages(client):
    body = {"source": ["en1"], "target": ["de1"], "source_language": "English"}
    reply = client.post("/align", json=body).json()
    assert (reply["source_language"], reply["target_language"]) == ("eng_Latn", None)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/mine", {"source": [], "target": ["a"]}, 400),
        ("/mine", {"source": [" "], "target": ["a"]}, 422),
        ("/mine", {"source": ["a"], "target": ["a"], "k": 0}, 400),
        ("/mine", {"source": ["a"] * 5, "target": ["a"]}, 413),
        ("/mine", {"source": ["a"], "target": ["a"], "source_language": "Klingonese"}, 422),
        ("/align", {"source": "", "target": "a"}, 422),
        ("/align", {"source": "a", "target": "a", "source_language": "Klingonese"}, 422),
        ("/align", {"source": ["a"] * 5, "target": ["a"]}, 413),
        ("/align", {"source": "a", "target": "a", "prompt": "unknown"}, 422),
        ("/tokens", {"source": "", "target": "a"}, 400),
        ("/tokens", {"source": "a" * 5000, "target": "a"}, 400),
    ],
)
def test_what_can_not_be_done(start, path, body, status):
    reply = start(max_texts=4).post(path, json=body)
    assert reply.status_code == status
    assert isinstance(reply.json()["error"], str)


def test_more_tokens_than_a_request_may_have(start):
    client = start(max_request_tokens=5)
    assert client.post("/mine", json={"source": SOURCE, "target": TARGET}).status_code == 413


@pytest.mark.parametrize("path", ["/mine", "/align", "/tokens"])
def test_numbers_that_are_not_finite_are_not_sent(start, encoder, path):
    broken = encoder.backbone.embedding_norm.weight
    kept = broken.detach().clone()
    client = start()
    sides = (
        {"source": "en1", "target": "de1"}
        if path == "/tokens"
        else {"source": SOURCE, "target": TARGET}
    )
    try:
        with torch.no_grad():
            broken.fill_(float("nan"))
        reply = client.post(path, json=sides)
    finally:
        with torch.no_grad():
            broken.copy_(kept)
    assert reply.status_code == 500
    assert "NaN or infinity" in reply.json()["error"]
    assert client.post(path, json=sides).status_code == 200


LONG = "en1 " * 40
CUT = [
    ("/mine", {"source": [LONG, "en2"], "target": ["de1", "de2"]}, 1),
    ("/align", {"source": [LONG, "en2"], "target": ["de1"]}, 2),  # the long one, and both together
    ("/tokens", {"source": LONG, "target": LONG}, 2),
    ("/similarity", {"inputs": {"source_sentence": LONG, "sentences": ["en1"]}}, 1),
]


@pytest.mark.parametrize(("path", "body", "count"), CUT)
def test_long_texts_are_cut_and_counted_or_refused(start, log, path, body, count):
    reply = start().post(path, json=body)
    assert (reply.status_code, reply.headers["x-truncated-texts"]) == (200, str(count))
    assert log[-1]["truncated"] == count
    assert log[-1]["texts"] > 1
    reply = start(auto_truncate=False).post(path, json=body)
    assert reply.status_code == 422
    assert "more than 12 tokens" in reply.json()["error"]


@pytest.mark.parametrize(("path", "body", "count"), CUT)
def test_fields_that_nothing_reads_are_refused(client, path, body, count):
    reply = client.post(path, json={**body, "where": "1 = 1"})
    assert reply.status_code == 400
    assert reply.json()["error"].startswith("where: ")
