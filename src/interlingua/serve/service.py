"""The way of a request's texts through the server: tokenized, put in the queue, awaited, cut to the wanted format."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray
from starlette.requests import Request

from interlingua.errors import InterlinguaError
from interlingua.serve.batching import Batcher, ClosedError, QueueFullError
from interlingua.serve.errors import RequestError
from interlingua.serve.metrics import ServerMetrics
from interlingua.serve.model import ServedModel, TokenizedTexts, language_code, shape_vectors
from interlingua.serve.settings import ServeSettings

INLINE_CHARACTERS = 2000
"""Fewer are tokenized at once: handing them to another thread would take longer."""
WATCH_SECONDS = 1.0
"""A request that takes longer is watched: if its client leaves, its texts are dropped."""
Vectors = Float32[ndarray, "n d"]


class Service:
    """What the routes share.

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
    ) -> tuple[Vectors, TokenizedTexts]:
        """Vectors of texts.

        Args:
            request: its client may leave.
            texts: of any number up to the limit.
            prompt: see ``ServedModel.tokenize``.
            language: in any code.
            auto_truncate: None = the server's setting.
            dim: dimensions to keep.
            normalize: scale the vectors to length 1.

        Raises:
            RequestError: the request is too large, malformed, or the queue is full.
        """
        self.check_count(len(texts))
        truncate = self.settings.auto_truncate if auto_truncate is None else auto_truncate
        with_options: dict[str, Any] = {"prompt": prompt, "auto_truncate": truncate}
        try:
            with_options["language"] = language_code(language)
            if sum(map(len, texts)) < INLINE_CHARACTERS:
                tokenized = self.model.tokenize(texts, **with_options)
            else:
                tokenized = await asyncio.to_thread(self.model.tokenize, texts, **with_options)
        except InterlinguaError as error:
            raise RequestError(422, str(error)) from error
        vectors = await self.embed_tokens(
            request, tokenized, language=with_options["language"], dim=dim, normalize=normalize
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
    ) -> Vectors:
        """Vectors of token ids; see ``embed_texts``."""
        limit = self.settings.max_request_tokens
        if tokenized.tokens > limit:
            raise RequestError(413, f"the request has {tokenized.tokens:,} tokens; send at most {limit:,} at a time")
        try:
            form = self.model.vector_format(dim=dim, normalize=normalize)
        except InterlinguaError as error:
            raise RequestError(422, str(error)) from error
        request.state.log.update(texts=len(tokenized.sequences), tokens=tokenized.tokens)
        if tokenized.truncated:
            request.state.log["truncated"] = tokenized.truncated
            self.metrics.truncated.inc(tokenized.truncated)
        future = self.submit(tokenized, language)
        self.metrics.queue_tokens.set(self.batcher.waiting_tokens)
        return shape_vectors(await self._finished(request, future), form)

    def check_count(self, texts: int) -> None:
        """Refuses a request of too many texts, before anything is done for it."""
        if texts > self.settings.max_texts:
            raise RequestError(
                413, f"the request has {texts:,} texts; send at most {self.settings.max_texts:,} at a time"
            )

    def submit(self, tokenized: TokenizedTexts, language: str | None) -> Future[Vectors]:
        """Puts texts in the queue.

        Raises:
            RequestError: it is full, or the server is stopping.
        """
        try:
            return self.batcher.submit(tokenized.sequences, language)
        except QueueFullError as error:
            self.metrics.refused.inc()
            raise RequestError(429, str(error), {"retry-after": str(error.retry_after)}) from error
        except ClosedError as error:
            raise RequestError(503, "the server is stopping; send the request to another one") from error

    async def _finished(self, request: Request, future: Future[Vectors]) -> Vectors:
        waiting = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait({waiting}, timeout=WATCH_SECONDS)
            while not done:
                if await request.is_disconnected():
                    raise RequestError(499, "the client has left")
                done, _ = await asyncio.wait({waiting}, timeout=WATCH_SECONDS)
            vectors = waiting.result()
        except InterlinguaError as error:  # such as a language that the model's map does not know
            raise RequestError(422, str(error)) from error
        finally:
            if not waiting.done():
                waiting.cancel()  # which cancels the texts that wait in the queue
        refuse_not_finite(vectors)
        return vectors


def refuse_not_finite(numbers: Float32[ndarray, "n m"]) -> None:
    """Keeps NaN and infinity, which JSON has no words for, out of replies.

    Args:
        numbers: what was computed for a request.

    Raises:
        RequestError: one is not finite.
    """
    if not np.isfinite(numbers).all():
        raise RequestError(500, "the model gave NaN or infinity for this text; are its weights whole?")
