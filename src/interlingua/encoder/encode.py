"""Encoding of any number of texts; the size of a window of texts bounds the memory.

Texts pass through three stages, a window at a time: they are tokenized, encoded and collected. A
thread tokenizes the next window while the current one is encoded. The rows of a window are sorted
by length: the attention computes sentences of about equal length together, as one group, and sorted
rows form the fewest groups. The sorted rows are cut into batches of a limited number of tokens,
since the time and memory of a batch depend on its tokens, not on its sentences. The vectors are put
back in the order of the texts and collected, or appended to a ``.npy`` file.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.feeds import pinned
from interlingua.batches.prefetch import Prefetcher
from interlingua.batches.tokens import TokenBatch
from interlingua.config.languages import resolve_language
from interlingua.config.registry import check_choice
from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.executors.layers import Frozen
from interlingua.encoder.finite_vectors import check_finite
from interlingua.encoder.language_maps.language_shift import LanguageShift
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.encoder.pooling import HiddenStates, PoolingMode
from interlingua.encoder.post_pooling import PostPooling
from interlingua.encoder.static import StaticBackbone, StaticRunner
from interlingua.encoder.texts import checked_texts, is_blank
from interlingua.encoder.vector_format import VectorFormat, VectorPrecision
from interlingua.errors import ConfigError, DataError
from interlingua.runtime.progress import SILENT, Progress, progress_of
from interlingua.storage.files import PathLike, atomic_write, is_special
from interlingua.vocabulary.vocabulary import Vocabulary, truncate

log = logging.getLogger("interlingua")
WINDOW_TEXTS = 16_384
WINDOW_CHARACTERS = 4_000_000
"""A window also ends at this number of characters, so that memory is bounded for long texts too."""
CPU_BATCH_TOKENS = 4096
"""The activations of a larger batch do not fit into the caches, and a CPU slows down."""
MIN_SHARE_TOKENS = 512
SHARES = 12
"""A batch for one thread has at least ``MIN_SHARE_TOKENS`` tokens. There are ``SHARES`` batches per
thread, so that no thread waits for long. If a window has fewer than ``MIN_SHARE_TOKENS`` tokens per
thread, all threads work on one batch."""
Dtype = Literal["float32", "tf32", "bfloat16", "float16", "int8", "auto"]
WEIGHT_DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
"""Dtypes of stored weights."""
COMPUTE_DTYPES: Mapping[str, torch.dtype | None] = {
    **WEIGHT_DTYPES,
    "tf32": torch.float32,
    "int8": torch.int8,
    "auto": None,
}
"""tf32: float32 with factors that a GPU rounds to 10 bits in products. None: the fastest dtype that
keeps vectors close to those in float32, see ``encoder/executors/layers.py``."""
BATCHES_AHEAD = 2
"""Number of batches that are packed before a GPU needs them, and number of batches that the GPU
computes while the vectors of an earlier batch are copied."""
_Vectors = Float32[np.ndarray, "n d"]


# Token limits for which this process has already warned of cut texts: one warning each is enough.
_WARNED_LIMITS: set[int] = set()


@dataclass(slots=True)
class EncodeReport:
    """Record of cut and blank texts; one report can accumulate many calls."""

    texts: int = 0
    tokens: int = 0
    """Number of tokens, without those that were cut off."""
    max_tokens: int = 0
    """The encoder's limit."""
    cut_rows: array[int] = field(default_factory=lambda: array("q"))
    """Numbers of the texts that were cut at the limit, counted from 0 over all calls."""

    @property
    def cuts(self) -> str:
        """Summary of the cuts, such as ``3 of 800 texts were cut to 64 tokens``."""
        return (
            f"{len(self.cut_rows):,} of {self.texts:,} texts were cut to {self.max_tokens} tokens"
        )


class EncodingModel(Protocol):
    """The interface that a model must have to encode texts; ``Encoder`` implements it."""

    backbone: Backbone
    post_pooling: PostPooling
    language_shift: LanguageShift | None
    vocabulary: Vocabulary
    settings: EncodingSettings

    @property
    def full_dim(self) -> int:
        """Width of the vectors before they are cut."""
        ...

    @property
    def pooling(self) -> PoolingMode:
        """The pooling of token states to a sentence vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Largest number of tokens of a text, special ones included; longer texts are cut."""
        ...

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        ...

    def is_special(self, input_ids: Int[Tensor, " t"]) -> Bool[Tensor, " t"]:
        """Return, for each token, whether it is special; unknown and mask tokens are not."""
        ...

    def pool(self, hidden: HiddenStates) -> Float[Tensor, "b d"]:
        """Return sentence vectors from token states, before they are cut and scaled."""
        ...

    def frozen_backbone(self, dtype: torch.dtype | None) -> Frozen | StaticBackbone:
        """Return the backbone prepared for inference.

        Its dtype is ``dtype``; None = the fastest dtype that keeps vectors close to those in
        float32.
        """
        ...


