"""A request's way through the queue: full queues, clients that leave, vectors that are not
finite."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from interlingua.serving.errors import RequestError
from interlingua.serving.metrics import ServerMetrics
from interlingua.serving.model import ServedModel
from interlingua.serving.routes.text_routes import _embed_in_queue
from interlingua.serving.service import LIST_THREADS, Service
from interlingua.serving.settings import ServeSettings


class Client:
    """A request of a client that stays for some looks."""

    def __init__(self, looks=1000):
        self.looks = looks
        self.state = SimpleNamespace(log={})

    async def is_disconnected(self):
        self.looks -= 1
        return self.looks < 0


@pytest.fixture
def make(encoder):
    services = []

    def make(**settings):
        service = Service(ServedModel(encoder, "tiny"), ServeSettings(**settings), ServerMetrics())
        services.append(service)
        return service

    yield make
    for service in services:
        service.batcher.close()


def test_a_full_queue_is_429_with_a_time(make):
    service = make(queue_tokens=3)
    service.batcher.submit(service.model.tokenize(["en1 en2 en3"]).sequences)
    with pytest.raises(RequestError) as caught:
        asyncio.run(service.embed_texts(Client(), ["en1"]))
    assert caught.value.status == 429
    assert int(caught.value.headers["retry-after"]) >= 1
    assert b"interlingua_requests_refused_total 1.0" in service.metrics.text()
    service.batcher.start()


def test_texts_of_a_client_that_left_are_dropped(make, monkeypatch):
    monkeypatch.setattr("interlingua.serving.service.WATCH_SECONDS", 0.01)
    service = make()
    with pytest.raises(RequestError) as caught:
        asyncio.run(service.embed_texts(Client(looks=2), ["en1"]))
    assert caught.value.status == 499
    service.batcher.start()
    service.batcher.close()
    assert b"interlingua_texts_total 0.0" in service.metrics.text()


def test_a_stopping_server_is_503(make):
    service = make()
    service.batcher.close()
    with pytest.raises(RequestError) as caught:
        asyncio.run(service.embed_texts(Client(), ["en1"]))
    assert caught.value.status == 503


def test_vectors_that_are_not_finite_are_not_sent(make, monkeypatch):
    service = make()
    monkeypatch.setattr(
        service.batcher, "_embed", lambda ids, _: np.full((len(ids), 2), np.nan, dtype=np.float32)
    )
    service.batcher.start()
    with pytest.raises(RequestError) as caught:
        asyncio.run(service.embed_texts(Client(), ["en1"]))
    assert caught.value.status == 500


def test_long_requests_are_tokenized_in_another_thread(make, monkeypatch):
    service = make()
    service.batcher.start()
    threads = []
    before = service.model.tokenize

    def tokenize(*args, **options):
        threads.append(threading.current_thread() is threading.main_thread())
        return before(*args, **options)

    monkeypatch.setattr(service.model, "tokenize", tokenize)
    asyncio.run(service.embed_texts(Client(), ["en1"]))
    asyncio.run(service.embed_texts(Client(), ["en1 " * 1000]))
    assert threads == [True, False]


def test_lists_at_work_hold_up_no_other_request(make):
    """Check that texts are tokenized, no matter how many wait for the queue.

    And there is an end to how many are taken.
    """
    service = make()
    opened = threading.Event()

    async def ask():
        lists = [
            asyncio.create_task(service.in_list_thread(opened.wait)) for _ in range(LIST_THREADS)
        ]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as caught:
            await service.in_list_thread(opened.wait)
        assert (caught.value.status, caught.value.headers) == (429, {"retry-after": "1"})
        service.batcher.start()
        await asyncio.wait_for(service.embed_texts(Client(), ["en1 " * 1000]), 10)
        opened.set()
        await asyncio.gather(*lists)
        return await service.in_list_thread(lambda: "again")

    assert asyncio.run(ask()) == "again"


def test_lists_of_a_client_that_left_are_dropped(make, monkeypatch):
    monkeypatch.setattr("interlingua.serving.service.WATCH_SECONDS", 0.01)
    service = make()

    async def ask():
        embed = _embed_in_queue(service, Client(looks=2), None)
        await service.in_list_thread(lambda: embed(["en1", "en2"]))

    with pytest.raises(RequestError) as caught:
        asyncio.run(ask())
    assert caught.value.status == 499
    service.batcher.start()
    service.batcher.close()
    assert b"interlingua_texts_total 0.0" in service.metrics.text()
