"""The bodies that the server answers with on a small world: what must not change by accident.

``serve.json`` holds them; UPDATE_GOLDEN=1 writes it anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from fastapi.testclient import TestClient

from interlingua import kernels
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import Searcher, build_index, model_for
from interlingua.serving.app import make_app
from interlingua.serving.model import ServedModel
from interlingua.serving.settings import ServeSettings
from tests.golden.summaries import differences
from tests.tiny import tiny_encoder

FROZEN = Path(__file__).with_name("serve.json")
TOLERANCE = 2e-3
GERMAN = ["de1 de2", "de3 de4 de5", "de6"]
ENGLISH = ["en1 en2", "en3 en4 en5", "en7"]
REQUESTS = {
    "/v1/embeddings": {"model": "tiny", "input": ["en1 en2", "de1"]},
    "/embed": {"inputs": ["en1 en2", "de1"]},
    "/similarity": {"inputs": {"source_sentence": "en1", "sentences": ["en2", "de1"]}},
    "/mine": {"source": GERMAN, "target": ENGLISH},
    "/align": {"source": GERMAN, "target": ENGLISH},
    "/tokens": {"source": "en1 en2", "target": "de1 de2"},
    "/search": {"query": "de3 de4 de3", "top": 3},
    "/search by words": {"query": "en5", "top": 3, "mode": "text"},
    "/search in one language": {"query": "de3", "top": 2, "languages": ["eng_Latn"]},
}


@pytest.fixture(scope="module")
def answers(word_vocabulary, tmp_path_factory):
    """The server's answers to all requests."""
    pytest.importorskip("lancedb")
    folder = tmp_path_factory.mktemp("served")
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLINGUA_KERNELS", "0")
        kernels.find_library.cache_clear()
        torch.set_num_threads(1)
        encoder = tiny_encoder(word_vocabulary).eval()
        encoder.save(folder / "model")
        for code in ("deu_Latn", "eng_Latn"):
            lines = [f"{code[:2]}{n} {code[:2]}{n + 1} {code[:2]}{n % 5}" for n in range(15)]
            (folder / f"{code}.txt").write_text("".join(f"{line}\n" for line in lines))
        build_index(str(folder / "model"), sorted(folder.glob("*.txt")), folder / "index")
        model = model_for(folder / "index", encoder, "tiny")
        app = make_app(
            ServedModel(encoder, "tiny"),
            ServeSettings(),
            searcher=Searcher(PassageIndex(folder / "index"), model),
        )
        with TestClient(app) as client:
            found = {
                name: client.post(name.split(" ")[0], json=body).json()
                for name, body in REQUESTS.items()
            }
    torch.set_num_threads(threads)
    kernels.find_library.cache_clear()
    if os.environ.get("UPDATE_GOLDEN"):
        content = json.dumps(found, indent=1, ensure_ascii=False)
        FROZEN.write_text(content.replace(str(folder), "WORLD") + "\n", encoding="utf-8")
    return json.loads(json.dumps(found).replace(str(folder), "WORLD"))


@pytest.mark.parametrize("name", REQUESTS)
def test_an_answer_is_what_it_was(answers, name):
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    assert differences(answers[name], frozen[name], TOLERANCE) == []
