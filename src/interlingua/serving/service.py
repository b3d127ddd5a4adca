"""The path of a request's texts through the server: tokenize, queue, await, convert."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from jaxtyping import Float32
from numpy import ndarray
from starlette.requests import Request

from interlingua.serving.batching import Batcher, ClosedError, QueueFullError
from interlingua.serving.errors import RequestError, mistakes_of_client
from interlingua.serving.metrics import ServerMetrics
from interlingua.serving.model import (
    ServedModel,
    TokenizedTexts,
    language_code,
    refuse_blank,
    shape_vectors,
)
from interlingua.serving.routes.json_route import refuse_texts, refuse_tokens
from interlingua.serving.settings import ServeSettings

INLINE_CHARACTERS = 2000
"""Minimum number of characters to tokenize in another thread; fewer take less time than the
handover."""
WATCH_SECONDS = 1.0
"""Time after which a request is watched: if its client leaves, its texts are dropped."""
LIST_THREADS = 8
"""Requests to mine or to align that are worked on at a time; their threads mostly wait for the
queue."""
_Vectors = Float32[ndarray, "n d"]
_Result = TypeVar("_Result")


class Service:
    """State that the routes share.

    Args:
        model: the encoder.
        settings: limits.
        metrics: counters.
    """

    def __init__(self, model: ServedModel, settings: ServeSettings, metrics: ServerMetrics) -> None:
        self.model = model
        self.settings = settings
        self.metrics = metrics
        self.batcher = Batcher(
            model.embed,
            batch_tokens=settings.batch_tokens,
            queue_tokens=settings.queue_tokens,
            observe=metrics.observe_batch,
        )
        metrics.queue_tokens.set(0)
        # Requests with lists have their own threads; in the common pool, tokenization would have to
        # wait for them.
        self._list_threads = ThreadPoolExecutor(LIST_THREADS, thread_name_prefix="lists")
        self._lists_at_work = 0

    async def embed_texts(
        self,
        request: Request,
        texts: Sequence[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        auto_truncate: bool | None = None,
        dim: int | None = None,
        normalize: bool = True,
        counted: bool = True,
    ) -> tuple[_Vectors, TokenizedTexts]:
        """Return vectors of texts.

        Args:
            request: the request, whose client may leave.
            texts: the texts of a request, or texts derived from them.
            prompt: see ``ServedModel.tokenize``.
            language: in any code.
            auto_truncate: None = the server's setting.
            dim: dimensions to keep.
            normalize: scale the vectors to length 1.
            counted: refuse more texts than a request may have.

        Raises:
            RequestError: the request is too large, malformed, or the queue is full.
        """
        if counted:
            self.check_count(len(texts))
        # A prompt is put before each text.
        if prompt is not None and len(prompt) * len(texts) > self.settings.max_body:
            raise RequestError(
                413,
                f"the prompt of {len(prompt):,} characters is added to each of {len(texts):,}"
                " texts; shorten it, or send fewer texts in a request",
            )
        if auto_truncate is None:
            auto_truncate = self.settings.auto_truncate
        with mistakes_of_client():
            refuse_blank(texts)
            code = language_code(language)
            tokenize = functools.partial(
                self.model.tokenize,
                texts,
                prompt=prompt,
                auto_truncate=auto_truncate,
                language=code,
            )
            if sum(map(len, texts)) < INLINE_CHARACTERS:
                tokenized = tokenize()
            else:
                tokenized = await asyncio.to_thread(tokenize)
        vectors = await self.embed_tokens(
            request, tokenized, language=code, dim=dim, normalize=normalize
        )
        return vectors, tokenized

    async def embed_tokens(
        self,
        request: Request,
        tokenized: TokenizedTexts,
        *,
        language: str | None = None,
        dim: int | None = None,
        normalize: bool = True,
    ) -> _Vectors:
        """Return vectors of token ids; see ``embed_texts``."""
        # Check this before the texts are queued, so that a wrong number of dimensions costs no
        # batch.
        with mistakes_of_client():
            form = self.model.vector_format(dim=dim, normalize=normalize)
        vectors = await self._result(
            request, tokenized, lambda: self.batcher.submit(tokenized.sequences, language)
        )
        refuse_not_finite(vectors)
        return shape_vectors(vectors, form)

    async def with_encoder(
        self, request: Request, tokenized: TokenizedTexts, work: Callable[[], _Result]
    ) -> _Result:
        """Run work that is reserved for the encoder's thread; it waits in the queue as texts do.

        Args:
            request: the request, whose client may leave.
            tokenized: the input of the work.
            work: to call.
        """
        return await self._result(
            request, tokenized, lambda: self.batcher.submit(tokenized.sequences, work=work)
        )

    async def in_list_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run work on two lists of texts in a separate thread, which may wait for the queue.

        Args:
            work: to call.

        Raises:
            RequestError: too many such requests are running already, or the work found a mistake in
                its request.
        """
        loop = asyncio.get_running_loop()
        # Counted here, on the event loop, so that no lock is needed.
        if self._lists_at_work == LIST_THREADS:
            self.metrics.refused.inc()
            raise RequestError(
                429,
                f"{LIST_THREADS} requests with lists are being processed; send the request again"
                " in 1 s",
                {"retry-after": "1"},
            )
        self._lists_at_work += 1
        future = self._list_threads.submit(work)
        # The thread of an abandoned request continues to work, and counts until it ends.
        future.add_done_callback(lambda _: self._end_list(loop))
        with mistakes_of_client():
            return await asyncio.wrap_future(future)

    def _end_list(self, loop: asyncio.AbstractEventLoop) -> None:
        def end() -> None:
            self._lists_at_work -= 1

        # The server may have stopped meanwhile.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(end)

    def check_name(self, name: str | None) -> str:
        """Return the model's name for the reply: the name in the request if it has one.

        Raises:
            RequestError: the server has no model of this name.
        """
        if name is None:
            return self.model.name
        if name in self.model.names or self.settings.any_name:
            return name
        known = ", ".join(map(repr, self.model.names))
        raise RequestError(
            404,
            f"unknown model {name[:100]!r}; use one of: {known}; or start the server with --name"
            " NAME or --any-name",
            param="model",
        )

    def check_count(self, texts: int) -> None:
        """Refuse a request of too many texts, before anything is done for it."""
        refuse_texts(texts, self.settings)

    async def _result(
        self, request: Request, tokenized: TokenizedTexts, submit: Callable[[], Future[_Result]]
    ) -> _Result:
        """Queue a request and wait for it as long as its client does."""
        refuse_tokens(tokenized.tokens, self.settings)
        self._note(request, tokenized)
        try:
            future = submit()
        except QueueFullError as error:
            self.metrics.refused.inc()
            raise RequestError(429, str(error), {"retry-after": str(error.retry_after)}) from error
        except ClosedError as error:
            raise RequestError(
                503, "the server is stopping; send the request to another server"
            ) from error
        self.metrics.queue_tokens.set(self.batcher.waiting_tokens)
        # Most requests are done before the first check whether their client has left.
        waiting = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait({waiting}, timeout=WATCH_SECONDS)
            while not done:
                if await request.is_disconnected():
                    raise RequestError(499, "the client has disconnected")
                done, _ = await asyncio.wait({waiting}, timeout=WATCH_SECONDS)
            # The error may be the client's, such as a language that the model's map does not know.
            with mistakes_of_client():
                return waiting.result()
        finally:
            # This cancels the texts that wait in the queue, too.
            if not waiting.done():
                waiting.cancel()

    def _note(self, request: Request, tokenized: TokenizedTexts) -> None:
        """Add texts to the request's values in the log and the header."""
        # Some requests embed several times, as /align does.
        log = request.state.log
        log["texts"] = log.get("texts", 0) + len(tokenized.sequences)
        log["tokens"] = log.get("tokens", 0) + tokenized.tokens
        if tokenized.truncated:
            log["truncated"] = log.get("truncated", 0) + tokenized.truncated
            self.metrics.truncated.inc(tokenized.truncated)


def refuse_not_finite(numbers: Float32[ndarray, "n m"]) -> None:
    """Keep NaN and infinity, which JSON cannot represent, out of replies.

    Args:
        numbers: results for a request.

    Raises:
        RequestError: one is not finite.
    """
    if not np.isfinite(numbers).all():
        raise RequestError(
            500,
            "the vectors of this text contain NaN or infinity; check that the model's weights are"
            " complete",
        )
