"""A cache that embeds each text once: vectors are kept in a file, so memory does not grow.

Without a cache folder, the file of an interrupted suite is kept until the suite is run again. In a
cache folder, files are kept for all further runs of the same model.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray

from interlingua.encoder.backends.foreign import ENCODER_PORTION_TEXTS, as_vectors, check_vectors
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.dual_encoder import with_title
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.model_info import ModelInfo, prompt_text
from interlingua.encoder.protocol import TextEncoder
from interlingua.encoder.query_and_passage import Role, encode_in_role, has_two_towers, role_prompt
from interlingua.encoder.vector_format import first_elements
from interlingua.errors import ConfigError
from interlingua.evaluation.key_index import KEY_BYTES
from interlingua.evaluation.results import model_folder
from interlingua.evaluation.time_limit import Budget, BudgetUsed
from interlingua.evaluation.vector_files import VectorFiles
from interlingua.storage.files import PathLike, atomic_write

_COUNTED_AT_ONCE = 2**20
"""Number of rows whose marks (whether the text was cut) are looked up at a time."""
UNREAD = ("matryoshka_dims", "truncate_dim", "int8_ranges")
"""Settings that change no vector, or only its width."""


class _Conditions(NamedTuple):
    """The inputs besides the text that determine a vector."""

    language: str | None
    role: Role | None
    prompt: str | None


class CachedEncoder:
    """An encoder with its prompt bound that never embeds a text twice.

    It is used as a context manager.

    Args:
        encoder: anything with ``encode(texts, *, prompt, language, batch_tokens)``.
        prompt: put before every text.
        batch_tokens: token budget of a batch.
        role_prompts: put before questions and passages instead of the model's own prompts for
            these.
        unfinished: the file of the vectors during the ``with`` block. It is kept if an exception
            ends the block, and a later block with the same file starts with its content. None for a
            temporary file.
        kept: a folder that is used instead of ``unfinished``. Its vectors are kept whether or not
            an exception ends the block; see ``VectorFiles``.
        budget: when to stop embedding.

    Attributes:
        encoded_texts: texts embedded so far.
        reused_texts: texts that already had a vector.
        encode_seconds: time spent in the encoder.
        report: the encoder's report on all embedded texts, if it reports cut texts; otherwise None.
        two_towers: whether the encoder has separate methods for questions and passages.
        used_prompts: role -> the text put before all texts of that role.
    """

    def __init__(
        self,
        encoder: Any,
        *,
        prompt: str | None = None,
        batch_tokens: int = 16_384,
        role_prompts: Mapping[Role, str] | None = None,
        unfinished: Path | None = None,
        kept: Path | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._encoder = encoder
        self._prompt = prompt
        self._batch_tokens = batch_tokens
        self._role_prompts = role_prompts or {}
        self.two_towers = has_two_towers(encoder)
        self._is_own = isinstance(encoder, Encoder | OwnEncoder) and not self.two_towers
        # vectors are stored whole and cut when they are read, so that one file serves all widths
        self._cut_to: int | None = None
        if isinstance(encoder, OwnEncoder) and encoder.dim < encoder.whole_dim:
            self._cut_to = encoder.dim
        self.report: EncodeReport | None = None
        if self._is_own or getattr(encoder, "counts_tokens", False):
            self.report = EncodeReport()
        self._portion = min(
            ENCODER_PORTION_TEXTS, getattr(encoder, "portion_texts", ENCODER_PORTION_TEXTS)
        )
        if kept is None:
            self._store = VectorFiles.unfinished(unfinished)
        else:
            self._store = VectorFiles.shared(kept)
        self._budget = budget
        self._only_kept = False
        self.start_counting()

    def __enter__(self) -> CachedEncoder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        # after an exception the vectors stay for the next run
        self._store.close(keep=kind is not None)

    @property
    def own_encoder(self) -> Encoder | None:
        """The encoder itself if it is an encoder of interlingua with one tower; otherwise None."""
        if not self._is_own:
            return None
        own: Encoder = getattr(self._encoder, "encoder", self._encoder)
        return own

    def start_counting(self) -> None:
        """Set all counts to 0, for another task; vectors stay."""
        self._is_requested: Bool[ndarray, " rows"] = np.zeros(0, dtype=bool)
        self.used_prompts: dict[str, str] = {}
        self.encoded_texts = 0
        self.reused_texts = 0
        self.encode_seconds = 0.0

    def counts(self) -> dict[str, object]:
        """Return the task's counts by name.

        ``texts`` is the number of distinct texts, ``truncated_texts`` the number of cut
        texts, or None if the encoder does not report cut texts.
        """
        return {
            "texts": int(np.count_nonzero(self._is_requested)),
            "truncated_texts": self._truncated_texts(),
            "encoded_texts": self.encoded_texts,
            "reused_texts": self.reused_texts,
            "encode_seconds": self.encode_seconds,
        }

    def _truncated_texts(self) -> int | None:
        if self.report is None:
            return None
        truncated = 0
        # one block at a time, because a row number takes 8 bytes and a mark only 1
        for first in range(0, len(self._is_requested), _COUNTED_AT_ONCE):
            rows = first + np.flatnonzero(self._is_requested[first : first + _COUNTED_AT_ONCE])
            truncated += int(np.count_nonzero(self._store.marked(rows)))
        return truncated

    def encode(
        self,
        texts: Sequence[str],
        *,
        language: str | None = None,
        role: Role | None = None,
        titles: Sequence[str] | None = None,
    ) -> Float32[ndarray, "n d"]:
        """Return one vector per text, in order.

        Args:
            texts: what to embed.
            language: of all of them.
            role: questions or passages of a search.
            titles: of each passage; an encoder with one tower reads them before the passage.

        Raises:
            TaskError: the encoder gave another number of vectors, another width, or NaN.
            BudgetUsed: there are texts to embed and the budget is used.
        """
        return self.kept(self.keep(texts, language=language, role=role, titles=titles))

    def keep(
        self,
        texts: Sequence[str],
        *,
        language: str | None = None,
        role: Role | None = None,
        titles: Sequence[str] | None = None,
    ) -> Int64[ndarray, " n"]:
        """Embed the texts that have no vector yet, and return the row of each text in the file."""
        # an encoder with one tower reads a title as the start of its passage
        if titles is not None and not self.two_towers:
            texts = [
                with_title(text, title, None) for text, title in zip(texts, titles, strict=True)
            ]
            titles = None
        conditions = _Conditions(language, role, self._prompt_of(role))
        pairs = list(zip(texts, titles or [""] * len(texts), strict=True))
        keys = [_key(conditions, text, title) for text, title in pairs]
        rows = self._store.find(keys)
        # by key, so that a text that occurs twice is embedded once
        new = {
            key: pair for key, pair, row in zip(keys, pairs, rows.tolist(), strict=True) if row < 0
        }
        # each portion is stored before the next one is embedded: a run that is stopped loses one
        # at most
        for first in range(0, len(new), self._portion):
            if self._only_kept or (self._budget is not None and self._budget.is_used):
                raise BudgetUsed
            portion = slice(first, first + self._portion)
            self._append(list(new)[portion], list(new.values())[portion], conditions)
        if new:
            rows = self._store.find(keys)
        self.encoded_texts += len(new)
        self.reused_texts += len(texts) - len(new)
        self._mark_requested(rows)
        return rows

    def kept(self, rows: Int64[ndarray, " n"]) -> Float32[ndarray, "n d"]:
        """Read the vectors of rows returned by ``keep`` from the file."""
        vectors = self._store.vectors(rows)
        if self._cut_to is None:
            return vectors
        return first_elements(vectors, self._cut_to, normalize=self._encoder.settings.normalize)

    def _mark_requested(self, rows: Int64[ndarray, " n"]) -> None:
        """Mark rows as requested by this task."""
        short = self._store.count - len(self._is_requested)
        if short > 0:
            # extended in large steps, because each extension copies all marks
            step = max(short, len(self._is_requested) // 8)
            self._is_requested = np.concatenate([self._is_requested, np.zeros(step, dtype=bool)])
        self._is_requested[rows] = True

    @contextlib.contextmanager
    def only_kept(self) -> Iterator[None]:
        """Raise ``BudgetUsed`` during the block if a text has no vector yet, and count no work."""
        self._only_kept = True
        self._is_requested = np.zeros(0, dtype=bool)
        before = self.encoded_texts, self.reused_texts, self.encode_seconds
        try:
            yield
        finally:
            self._only_kept = False
            self.encoded_texts, self.reused_texts, self.encode_seconds = before

    def _prompt_of(self, role: Role | None) -> str | None:
        if role is None:
            return self._prompt
        prompt = role_prompt(self._encoder, role, self._role_prompts, self._prompt)
        self.used_prompts[role] = prompt_text(self._encoder, prompt)
        return prompt

    def _append(
        self, keys: list[bytes], pairs: list[tuple[str, str]], conditions: _Conditions
    ) -> None:
        """Embed a portion of texts with their titles and store the vectors."""
        texts_before = 0
        cuts_before = 0
        if self.report is not None:
            texts_before = self.report.texts
            cuts_before = len(self.report.cut_rows)
        start = time.perf_counter()
        vectors = as_vectors(self._encoded(pairs, conditions))
        self.encode_seconds += time.perf_counter() - start
        check_vectors(vectors, [text for text, _ in pairs], self._store.dim)
        is_cut: Bool[ndarray, " n"] = np.zeros(len(pairs), dtype=bool)
        if self.report is not None:
            # one report covers all portions, and its row numbers count from the first embedded
            # text
            is_cut[[row - texts_before for row in self.report.cut_rows[cuts_before:]]] = True
        self._store.append(keys, vectors, is_cut)

    def _encoded(self, pairs: list[tuple[str, str]], conditions: _Conditions) -> Any:
        """Return the vectors as the encoder returns them."""
        texts = [text for text, _ in pairs]
        options: dict[str, Any] = {
            "language": conditions.language,
            "batch_tokens": self._batch_tokens,
        }
        if conditions.role is not None and self.two_towers:
            titles = [title for _, title in pairs]
            return encode_in_role(self._encoder, texts, titles, conditions.role, **options)
        if self.report is not None:
            options["report"] = self.report
        if self._is_own:
            # normalized only if the model does so: a classifier or an inner product may need the
            # lengths
            options["normalize_embeddings"] = self._encoder.settings.normalize
            # kept whole, for runs with other widths
            options["truncate_dim"] = None
        return self._encoder.encode(texts, prompt=conditions.prompt, **options)


def _key(conditions: _Conditions, text: str, title: str) -> bytes:
    """Return a digest of a text and of the settings that the file's name does not cover."""
    parts: tuple[object, ...] = (conditions.language, text)
    if conditions.role is not None:
        # the prompt of a text without a role is in the name of the file
        parts = (conditions.role, conditions.prompt, title, *parts)
    joined = "\0".join(map(str, parts))
    return hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=KEY_BYTES).digest()


