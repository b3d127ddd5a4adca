"""Each text is embedded once per run: vectors wait in a file, so memory stays flat whatever the data."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray

from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import Encoder
from interlingua.errors import TaskError
from interlingua.evaluation.encoders import OwnEncoder
from interlingua.evaluation.provenance import prompt_text
from interlingua.evaluation.roles import encode_in_role, has_two_towers, role_prompt
from interlingua.evaluation.store import KEY_BYTES, VectorStore
from interlingua.evaluation.task import Role

PORTION_TEXTS = 4096
"""Texts embedded between two writes to the file; what a run that is stopped may lose."""


class _How(NamedTuple):
    """What a vector depends on besides its text."""

    language: str | None
    role: Role | None
    prompt: str | None


class CachedEncoder:
    """An encoder with its prompt bound that never embeds a text twice; to be used as a context manager.

    Args:
        encoder: anything with ``encode(texts, *, prompt, language, batch_tokens)``.
        prompt: put before every text.
        batch_tokens: token budget of a batch.
        role_prompts: put before questions and passages instead of the model's own prompts for these.
        unfinished: where the vectors are while the block lasts, and stay if an exception ends it; a block with the
            same file begins with what is in it. A temporary file if none.

    Attributes:
        encoded_texts: texts embedded so far.
        reused_texts: texts whose vectors were there already.
        encode_seconds: time spent in the encoder.
        report: on all texts embedded, where the encoder is ours; others don't say what they cut.
        two_towers: whether the encoder embeds questions and passages by methods of their own.
        used_prompts: role -> the text put before what had that role.
    """

    def __init__(
        self,
        encoder: Any,
        *,
        prompt: str | None = None,
        batch_tokens: int = 16_384,
        role_prompts: Mapping[Role, str] | None = None,
        unfinished: Path | None = None,
    ) -> None:
        self._encoder = encoder
        self._prompt, self._batch_tokens = prompt, batch_tokens
        self._role_prompts = role_prompts or {}
        self.two_towers = has_two_towers(encoder)
        own = isinstance(encoder, Encoder | OwnEncoder) and not self.two_towers
        self.report = EncodeReport() if own else None
        self._store = VectorStore(unfinished)
        self.start_counting()

    def __enter__(self) -> CachedEncoder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._store.close(keep=kind is not None)

    def start_counting(self) -> None:
        """Sets all counts to 0, for another task; vectors stay."""
        self._asked: set[int] = set()
        self.used_prompts: dict[str, str] = {}
        self.encoded_texts = 0
        self.reused_texts = 0
        self.encode_seconds = 0.0

    def counts(self) -> dict[str, object]:
        """By name; ``truncated_texts`` of the task's distinct ``texts`` were cut, None if the encoder won't say."""
        asked = np.fromiter(self._asked, np.int64)
        return {
            "texts": len(asked),
            "truncated_texts": int(np.count_nonzero(self._store.marked(asked))) if self.report is not None else None,
            "encoded_texts": self.encoded_texts,
            "reused_texts": self.reused_texts,
            "encode_seconds": self.encode_seconds,
        }

    def encode(
        self,
        texts: Sequence[str],
        *,
        language: str | None = None,
        role: Role | None = None,
        titles: Sequence[str] | None = None,
    ) -> Float32[ndarray, "n d"]:
        """One vector per text, in order.

        Args:
            texts: what to embed.
            language: of all of them.
            role: questions or passages of a search.
            titles: of each passage; an encoder with one tower reads them before the passage.

        Raises:
            TaskError: the encoder gave another number of vectors, another width, or NaN.
        """
        if titles is not None and not self.two_towers:
            texts, titles = [f"{title} {text}".strip() for title, text in zip(titles, texts, strict=True)], None
        how = _How(language, role, self._prompt_of(role))
        pairs = list(zip(texts, titles or [""] * len(texts), strict=True))
        keys = [_key(how, text, title) for text, title in pairs]
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self._store.rows}
        for first in range(0, len(new), PORTION_TEXTS):
            portion = slice(first, first + PORTION_TEXTS)
            self._append(list(new)[portion], list(new.values())[portion], how)
        self.encoded_texts += len(new)
        self.reused_texts += len(texts) - len(new)
        rows = [self._store.rows[key] for key in keys]
        self._asked.update(rows)
        return self._store.vectors(rows)

    def _prompt_of(self, role: Role | None) -> str | None:
        if role is None:
            return self._prompt
        prompt = role_prompt(self._encoder, role, self._role_prompts, self._prompt)
        self.used_prompts[role] = prompt_text(self._encoder, prompt)
        return prompt

    def _append(self, keys: list[bytes], pairs: list[tuple[str, str]], how: _How) -> None:
        start = time.perf_counter()
        texts, titles = [text for text, _ in pairs], [title for _, title in pairs]
        options: dict[str, Any] = {"language": how.language, "batch_tokens": self._batch_tokens}
        before, cuts_before = (0, 0) if self.report is None else (self.report.texts, len(self.report.cut_rows))
        if how.role is not None and self.two_towers:
            vectors = encode_in_role(self._encoder, texts, titles, how.role, **options)
        else:
            if self.report is not None:
                options["report"] = self.report
                if how.role is not None:  # an inner product may be what the model was trained with
                    options["normalize"] = self._encoder.settings.normalize
            vectors = self._encoder.encode(texts, prompt=how.prompt, **options)
        vectors = np.asarray(vectors, dtype=np.float32)
        self.encode_seconds += time.perf_counter() - start
        self._check(vectors, texts)
        cut: Bool[ndarray, " n"] = np.zeros(len(texts), dtype=bool)
        cut[[row - before for row in self.report.cut_rows[cuts_before:]] if self.report is not None else []] = True
        self._store.append(keys, vectors, cut)

    def _check(self, vectors: Float32[ndarray, "n d"], texts: list[str]) -> None:
        dim = self._store.dim
        if vectors.ndim != 2 or len(vectors) != len(texts) or (dim and vectors.shape[1] != dim):
            expected = f"({len(texts)}, {dim or 'd'})"
            raise TaskError(f"the encoder gave an array of shape {vectors.shape}, expected {expected}, a row per text")
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            which = f"{int((~finite).sum())} of {len(texts)} texts, first {texts[int(np.argmin(finite))][:60]!r}"
            raise TaskError(f"the encoder gave NaN or infinity for {which}; try --dtype float32")


def _key(how: _How, text: str, title: str) -> bytes:
    role = () if how.role is None else (how.role, how.prompt, title)
    parts = "\0".join(map(str, (*role, how.language, text)))
    return hashlib.blake2b(parts.encode(errors="surrogatepass"), digest_size=KEY_BYTES).digest()
