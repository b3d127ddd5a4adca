"""Batching of the requests of many clients.

One thread owns the encoder. While it embeds a batch, new requests wait in a queue. Then it takes
the next batch: one text of each waiting request in turn, until the batch is full. So a
request of one text waits only for the running batch and its own batch, even if a request of 2,000
texts came first. If a large request is the only one, it gets whole batches. The queue is bounded:
a request that does not fit is refused at once, with an estimated time to retry.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

_Vectors = Float32[ndarray, "n d"]
EmbedTokens = Callable[[list[list[int]], str | None], _Vectors]
"""Token ids of texts of one language -> a vector each."""
FIRST_GUESS = 5_000.0
"""Tokens per second, before the first batch has been measured."""


class QueueFullError(Exception):
    """Error: the queue has no space for a request.

    Attributes:
        retry_after: estimated seconds until the queue has space.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the queue is full; try again in {retry_after} s")
        self.retry_after = retry_after


class ClosedError(Exception):
    """The server is stopping and takes no more requests."""


@dataclass(eq=False, slots=True)
class _Request:
    """A queued request; equal only to itself, as two requests may hold the same texts."""

    sequences: Sequence[list[int]]
    language: str | None
    future: Future[Any] = field(default_factory=Future)
    work: Callable[[], Any] | None = None
    """Function that runs with the encoder in place of a batch."""
    taken: int = 0
    """Texts that are in a batch already."""
    blocks: list[_Vectors] = field(default_factory=list)
    """Vectors of the texts that are embedded already, one block for each batch."""

    # A client may leave before the answer; a cancelled future accepts neither result nor error.
    def answer(self, result: Any) -> None:
        with contextlib.suppress(InvalidStateError):
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)

    def do(self, work: Callable[[], Any]) -> None:
        # As with a batch, an error ends the request and not the service.
        try:
            result = work()
        except Exception as error:
            self.fail(error)
        else:
            self.answer(result)


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A batch that was embedded."""

    texts: int
    tokens: int
    seconds: float


class Batcher:
    """A queue and a thread that embed the texts of all requests.

    Args:
        embed: called in that thread only.
        batch_tokens: maximum per batch, unless a single text is longer.
        queue_tokens: maximum number of waiting tokens.
        observe: is called with every batch, in that thread.
    """

    def __init__(
        self,
        embed: EmbedTokens,
        *,
        batch_tokens: int,
        queue_tokens: int,
        observe: Callable[[BatchRecord], None] = lambda _: None,
    ) -> None:
        self._embed = embed
        self._observe = observe
        self._batch_tokens = batch_tokens
        self._queue_tokens = queue_tokens
        self._waiting: deque[_Request] = deque()
        self._waiting_tokens = 0
        self._tokens_per_second = FIRST_GUESS
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)

    @property
    def waiting_tokens(self) -> int:
        """Tokens in the queue."""
        return self._waiting_tokens

    def start(self) -> None:
        """Start the thread; to be called in the process that serves, after any fork."""
        self._thread.start()

    def submit(
        self,
        sequences: Sequence[list[int]],
        language: str | None = None,
        *,
        work: Callable[[], Any] | None = None,
    ) -> Future[Any]:
        """Add a request to the queue.

        Args:
            sequences: token ids of each text, special tokens included.
            language: of the texts, for models that need it.
            work: function that needs more from the encoder than vectors of the texts; it runs in a
                turn of its own, and the texts determine its size in the queue.

        Returns:
            A future of the vectors, or of the work's result; if it is cancelled, its waiting texts
            are dropped.

        Raises:
            QueueFullError: there is no room.
            ClosedError: ``close`` was called.
        """
        request = _Request(sequences, language, work=work)
        tokens = sum(map(len, sequences))
        with self._changed:
            if self._closed:
                raise ClosedError("the server is stopping")
            # A request larger than the whole queue is taken when nothing waits; its size has a
            # limit of its own.
            if self._waiting and self._waiting_tokens + tokens > self._queue_tokens:
                raise QueueFullError(max(1, ceil(self._waiting_tokens / self._tokens_per_second)))
            # A request without texts is answered here, as no batch would ever contain it.
            if sequences:
                self._waiting.append(request)
                self._waiting_tokens += tokens
                self._changed.notify()
            else:
                request.future.set_result(np.zeros((0, 0), dtype=np.float32))
        return request.future

    def close(self, *, drop: bool = False) -> None:
        """Accept no more requests, and return when all accepted ones have their vectors.

        Args:
            drop: cancel those that still wait, as no client is left.
        """
        with self._changed:
            self._closed = True
            if drop:
                for request in self._waiting:
                    request.future.cancel()
                self._drop_cancelled()
            self._changed.notify()
        # A server that failed before its first request has not started the thread.
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        """Process batch after batch in the thread, until the server is closed and nothing waits."""
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                batch = self._take()
            # Embedded without the lock, so that requests can be queued meanwhile.
            if not batch:
                # All waiting requests were cancelled, or the server is closed and none are left.
                if self._closed:
                    return
                continue
            first = batch[0][0]
            if first.work is not None:
                first.do(first.work)
            else:
                self._embed_batch(batch)

    def _take(self) -> list[tuple[_Request, int]]:
        """Return the next batch: requests in one language, each with its number of texts in it."""
        self._drop_cancelled()
        if not self._waiting:
            return []
        first = self._waiting[0]
        # Other work has a turn by itself, and is never cut into parts.
        if first.work is not None:
            self._waiting.popleft()
            self._waiting_tokens -= sum(map(len, first.sequences))
            return [(first, len(first.sequences))]
        language = first.language
        turn = deque(
            request
            for request in self._waiting
            if request.work is None and request.language == language
        )
        # Take one text of each request in turn, until the budget is used up. A first text that
        # exceeds the budget is taken too, or it would wait forever.
        counts: dict[_Request, int] = dict.fromkeys(turn, 0)
        tokens = 0
        while turn:
            request = turn.popleft()
            length = len(request.sequences[request.taken + counts[request]])
            if tokens and tokens + length > self._batch_tokens:
                break
            tokens += length
            counts[request] += 1
            if request.taken + counts[request] < len(request.sequences):
                turn.append(request)
        self._waiting_tokens -= tokens
        batch = [(request, count) for request, count in counts.items() if count]
        for request, count in batch:
            self._waiting.remove(request)
            # The rest of a request goes behind the requests that have not had their turn.
            if request.taken + count < len(request.sequences):
                self._waiting.append(request)
        return batch

    def _drop_cancelled(self) -> None:
        for request in [request for request in self._waiting if request.future.cancelled()]:
            self._waiting.remove(request)
            self._waiting_tokens -= sum(map(len, request.sequences[request.taken :]))

    def _embed_batch(self, batch: list[tuple[_Request, int]]) -> None:
        """Embed the texts of several requests, and answer the requests that are complete."""
        sequences = [
            ids
            for request, count in batch
            for ids in request.sequences[request.taken : request.taken + count]
        ]
        started = time.perf_counter()
        try:
            vectors = self._embed(sequences, batch[0][0].language)
        # One bad batch must not end the service.
        except Exception as error:
            self._fail(batch, error)
            return
        seconds = time.perf_counter() - started
        record = BatchRecord(len(sequences), sum(map(len, sequences)), seconds)
        # A moving mean over about ten batches, to estimate the time to retry.
        speed = record.tokens / max(record.seconds, 1e-6)
        self._tokens_per_second = 0.9 * self._tokens_per_second + 0.1 * speed
        self._observe(record)
        # The vectors are in the order of the texts.
        first = 0
        for request, count in batch:
            request.blocks.append(vectors[first : first + count])
            request.taken += count
            first += count
            if request.taken == len(request.sequences):
                # Most requests are of one batch, and their vectors need no copy.
                is_one = len(request.blocks) == 1
                request.answer(request.blocks[0] if is_one else np.concatenate(request.blocks))

    def _fail(self, batch: list[tuple[_Request, int]], error: Exception) -> None:
        """Set the error of all requests of a batch; their remaining texts are dropped."""
        with self._changed:
            for request, count in batch:
                if request in self._waiting:
                    self._waiting.remove(request)
                    rest = request.sequences[request.taken + count :]
                    self._waiting_tokens -= sum(map(len, rest))
        for request, _ in batch:
            request.fail(error)