def encode_texts(
    encoder: EncodingModel,
    texts: Iterable[str],
    *,
    prompt: str | None,
    language: str | None,
    batch_size: int | None,
    batch_tokens: int,
    normalize: bool,
    dim: int | None,
    precision: VectorPrecision,
    dtype: Dtype,
    out: PathLike | None,
    report: EncodeReport | None,
    progress: bool | Progress,
) -> _Vectors:
    """Return one vector per text, in the order of the texts; see ``Encoder.encode``.

    Memory is bounded by the window.

    Args:
        encoder: the model.
        texts: any iterable; a generator is read as needed.
        prompt: name of one of the model's prompts, a text to put in front, or None.
        language: of the texts, in any code.
        batch_size: upper limit of a batch, in texts; None = no limit.
        batch_tokens: upper limit of a batch, in tokens.
        normalize: scale the vectors to length 1.
        dim: number of elements to keep of each vector; None = all.
        precision: of the vectors.
        dtype: to compute in.
        out: a ``.npy`` file to write instead of collecting the vectors in memory.
        report: counts texts, tokens and cut texts.
        progress: True shows a bar; a ``Progress`` object counts the texts.

    Raises:
        ConfigError: ``texts`` is a single text, a table, a dictionary or a set, or an option is out
            of range.
        DataError: an element of ``texts`` is not a text, or ``out`` is set and a vector is not
            finite.
    """
    checked = checked_texts(texts)
    _check_request(batch_size, batch_tokens, dtype, out)
    form = VectorFormat.of(
        encoder.settings, encoder.full_dim, dim=dim, normalize=normalize, precision=precision
    )
    if language is not None:
        language = resolve_language(language).code
    counts = EncodeReport() if report is None else report
    tokenized = _tokenized_windows(
        encoder, checked, encoder.settings.prompt_text(prompt), language, counts
    )
    # A generator has no length: the progress is shown without a total number.
    total = len(texts) if isinstance(texts, Sized) else None
    # Cut vectors are scaled afterwards: a part of a vector of length 1 has another length.
    normalizes = normalize and not form.cuts
    with (
        progress_of(progress, total, "texts", "encoding") as counting,
        _runner(encoder, dtype, normalizes, language, batch_size) as run,
    ):
        encoded = (
            form(_without_blank(run(ids, batch_tokens, counting), blank_rows))
            for ids, blank_rows in tokenized
        )
        vectors = collect_vectors(encoded, form.width, out)
    if report is None and counts.cut_rows and counts.max_tokens not in _WARNED_LIMITS:
        _WARNED_LIMITS.add(counts.max_tokens)
        log.warning("%s; this warning is shown once", counts.cuts)
    return vectors


def _without_blank(vectors: _Vectors, blank_rows: list[int]) -> _Vectors:
    """Set the vectors of a window's blank texts to zero, in place."""
    vectors[blank_rows] = 0.0
    return vectors


def _check_request(
    batch_size: int | None, batch_tokens: int, dtype: str, out: PathLike | None
) -> None:
    if batch_tokens < 1:
        raise ConfigError(
            f"batch_tokens: expected a positive number of tokens, found {batch_tokens}"
        )
    if batch_size is not None and batch_size < 1:
        raise ConfigError(f"batch_size: expected a positive number of texts, found {batch_size}")
    check_choice("dtype", dtype, COMPUTE_DTYPES)
    if out is not None and is_special(out):
        raise DataError(
            "vectors cannot be written to a pipe or device, because their header is written"
            " last; name a file",
            path=out,
        )


def dtype_name(dtype: str | torch.dtype) -> Dtype:
    """Return the name of a dtype to compute in, which is passed as a name or as a dtype of torch.

    Raises:
        ConfigError: the dtype is unknown; the message suggests the nearest name.
    """
    name = str(dtype).removeprefix("torch.")
    check_choice("dtype", name, COMPUTE_DTYPES)
    return cast(Dtype, name)