def vector_places(
    model: ModelInfo,
    encoder: TextEncoder,
    prompt: str,
    output: PathLike | None,
    cache: PathLike | None,
) -> dict[str, Path | None]:
    """Return ``unfinished`` and ``kept`` for a ``CachedEncoder``.

    The vectors are stored in the cache if there is one, otherwise next to the results.

    Raises:
        ConfigError: there is a cache, and a change of the model would go unnoticed.
    """
    places: dict[str, Path | None] = {"kept": None, "unfinished": None}
    if cache is not None:
        places["kept"] = kept_folder(model, encoder, prompt, Path(cache))
    elif output is not None:
        places["unfinished"] = unfinished_file(model, encoder, prompt, Path(output))
    return places


def unfinished_file(
    model: ModelInfo, encoder: TextEncoder, prompt: str, folder: Path
) -> Path | None:
    """Return the file in which an interrupted suite leaves its vectors, to resume with them.

    Args:
        model: what is known of the encoder; without a digest a change would go unnoticed.
        encoder: its settings count too.
        prompt: the text before every input.
        folder: of the results.

    Returns:
        A file next to the model's results, named by a digest of all that vectors depend on.

        None if a change of the model would go unnoticed.
    """
    if model.identity is None:
        return None
    digest = _digest(vectors_depend_on(model, encoder, prompt))
    return model_folder(model.name, folder) / f"unfinished-{digest}.vectors"


