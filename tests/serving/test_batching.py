"""Batches out of requests: equal vectors, bounded size, fair turns, bounded queue, cancellation, an
orderly end."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import numpy as np
import pytest

from interlingua.serving.batching import Batcher, ClosedError, QueueFullError


class HeldEncoder:
    """Encoder that embeds a sequence as its sum, one batch for each release."""

    def __init__(self):
        self.gate = threading.Semaphore(0)
        self.batches = []
        self.languages = []

    def __call__(self, sequences, language):
        self.gate.acquire()
        self.batches.append([tuple(ids) for ids in sequences])
        self.languages.append(language)
        return np.array([[sum(ids)] for ids in sequences], dtype=np.float32)

    def let_go(self, batches=1000):
        self.gate.release(batches)


@pytest.fixture
def embed():
    return HeldEncoder()


@pytest.fixture
def make(embed):
    made = []

    def make(**limits):
        batcher = Batcher(embed, **{"batch_tokens": 8, "queue_tokens": 1000} | limits)
        made.append(batcher)
        return batcher

    yield make
    embed.let_go()
    for batcher in made:
        batcher.close()


def test_vectors_come_back_in_order_from_several_batches(make, embed):
    batcher = make()
    batcher.start()
    embed.let_go()
    sequences = [[n] * (n % 5 + 1) for n in range(50)]
    vectors = batcher.submit(sequences).result(10)
    assert vectors[:, 0].tolist() == [sum(ids) for ids in sequences]
    assert len(embed.batches) > 10
    assert all(sum(map(len, batch)) <= 8 for batch in embed.batches)


def test_a_text_longer_than_a_batch_is_one(make, embed):
    batcher = make()
    batcher.start()
    embed.let_go()
    assert batcher.submit([[1] * 20, [2]]).result(10)[:, 0].tolist() == [20, 2]
    assert [len(batch) for batch in embed.batches] == [1, 1]


def test_a_single_text_does_not_wait_for_a_large_request(make, embed):
    batcher = make()
    large = batcher.submit([[1]] * 100)
    small = batcher.submit([[7]])
    batcher.start()
    embed.let_go(1)
    assert small.result(10)[0, 0] == 7
    assert not large.done()
    embed.let_go()
    assert len(large.result(10)) == 100


def test_waiting_requests_share_each_batch_evenly(make, embed):
    batcher = make(batch_tokens=6)
    requests = [batcher.submit([[value]] * 6) for value in (1, 2, 3)]
    batcher.start()
    embed.let_go()
    wait(requests, timeout=10)
    assert [sorted(ids[0] for ids in batch) for batch in embed.batches] == [[1, 1, 2, 2, 3, 3]] * 3


def test_a_request_whose_turn_did_not_come_is_next(make, embed):
    batcher = make(batch_tokens=2)
    requests = [batcher.submit([[value]] * 2) for value in (1, 2, 3)]
    batcher.start()
    embed.let_go()
    wait(requests, timeout=10)
    assert embed.batches == [[(1,), (2,)], [(3,), (1,)], [(2,), (3,)]]


def test_languages_do_not_share_a_batch(make, embed):
    batcher = make()
    requests = [batcher.submit([[1], [1]], code) for code in ("deu_Latn", "eng_Latn", "deu_Latn")]
    batcher.start()
    embed.let_go()
    wait(requests, timeout=10)
    assert list(zip(embed.languages, map(len, embed.batches), strict=True)) == [
        ("deu_Latn", 4),
        ("eng_Latn", 2),
    ]


def test_a_full_queue_refuses_with_a_time(make):
    batcher = make(queue_tokens=10)
    batcher.submit([[1] * 10])
    with pytest.raises(QueueFullError) as caught:
        batcher.submit([[1]])
    assert caught.value.retry_after >= 1
    assert batcher.waiting_tokens == 10


def test_texts_of_a_cancelled_request_are_dropped(make, embed):
    batcher = make()
    left = batcher.submit([[1]] * 100)
    stays = batcher.submit([[2]])
    assert left.cancel()
    batcher.start()
    embed.let_go()
    assert stays.result(10)[0, 0] == 2
    assert embed.batches == [[(2,)]]
    assert batcher.waiting_tokens == 0


def test_a_failed_batch_fails_its_requests_alone():
    def embed(sequences, language):
        if [13] in sequences:
            raise ValueError("bad batch")
        return np.ones((len(sequences), 1), dtype=np.float32)

    batcher = Batcher(embed, batch_tokens=2, queue_tokens=100)
    bad = batcher.submit([[13]] * 5)
    batcher.start()
    with pytest.raises(ValueError, match="bad batch"):
        bad.result(10)
    assert batcher.submit([[1]]).result(10).tolist() == [[1]]
    assert batcher.waiting_tokens == 0
    batcher.close()


def test_closing_finishes_what_was_accepted(make, embed):
    batcher = make()
    batcher.start()
    accepted = [batcher.submit([[n]] * 20) for n in range(5)]
    closing = threading.Thread(target=batcher.close)
    closing.start()
    embed.let_go()
    closing.join(10)
    assert all(len(request.result(0)) == 20 for request in accepted)
    with pytest.raises(ClosedError):
        batcher.submit([[1]])


def test_no_text_needs_no_batch(make):
    assert len(make().submit([]).result(0)) == 0


def test_batches_are_observed(embed):
    seen = []
    batcher = Batcher(embed, batch_tokens=8, queue_tokens=100, observe=seen.append)
    batcher.start()
    embed.let_go()
    batcher.submit([[1, 2], [3]]).result(10)
    batcher.close()
    assert [(record.texts, record.tokens) for record in seen] == [(2, 3)]


def test_other_work_has_a_turn_of_its_own_in_the_same_thread(make, embed):
    batcher = make()
    first = batcher.submit([[1, 2], [3]])
    work = batcher.submit([[1], [2]], work=lambda: threading.current_thread().name)
    last = batcher.submit([[4]])
    assert batcher.waiting_tokens == 6
    embed.let_go()
    batcher.start()
    assert work.result(5) == "batches"
    assert (first.result(5).tolist(), last.result(5).tolist()) == ([[3], [3]], [[4]])
    assert batcher.waiting_tokens == 0
    assert len(embed.batches) == 1


def test_work_that_fails_ends_nothing_else(make, embed):
    batcher = make()
    work = batcher.submit([[1]], work=lambda: 1 // 0)
    after = batcher.submit([[4]])
    embed.let_go()
    batcher.start()
    with pytest.raises(ZeroDivisionError):
        work.result(5)
    assert after.result(5).tolist() == [[4]]


def test_work_counts_for_the_queue_and_may_be_cancelled(make, embed):
    batcher = make(queue_tokens=4)
    work = batcher.submit([[1, 2], [3]], work=lambda: 1)
    with pytest.raises(QueueFullError):
        batcher.submit([[1, 2]], work=lambda: 1)
    work.cancel()
    batcher.start()
    embed.let_go()
    assert batcher.submit([[4]]).result(5).tolist() == [[4]]


def test_closing_can_drop_what_waits(make, embed):
    batcher = make()
    waiting = [batcher.submit([[1]]), batcher.submit([[2]], work=lambda: 1)]
    batcher.close(drop=True)
    assert [future.cancelled() for future in waiting] == [True, True]
    assert batcher.waiting_tokens == 0
    batcher.start()
    batcher.close()
    assert embed.batches == []
