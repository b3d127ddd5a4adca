"""text-embeddings-inference's protocol."""

from __future__ import annotations

import copy

import numpy as np
import torch

from interlingua.encoder.language_maps.language_shift import LanguageShift
from interlingua.serving.model import ServedModel

TEXTS = ["en1 en2", "de1"]


def test_vectors_with_every_option(client, encoder):
    body = {
        "inputs": TEXTS,
        "normalize": False,
        "dimensions": 8,
        "prompt_name": "query",
        "language": "de",
    }
    found = np.array(client.post("/embed", json=body).json(), dtype=np.float32)
    assert (
        np.abs(
            found
            - encoder.encode(TEXTS, normalize_embeddings=False, truncate_dim=8, prompt="query")
        ).max()
        < 1e-5
    )


def test_one_text_gives_a_list_of_one(client, encoder):
    found = np.array(client.post("/embed", json={"inputs": "en1"}).json(), dtype=np.float32)
    assert np.abs(found - encoder.encode(["en1"])).max() < 1e-6


def test_truncation_is_the_request_s_choice(start):
    body = {"inputs": "en1 " * 40}
    assert start().post("/embed", json={**body, "truncate": False}).status_code == 422
    assert (
        start(auto_truncate=False).post("/embed", json={**body, "truncate": True}).status_code
        == 200
    )


def test_similarity_is_the_cosine(client, encoder):
    body = {"inputs": {"source_sentence": "en1 en2", "sentences": ["de1", "en1"]}}
    for prompt in (None, "query"):
        vectors = encoder.encode(["en1 en2", "de1", "en1"], prompt=prompt)
        parameters = {"prompt_name": prompt}
        found = client.post("/similarity", json={**body, "parameters": parameters}).json()
        assert np.abs(found - vectors[1:] @ vectors[0]).max() < 1e-6
    assert client.post("/similarity", json=body).status_code == 200


def test_similarity_of_two_languages(start, encoder):
    body = {"inputs": {"source_sentence": "en1 en2", "sentences": ["de1", "en1"]}}
    means = torch.randn(2, encoder.dim, generator=torch.Generator().manual_seed(0))
    shifted = copy.deepcopy(encoder)
    shifted.language_shift = LanguageShift(["deu_Latn", "eng_Latn"], means)
    source = shifted.encode(["en1 en2"], language="eng_Latn")[0]
    client = start(ServedModel(shifted, "tiny"))
    assert client.post("/similarity", json=body).status_code == 422
    for code in ("deu_Latn", "eng_Latn"):
        expected = shifted.encode(["de1", "en1"], language=code) @ source
        parameters = {"source_language": "en", "target_language": code[:2]}
        reply = client.post("/similarity", json={**body, "parameters": parameters})
        assert np.abs(np.array(reply.json()) - expected).max() < 1e-6


def test_info_says_whether_texts_need_a_language(client, encoder, monkeypatch):
    assert client.get("/info").json()["needs_language"] is False
    monkeypatch.setattr(
        encoder, "language_shift", LanguageShift(["eng_Latn"], torch.zeros(1, encoder.dim))
    )
    info = client.get("/info").json()
    assert (info["needs_language"], info["question_needs_language"]) == (True, False)
    assert client.post("/embed", json={"inputs": "en1"}).status_code == 422
    assert client.post("/embed", json={"inputs": "en1", "language": "en"}).status_code == 200


def test_info_health_and_metrics(start):
    client = start(max_texts=7)
    info = client.get("/info").json()
    assert (info["model_id"], info["max_client_batch_size"], info["max_input_length"]) == (
        "tiny",
        7,
        12,
    )
    assert info["prompts"] == ["query"]
    assert client.get("/health").json() == {"status": "ok"}
    client.post("/embed", json={"inputs": ["en1", "en2 en3", "en1 " * 40]})
    lines = client.get("/metrics").text.splitlines()
    assert 'interlingua_requests_total{path="/embed",status="200"} 1.0' in lines
    assert "interlingua_texts_total 3.0" in lines
    assert "interlingua_tokens_total 15.0" in lines
    assert "interlingua_texts_truncated_total 1.0" in lines
    assert "interlingua_queue_tokens 0.0" in lines


def test_a_blank_text_is_named_by_its_field_and_row(client):
    reply = client.post("/embed", json={"inputs": ["a text", " "]})
    assert reply.status_code == 422
    assert "inputs: row 1" in reply.text