def encode_tokens(
    encoder: EncodingModel,
    sequences: list[list[int]],
    *,
    normalize: bool = True,
    dtype: Dtype = "float32",
    language: str | None = None,
) -> _Vectors:
    """Encode token ids as ``encode_texts`` encodes texts.

    Each sequence must be within the token limit and include its special tokens.

    Args:
        encoder: the model.
        sequences: ids of its vocabulary.
        normalize: scale the vectors to length 1.
        dtype: to compute in.
        language: code of the texts' language, for models that shift vectors by language.
    """
    with _runner(encoder, dtype, normalize, language) as run:
        return run(sequences, 16_384, SILENT)


def automatic_dtype_name(encoder: EncodingModel) -> Dtype:
    """Return the dtype that "auto" means with this model on this machine."""
    backbone = encoder.frozen_backbone(None)
    # Token vectors are looked up and averaged: there is no product to speed up.
    if isinstance(backbone, StaticBackbone):
        return "float32"
    # "float32" is found before "tf32", which has the same dtype: "auto" never means "tf32".
    names = (name for name, dtype in COMPUTE_DTYPES.items() if dtype == backbone.dtype)
    return cast(Dtype, next(names))


def _tokenized_windows(
    encoder: EncodingModel,
    texts: Iterable[str],
    prompt: str,
    language: str | None,
    report: EncodeReport,
) -> Iterator[tuple[list[list[int]], list[int]]]:
    """Yield token ids and the rows of blank texts, a window of texts at a time.

    The next window is tokenized while this one is encoded.
    """

    def tokenize(window: list[str]) -> tuple[list[list[int]], list[int]]:
        blank_rows = [row for row, text in enumerate(window) if is_blank(text)]
        if prompt:
            window = [prompt + text for text in window]
        ids = cut_ids(encoder.vocabulary, window, encoder.max_tokens, report, language=language)
        return ids, blank_rows

    left = windows(texts)
    first = next(left, [])
    second = next(left, None)
    # A single window has nothing to overlap with, so that a short call starts no thread.
    if second is None:
        yield tokenize(first)
        return
    # One worker: the report is then filled in the order of the texts, by one thread at a time.
    with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as pool:
        ahead: Future[tuple[list[list[int]], list[int]]] = pool.submit(tokenize, first)
        for window in itertools.chain([second], left):
            coming = pool.submit(tokenize, window)
            yield ahead.result()
            ahead = coming
        yield ahead.result()


def cut_ids(
    vocabulary: Vocabulary,
    texts: Sequence[str],
    limit: int,
    report: EncodeReport,
    *,
    language: str | None = None,
) -> list[list[int]]:
    """Return the token ids of texts, at most ``limit`` of each; count them in the report."""
    report.max_tokens = limit
    # One token more than the limit is requested: its presence shows that a text is cut.
    rows_of_ids = vocabulary.encode(texts, language=language, max_tokens=limit + 1)
    for row, ids in enumerate(rows_of_ids):
        if len(ids) > limit:
            rows_of_ids[row] = truncate(ids, limit, closing_tokens=vocabulary.closing_tokens)
            report.cut_rows.append(report.texts + row)
    report.texts += len(rows_of_ids)
    report.tokens += sum(map(len, rows_of_ids))
    return rows_of_ids


