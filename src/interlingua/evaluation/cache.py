"""Each text is embedded once per run: vectors wait in a temporary file, so memory stays flat whatever the data."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.errors import TaskError


class CachedEncoder:
    """An encoder with its prompt bound that never embeds a text twice; to be used as a context manager.

    Args:
        encoder: anything with ``encode(texts, *, prompt, language, batch_tokens)``.
        prompt: put before every text.
        batch_tokens: token budget of a batch.

    Attributes:
        encoded_texts: texts embedded so far.
        reused_texts: texts asked for again.
        encode_seconds: time spent in the encoder.
    """

    def __init__(self, encoder: Any, *, prompt: str | None = None, batch_tokens: int = 16_384) -> None:
        self._encoder = encoder
        self._prompt = prompt
        self._batch_tokens = batch_tokens
        self._rows: dict[tuple[str | None, str], int] = {}
        self._file = tempfile.TemporaryFile(prefix="interlingua-")  # noqa: SIM115 - closed by __exit__
        self._dim = 0
        self.encoded_texts = 0
        self.reused_texts = 0
        self.encode_seconds = 0.0

    def __enter__(self) -> CachedEncoder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def encode(self, texts: Sequence[str], *, language: str | None = None) -> Float32[ndarray, "n d"]:
        """One vector per text, in order.

        Raises:
            TaskError: the encoder gave another number of vectors, another width, or NaN.
        """
        new = list(dict.fromkeys(text for text in texts if (language, text) not in self._rows))
        if new:
            self._append(new, language)
        self.encoded_texts += len(new)
        self.reused_texts += len(texts) - len(new)
        stored = np.memmap(self._file, dtype=np.float32, mode="r", shape=(len(self._rows), self._dim))
        return np.array(stored[[self._rows[language, text] for text in texts]])

    def _append(self, texts: list[str], language: str | None) -> None:
        start = time.perf_counter()
        vectors = np.asarray(
            self._encoder.encode(texts, prompt=self._prompt, language=language, batch_tokens=self._batch_tokens),
            dtype=np.float32,
        )
        self.encode_seconds += time.perf_counter() - start
        self._check(vectors, texts)
        self._dim = vectors.shape[1]
        self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(vectors).data)
        self._file.flush()
        self._rows.update({(language, text): len(self._rows) + i for i, text in enumerate(texts)})

    def _check(self, vectors: Float32[ndarray, "n d"], texts: list[str]) -> None:
        if vectors.ndim != 2 or len(vectors) != len(texts) or (self._dim and vectors.shape[1] != self._dim):
            expected = f"({len(texts)}, {self._dim or 'd'})"
            raise TaskError(f"the encoder gave an array of shape {vectors.shape}, expected {expected}, a row per text")
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            which = f"{int((~finite).sum())} of {len(texts)} texts, first {texts[int(np.argmin(finite))][:60]!r}"
            raise TaskError(f"the encoder gave NaN or infinity for {which}; try --dtype float32")
