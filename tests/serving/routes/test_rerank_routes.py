"""/rerank: the order of cosines, in the shapes of Cohere, Jina and text-embeddings-inference."""

from __future__ import annotations

import numpy as np
import pytest

QUERY = "en1 en2"
TEXTS = ["de5 de6", "en1 en2", "en2"]


@pytest.fixture(scope="module")
def cosines(encoder):
    question = encoder.encode([QUERY], prompt="query")[0]
    return encoder.encode(TEXTS) @ question


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
@pytest.mark.parametrize("documents", [TEXTS, [{"text": text} for text in TEXTS]])
def test_documents_come_in_the_order_of_their_cosines(client, cosines, path, documents):
    body = {"model": "tiny", "query": QUERY, "documents": documents, "top_n": None}
    reply = client.post(path, json={**body, "return_documents": True}).json()
    order = np.argsort(-cosines)
    assert [found["index"] for found in reply["results"]] == order.tolist()
    scores = [found["relevance_score"] for found in reply["results"]]
    assert scores == pytest.approx(cosines[order].tolist(), abs=1e-5)
    assert [found["document"]["text"] for found in reply["results"]] == [TEXTS[i] for i in order]
    assert reply["model"] == "tiny"
    assert reply["usage"]["total_tokens"] > 0
    best = client.post(path, json={**body, "top_n": 1}).json()["results"]
    assert best == [{"index": int(order[0]), "relevance_score": scores[0]}]


def test_texts_give_the_list_of_text_embeddings_inference(client, cosines):
    body = {"query": QUERY, "texts": TEXTS, "raw_scores": False, "truncate": True}
    found = client.post("/rerank", json=body).json()
    assert [item["index"] for item in found] == np.argsort(-cosines).tolist()
    assert set(found[0]) == {"index", "score"}
    shown = client.post("/rerank", json={**body, "return_text": True}).json()
    assert [item["text"] for item in shown] == [TEXTS[item["index"]] for item in found]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"query": QUERY}, 422),
        ({"query": QUERY, "texts": TEXTS, "documents": TEXTS}, 422),
        ({"query": QUERY, "documents": []}, 400),
        ({"query": QUERY, "documents": ["a", " "]}, 422),
        ({"query": "", "documents": TEXTS}, 422),
        ({"query": QUERY, "documents": [3]}, 400),
        ({"query": QUERY, "documents": TEXTS, "top_n": 0}, 400),
        ({"query": QUERY, "documents": TEXTS, "model": "other"}, 404),
    ],
)
def test_what_can_not_be_ranked(client, body, status):
    assert client.post("/rerank", json=body).status_code == status


def test_a_blank_text_is_named_by_its_field(client):
    for body, place in (
        ({"query": " ", "texts": TEXTS}, "query"),
        ({"query": QUERY, "texts": ["a", " "]}, "texts: row 1"),
        ({"query": QUERY, "documents": ["a", " "]}, "documents: row 1"),
    ):
        assert place in client.post("/rerank", json=body).json()["error"]