def windows(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield windows of texts; the texts of a window are later sorted by length.

    Vectors do not depend on the windows: each text could be embedded by itself.
    """
    window: list[str] = []
    characters = 0
    for text in texts:
        window.append(text)
        characters += len(text)
        if len(window) == WINDOW_TEXTS or characters >= WINDOW_CHARACTERS:
            yield window
            window = []
            characters = 0
    if window:
        yield window


def _runner(
    encoder: EncodingModel,
    dtype: Dtype,
    normalize: bool,
    language: str | None = None,
    batch_size: int | None = None,
) -> _BatchRunner | StaticRunner:
    shift: Tensor | None = None
    if encoder.language_shift is not None:
        shift = encoder.language_shift.mean_of(language)
    # Means of token vectors are taken for a whole window at once, without batches.
    if isinstance(encoder.backbone, StaticBackbone) and encoder.pooling == "mean":
        # Token ids that count in the mean: found once, not for every text.
        counted = torch.ones(encoder.backbone.config.vocab_size, dtype=torch.bool)
        if not encoder.settings.include_special:
            counted = ~encoder.is_special(torch.arange(len(counted)))
        return StaticRunner(
            encoder.backbone, encoder.post_pooling, counted, normalize=normalize, shift=shift
        )
    if dtype == "int8" and encoder.device.type != "cpu":
        raise ConfigError(
            f"dtype int8 runs only on CPUs, but the model is on {encoder.device}; use bfloat16"
            " or auto"
        )
    if dtype == "tf32" and encoder.device.type != "cuda":
        raise ConfigError(
            f"dtype tf32 runs only on NVIDIA GPUs, but the model is on {encoder.device}; use"
            " float32"
        )
    return _BatchRunner(encoder, dtype, normalize, shift, batch_size)


class _Packed(NamedTuple):
    """A batch, on the host."""

    tokens: TokenBatch
    special: Bool[Tensor, " t"]
    """Tokens that the tokenizer put around the texts."""


class _BatchRunner:
    """Runner of the batches of a window.

    On the CPU each thread has batches of its own, and products use one thread: if another process
    keeps a core busy, only one batch is slowed. A few sentences form one batch, which all
    threads compute together.
    """

    def __init__(
        self,
        encoder: EncodingModel,
        dtype: Dtype,
        normalize: bool,
        shift: Tensor | None,
        batch_size: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.batch_size = batch_size
        self.normalize = normalize
        self.shift = shift
        self.backbone = encoder.frozen_backbone(COMPUTE_DTYPES[dtype])
        self.rounds_factors = dtype == "tf32"
        self.on_cpu = encoder.device.type == "cpu"
        self.threads = 1
        if self.on_cpu:
            self.threads = torch.get_num_threads()
        # Started with the first window of several batches, so that one sentence starts no threads.
        self.pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> _BatchRunner:
        return self

    def __exit__(self, *error: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
            # The number of threads that workers set applies to all threads made later: restore it.
            torch.set_num_threads(self.threads)

    def __call__(self, window: list[list[int]], batch_tokens: int, progress: Progress) -> _Vectors:
        lengths = [len(ids) for ids in window]
        if self.on_cpu:
            batch_tokens = min(batch_tokens, CPU_BATCH_TOKENS)
        tokens = sum(lengths)
        has_shares = self.threads > 1 and tokens >= MIN_SHARE_TOKENS * self.threads
        if has_shares:
            share = tokens // (SHARES * self.threads)
            batch_tokens = min(batch_tokens, max(MIN_SHARE_TOKENS, share))
        batches = list(token_budget_batches(lengths, batch_tokens, self.batch_size))
        vectors = np.empty((len(window), self.encoder.full_dim), dtype=np.float32)
        results = self._results(window, batches, in_threads=has_shares)
        for rows, result in zip(batches, results, strict=True):
            vectors[rows] = result
            progress.advance(len(rows))
        return vectors

    def _results(
        self, window: list[list[int]], batches: list[list[int]], *, in_threads: bool
    ) -> Iterator[_Vectors]:
        """Return the vectors of batches, in order; on a CPU, one or all threads compute a batch."""
        if not self.on_cpu:
            return self._computed_ahead(window, batches)
        if self.pool is None and in_threads:
            self.pool = ThreadPoolExecutor(
                self.threads, "encode", initializer=lambda: torch.set_num_threads(1)
            )

        def run(rows: list[int]) -> _Vectors:
            vectors: _Vectors = self.pooled(window, rows).numpy()
            return vectors

        if self.pool is None or not in_threads:
            return map(run, batches)
        return self.pool.map(run, batches)

    def _computed_ahead(
        self, window: list[list[int]], batches: list[list[int]]
    ) -> Iterator[_Vectors]:
        """Yield the results of batches, from a GPU.

        The next batches are already sent to the GPU before the host waits for a result.
        """
        arriving: deque[tuple[Tensor, torch.cuda.Event]] = deque()
        with products_in_tf32(enabled=self.rounds_factors):
            for packed in self._packed_ahead(window, batches):
                result = self._computed(packed).to("cpu", non_blocking=True)
                # A copy that does not block is complete when this event has passed, not before.
                arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
                arrived.record()
                arriving.append((result, arrived))
                if len(arriving) > BATCHES_AHEAD:
                    yield _awaited(*arriving.popleft())
            while arriving:
                yield _awaited(*arriving.popleft())

    def _packed_ahead(self, window: list[list[int]], batches: list[list[int]]) -> Iterator[_Packed]:
        """Yield the batches in page-locked memory, packed by a thread during computation."""

        def pack(number: int) -> _Packed:
            packed: _Packed = pinned(self._packed(window, batches[number]))
            return packed

        # A single batch has nothing to overlap with, so that one sentence starts no thread.
        if len(batches) == 1:
            yield pack(0)
            return
        with Prefetcher(pack, stop_step=len(batches), depth=BATCHES_AHEAD) as ready:
            yield from ready

    def _packed(self, window: list[list[int]], rows: list[int]) -> _Packed:
        """Pack the texts in these rows of the window."""
        batch = TokenBatch.from_lists([window[row] for row in rows], ("",) * len(rows))
        return _Packed(batch, self.encoder.is_special(batch.input_ids))

    def pooled(self, window: list[list[int]], rows: list[int]) -> Float32[Tensor, "n d"]:
        """Return the pooled states of the texts in these rows, on the model's device."""
        return self._computed(self._packed(window, rows))

    @torch.inference_mode()
    def _computed(self, packed: _Packed) -> Float32[Tensor, "n d"]:
        """Compute the pooled states of a batch."""
        batch = packed.tokens
        states = self.backbone(batch.input_ids, batch.cu_seqlens)
        pooled = self.encoder.pool(HiddenStates(states, batch.cu_seqlens, packed.special))
        # The mean of a language is subtracted from vectors as they are, before they are scaled.
        if self.shift is not None:
            pooled = pooled - self.shift
        if self.normalize:
            pooled = F.normalize(pooled, dim=-1)
        return pooled


def _awaited(result: Tensor, arrived: torch.cuda.Event) -> _Vectors:
    arrived.synchronize()
    vectors: _Vectors = result.numpy()
    return vectors


@contextlib.contextmanager
def products_in_tf32(*, enabled: bool) -> Iterator[None]:
    """Round factors of a GPU's float32 products to TF32's 10 bits for the block, if enabled."""
    products = torch.backends.cuda.matmul
    # Older versions of torch have a switch in place of the named precision.
    name: str = "allow_tf32"
    value: str | bool = True
    if hasattr(products, "fp32_precision"):
        name = "fp32_precision"
        value = "tf32"
    before = getattr(products, name)
    if enabled:
        setattr(products, name, value)
    try:
        yield
    finally:
        setattr(products, name, before)


def token_budget_batches(
    lengths: Sequence[int], batch_tokens: int, batch_size: int | None = None
) -> Iterator[list[int]]:
    """Yield rows of a window, longest first, in batches of at most ``batch_tokens`` tokens.

    Rows are sorted so that the sentences of a batch have equal or nearly equal lengths. A text
    with more than ``batch_tokens`` tokens is a batch by itself.

    Args:
        lengths: tokens of each text.
        batch_tokens: upper limit of a batch, in tokens.
        batch_size: upper limit of a batch, in texts; None = no limit.
    """
    largest = batch_size or len(lengths)
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    batch: list[int] = []
    tokens = 0
    for row in order:
        if batch and (tokens + lengths[row] > batch_tokens or len(batch) == largest):
            yield batch
            batch = []
            tokens = 0
        batch.append(row)
        tokens += lengths[row]
    if batch:
        yield batch


def collect_vectors(windows: Iterator[_Vectors], dim: int, out: PathLike | None) -> _Vectors:
    """Collect vectors that are computed a window at a time, in memory or in a file.

    Args:
        windows: blocks of vectors that all have the same width and type of numbers.
        dim: the width if there are no windows.
        out: see ``Encoder.encode``.

    Raises:
        DataError: a vector that is to be written is not finite.
    """
    if out is None:
        blocks = list(windows)
        if not blocks:
            return np.zeros((0, dim), dtype=np.float32)
        return np.concatenate(blocks)
    with atomic_write(out, "wb") as file:
        rows = 0
        dtype = np.dtype(np.float32)
        # The number of rows is known only at the end: this header reserves space for the final one.
        _write_header(file, rows, dim, dtype)
        for window in windows:
            # `rows=rows` binds the current value; otherwise the lambda might read a later value.
            check_finite(window, lambda row, rows=rows: _line(rows + row))  # type: ignore[misc]
            file.write(np.ascontiguousarray(window).data)
            rows = rows + len(window)
            dim = window.shape[1]
            dtype = window.dtype
        file.seek(0)
        _write_header(file, rows, dim, dtype)
    # An array of no bytes can't be mapped.
    mode: Literal["r"] | None = "r" if rows else None
    vectors: _Vectors = np.load(out, mmap_mode=mode)
    return vectors


def _line(row: int) -> str:
    return f"line {row + 1:,} (row {row:,} counted from 0)"


def _write_header(file: Any, rows: int, dim: int, dtype: np.dtype[Any]) -> None:
    """Write a .npy header; numpy pads it to the same length for any number of rows."""
    description = {
        "descr": dtype.newbyteorder("<").str,
        "fortran_order": False,
        "shape": (rows, dim),
    }
    np.lib.format.write_array_header_1_0(file, description)
