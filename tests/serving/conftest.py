"""A server in memory around a tiny encoder."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading
import time

import pytest
import uvicorn
from fastapi.testclient import TestClient

import interlingua
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import Searcher, build_index, model_for
from interlingua.serving.app import make_app
from interlingua.serving.model import ServedModel
from interlingua.serving.settings import ServeSettings
from tests.conftest import WORDS
from tests.tiny import tiny_encoder

NAME = "tiny"
LINES = [
    (f"de{n % WORDS} de{n * 7 % WORDS}", f"en{n % WORDS} en{n * 7 % WORDS}") for n in range(120)
]
CODES = {"source_language": "de", "target_language": "en"}


@contextlib.contextmanager
def served(app):
    """Serve an app in a thread, and yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture(scope="module")
def encoder(word_vocabulary):
    """An encoder that reads twelve tokens of a text and has one prompt."""
    encoder = tiny_encoder(word_vocabulary).eval()
    encoder.settings = dataclasses.replace(
        encoder.settings, max_tokens=12, prompts={"query": "en0 "}
    )
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


@pytest.fixture(scope="module")
def calibrated(encoder, tmp_path_factory):
    """A saved model, a half-wrong bitext, and a calibration of cosines, ``cosine.json``."""
    folder = tmp_path_factory.mktemp("calibrated")
    encoder.save(folder / "tiny")
    shuffled = [other for _, other in LINES[1:] + LINES[:1]]
    rows = [pair if n % 2 else (pair[0], shuffled[n]) for n, pair in enumerate(LINES)]
    (folder / "bitext.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in rows))
    judged = [f"{n % 2}\t{one}\t{other}\n" for n, (one, other) in enumerate(rows)]
    (folder / "judged.tsv").write_text("".join(judged))
    learn(folder, "cosine.json", cosine=True)
    return folder


def learn(folder, name, **options):
    """Write a calibration."""
    interlingua.score(
        folder / "tiny",
        folder / "bitext.tsv",
        learn=folder / name,
        labels=folder / "judged.tsv",
        **CODES,
        **options,
    )


@pytest.fixture
def log():
    """Records of the server's log."""
    return []


@pytest.fixture
def start(encoder, log):
    """Start servers of any model with any settings, and stop them at the end."""
    with contextlib.ExitStack() as stack:

        def start(model=None, *, searcher=None, calibrations=None, **settings):
            app = make_app(
                model or ServedModel(encoder, NAME),
                ServeSettings(**settings),
                write_line=log.append,
                searcher=searcher,
                calibrations=calibrations,
            )
            return stack.enter_context(TestClient(app, raise_server_exceptions=False))

        yield start


@pytest.fixture
def client(start):
    """A server with the default settings."""
    return start()
