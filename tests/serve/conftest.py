"""A server in memory around a tiny encoder."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from fastapi.testclient import TestClient

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from interlingua.search.passage_index import PassageIndex
from interlingua.search.searcher import Searcher, build_index, model_for
from interlingua.serve.app import make_app
from interlingua.serve.model import ServedModel
from interlingua.serve.settings import ServeSettings

NAME = "tiny"


@pytest.fixture(scope="module")
def encoder(word_vocabulary):
    """An encoder that reads twelve tokens of a text and has one prompt."""
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    encoder = Encoder.from_scratch(config, word_vocabulary).eval()
    encoder.settings = dataclasses.replace(encoder.settings, max_tokens=12, prompts={"query": "en0 "})
    return encoder


@pytest.fixture(scope="module")
def searcher(encoder, tmp_path_factory):
    """An index of thirty passages in two languages."""
    pytest.importorskip("lancedb")
    folder = tmp_path_factory.mktemp("search")
    encoder.save(folder / "model")
    for code in ("deu_Latn", "eng_Latn"):
        lines = [f"{code[:2]}{n} {code[:2]}{n + 1} {code[:2]}{n % 5}" for n in range(15)]
        (folder / f"{code}.txt").write_text("".join(f"{line}\n" for line in lines))
    build_index(str(folder / "model"), sorted(folder.glob("*.txt")), folder / "index")
    return Searcher(PassageIndex(folder / "index"), model_for(folder / "index", encoder, "tiny"))


@pytest.fixture
def log():
    """Records of the server's log."""
    return []


@pytest.fixture
def start(encoder, log):
    """Starts servers with any settings; all are stopped at the end."""
    clients = []

    def start(**settings):
        app = make_app(ServedModel(encoder, NAME), ServeSettings(**settings), write_line=log.append)
        client = TestClient(app, raise_server_exceptions=False)
        client.__enter__()
        clients.append(client)
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(start):
    """A server with the default settings."""
    return start()