def kept_folder(model: ModelInfo, encoder: TextEncoder, prompt: str, cache: Path) -> Path:
    """Return the cache folder for vectors of a model with these settings.

    It contains ``about.json``, which describes the model and the settings.

    Raises:
        ConfigError: a change of the model would go unnoticed.
    """
    if model.identity is None:
        raise ConfigError(
            f"vectors of {model.name} cannot be cached, because a change of the model would not be"
            " detected; remove the cache, or set a version: --set function.version=1"
        )
    about = vectors_depend_on(model, encoder, prompt)
    folder = cache.expanduser() / f"{model_folder(model.name, Path()).name}-{_digest(about)}"
    if not (folder / "about.json").exists():
        with atomic_write(folder / "about.json") as file:
            file.write(json.dumps(about, ensure_ascii=False, indent=2) + "\n")
    return folder


def vectors_depend_on(model: ModelInfo, encoder: TextEncoder, prompt: str) -> dict[str, Any]:
    """Return all settings that determine a vector besides its text, language and role prompt."""
    settings = getattr(encoder, "settings", None)
    # cpu or cuda, without the number of the device
    kind = (model.device or "").partition(":")[0]
    facts = {
        name: getattr(model, name)
        for name in ("identity", "library", "dim", "pooling", "dtype", "max_tokens")
    }
    # vectors are kept whole and cut when they are read
    facts["dim"] = getattr(encoder, "whole_dim", model.dim)
    own: dict[str, Any] | None = None
    if dataclasses.is_dataclass(settings):
        fields = dataclasses.asdict(settings)  # type: ignore[arg-type]
        own = {name: value for name, value in fields.items() if name not in UNREAD}
    # the prompt is already one of the facts, and the width changes no vector
    overrides = [
        override
        for override in model.overrides
        if not override.partition("=")[0].endswith(("prompt", "dim"))
    ]
    return {**facts, "overrides": overrides, "device": kind, "settings": own, "prompt": prompt}


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
