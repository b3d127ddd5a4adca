from __future__ import annotations

import itertools
import threading
import time

import pytest

from interlingua.batches.prefetch import Prefetcher


def workers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "prefetch"]


def test_batches_come_in_order_and_end():
    with Prefetcher(lambda step: step * 10, 3, stop_step=20, depth=2) as batches:
        assert list(batches) == [step * 10 for step in range(3, 20)]
        assert list(batches) == []
    assert not workers()


def test_only_depth_batches_are_made_ahead():
    made = []
    with Prefetcher(lambda step: made.append(step) or step, depth=3) as batches:
        deadline = time.monotonic() + 5
        while len(made) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        # Three wait in the queue, the fourth in the thread's hand.
        assert made == [0, 1, 2, 3]
        assert next(iter(batches)) == 0


def test_an_error_is_raised_at_its_place():
    def batch_at(step: int) -> int:
        if step == 2:
            raise ValueError("broken store")
        return step

    seen = []
    with Prefetcher(batch_at) as batches, pytest.raises(ValueError, match="broken store"):
        for batch in batches:
            seen.append(batch)
    assert seen == [0, 1]
    assert not workers()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_leaving_the_block_ends_the_thread(error):
    with pytest.raises(error), Prefetcher(lambda step: step) as batches:
        for batch in batches:
            if batch == 5:
                raise error
    assert not workers()


def test_closing_twice_and_before_the_first_batch():
    batches = Prefetcher(lambda step: step)
    batches.close()
    batches.close()
    assert list(itertools.islice(batches, 1)) == []
    assert not workers()
