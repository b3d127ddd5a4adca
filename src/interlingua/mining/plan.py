"""Estimates of time, disk and memory of mining, before it starts.

The time is estimated by short trials on this machine. The model embeds a sample of the texts, and
its characters per second are taken for all texts. The search multiplies small tiles of the sample's
vectors (``retrieval.topk.speed``). Everything else has a fixed time per text and pair. Disk and
memory follow from the sizes of what is written and held.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.samples.reservoir import reservoir
from interlingua.errors import DataError, count_of
from interlingua.mining.candidates import FOUND
from interlingua.mining.pair_search import PairSearch
from interlingua.mining.pipeline import (
    CHOICE_SECONDS,
    DOCUMENT_SECONDS,
    PAIR_SECONDS,
    TextFile,
    one_width,
    vectors_of,
)
from interlingua.mining.texts import read_text_lines
from interlingua.mining.vectors import PORTION, finished, open_vectors
from interlingua.retrieval.topk.speed import search_speed
from interlingua.retrieval.topk.tiles import block_sizes, bytes_of_a_vector
from interlingua.runtime import duration, peak_rss_bytes, size_text
from interlingua.runtime.portions import ceil_div

TRIED_TEXTS = 1024
"""Texts drawn for the trial of the model, of which as many are embedded as ``_TRIAL_SECONDS``
allow."""
_TRIAL_SECONDS = 8.0
SAMPLED_TEXTS = 20_000
"""Maximum size of the sample that estimates the number of different texts, with an error of 1 %."""
LINE_BYTES = 48
"""Bytes of a line in the work folder, without its text and name: its offset and text number."""


class SideSize(NamedTuple):
    """The size of a side.

    Attributes:
        lines: of the file.
        texts: estimated number of different texts that are not blank.
        characters: estimated number of characters of these texts.
        file_bytes: of texts and names of all lines.
        sample: some of the texts.
        left: share of the texts that have no vectors yet.
    """

    lines: int
    texts: int
    characters: int
    file_bytes: int
    sample: list[str]
    left: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """The estimate that is reported before the start.

    Attributes:
        texts: of source and target.
        embedding_seconds: of both sides.
        search_seconds: of the neighbors; 0 within documents.
        disk_bytes: of the work folder.
        memory_bytes: model and blocks.
        pair_seconds: of choosing, checking and writing pairs.
        tiles: into which the search is cut.
        at_once: tasks done at once.
        approximate: whether the search is approximate; its time cannot be estimated then.
    """

    texts: tuple[int, int]
    embedding_seconds: float
    search_seconds: float
    pair_seconds: float
    disk_bytes: int
    memory_bytes: int
    tiles: int
    at_once: int = 1
    approximate: bool = False

    def lines(self) -> list[str]:
        """Return the estimate as lines of text."""
        embedding = self.embedding_seconds / self.at_once
        search = self.search_seconds / self.at_once
        total = embedding + self.pair_seconds
        exactly = ""
        left_out = ""
        if self.approximate:
            exactly = "approximate, time not estimated; an exact search would take "
            left_out = ", without the search"
        else:
            total += search
        machines = ""
        if self.at_once > 1:
            machines = f", {self.at_once} tasks at once"
        return [
            f"texts: {self.texts[0]:,} and {self.texts[1]:,}, equal ones counted once",
            f"embedding: {duration(embedding)}",
            f"nearest neighbors: {exactly}{duration(search)}, {count_of(self.tiles, 'tiles')}",
            f"pairs: {duration(self.pair_seconds)}",
            f"time: {duration(total)} (at the speed measured on this machine{machines}{left_out})",
            f"disk: {size_text(self.disk_bytes)} in the work folder",
            f"memory: {size_text(self.memory_bytes)}",
        ]


def estimate(
    source: TextFile,
    target: TextFile,
    config: PairSearch,
    folder: Path | None,
    *,
    least_tiles: int = 1,
    at_once: int = 1,
) -> Estimate:
    """Estimate the costs: read both files, and try the model and the search.

    Args:
        source: the one side.
        target: the other.
        config: how pairs are to be found.
        folder: the work folder, if there is one; its vectors need not be made again.
        least_tiles: see ``TilePlan.of``.
        at_once: tasks that many workers do at once.

    Raises:
        DataError: a side has no text, or vectors that don't fit it.
    """
    files = {"x": source, "y": target}
    # Embedding: a known vector costs nothing, its rate is infinite.
    sides = []
    for name, file in files.items():
        at = None
        if folder is not None:
            at = vectors_of(folder, name)
        sides.append(_measure(file, config, at))
    vectors = []
    seconds = 0.0
    for file, side in zip(files.values(), sides, strict=True):
        sample, rate = _trial(file, side)
        vectors.append(sample)
        seconds += side.characters * side.left / rate
    one_width((source, target), vectors)
    width = vectors[0].shape[1]
    n, m = (side.texts for side in sides)
    rows, columns = block_sizes(n, m, width, config.k, config.memory_bytes, least_tiles)
    search = 0.0
    tiles = 0
    pairs = (n + m) * DOCUMENT_SECONDS
    if not config.documents:
        pairs = (n + m) * CHOICE_SECONDS
        speed = search_speed(vectors[0], vectors[1], config.k, (n, m), config.search_device)
        search = speed.seconds(n, m, config.k, rows)
        tiles = ceil_div(n, rows) * ceil_div(m, columns)
    # On disk: float32 vectors, and of each neighbor a float32 similarity and an int64 number.
    disk = 0
    for side in sides:
        disk += side.file_bytes + side.lines * LINE_BYTES
        disk += side.texts * (4 * width + 12 * config.k)
    # At most one pair per text is found. A candidate takes 40 bytes with its mean and hub count.
    disk += min(n, m) * FOUND.itemsize + (n + m) * 40
    # In memory: the model's memory in the trial, and a block of either side.
    memory = peak_rss_bytes() + (rows + columns) * bytes_of_a_vector(width, config.k)
    approximation = config.approximation
    if approximation is not None:
        memory += approximation.index_bytes(n + m, width)
    return Estimate(
        texts=(n, m),
        embedding_seconds=seconds,
        search_seconds=search,
        disk_bytes=disk,
        memory_bytes=memory,
        pair_seconds=pairs + min(n, m) * PAIR_SECONDS,
        tiles=tiles,
        at_once=at_once,
        approximate=approximation is not None,
    )


class DifferentTexts:
    """Estimator of the number of different texts of a stream, and of their characters.

    A text is in the sample if its hash is below a limit, however often it occurs. The limit is
    halved when the sample is full.
    """

    def __init__(self) -> None:
        self._characters: dict[int, int] = {}
        self._share = 1

    def add(self, text: str) -> None:
        """Count a text."""
        key = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
        if key < 2**64 // self._share:
            self._characters[key] = len(text)
        if len(self._characters) > SAMPLED_TEXTS:
            self._share *= 2
            limit = 2**64 // self._share
            self._characters = {key: size for key, size in self._characters.items() if key < limit}

    @property
    def texts(self) -> int:
        """Number of different texts; exact if there are few."""
        return len(self._characters) * self._share

    @property
    def characters(self) -> int:
        """Characters of the different texts."""
        return sum(self._characters.values()) * self._share


def _measure(file: TextFile, config: PairSearch, folder: Path | None) -> SideSize:
    """Read a side once: its sizes, and a sample of its texts."""
    lines = texts = characters = bytes_ = 0
    different = DifferentTexts()

    def counted() -> Iterator[str]:
        nonlocal lines, texts, characters, bytes_
        read = read_text_lines(
            file.files, file.layout, strip=not config.is_like_laser, bad=file.bad
        )
        for line in chain(read, file.extra):
            lines += 1
            if line.text:
                texts += 1
                characters += len(line.text)
                bytes_ += len(line.text.encode()) + len(line.name)
                different.add(line.text)
                yield line.text

    sample = reservoir(counted(), TRIED_TEXTS, seed=0)
    if not sample:
        raise DataError("the file contains no text; expected one sentence per line", path=file.path)
    # Lines that are one text are embedded and searched once.
    if config.equal != "never":
        texts = min(texts, different.texts)
        characters = min(characters, different.characters)
    # Portions of an earlier run. The last one may hold fewer texts, so that this is a rough share.
    embedded = 0
    if folder is not None and folder.is_dir():
        embedded = len(finished(folder)) * PORTION
    return SideSize(lines, texts, characters, bytes_, sample, max(0.0, 1 - embedded / texts))


def _trial(file: TextFile, side: SideSize) -> tuple[Float32[ndarray, "n d"], float]:
    """Return vectors of some texts, and the characters per second that the model reads."""
    if file.vectors:
        known = open_vectors(file.vectors, side.lines)
        # Lines at even distances; of a short file each line once.
        rows = np.unique(np.linspace(0, side.lines - 1, TRIED_TEXTS).astype(np.int64))
        return known.scaled(rows), math.inf
    assert file.encode is not None
    texts = iter(side.sample)
    # The first texts are slower, as memory is taken and kernels are chosen; they are not timed.
    vectors = [file.encode(list(islice(texts, 16)))]
    start = time.perf_counter()
    characters = 0
    # The parts grow: a slow model exceeds the allowed time only slightly, and a fast one is
    # measured on full batches.
    part = 128
    while time.perf_counter() - start < _TRIAL_SECONDS and (some := list(islice(texts, part))):
        vectors.append(file.encode(some))
        characters += sum(map(len, some))
        part *= 2
    # A sample of 16 texts or fewer was not timed at all.
    if not characters:
        vectors.append(file.encode(side.sample))
        characters = sum(map(len, side.sample))
    return np.concatenate(vectors), characters / (time.perf_counter() - start)
