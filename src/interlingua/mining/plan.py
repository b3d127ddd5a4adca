"""What mining will take, before it starts: time by short trials on the texts themselves, disk, memory."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.reservoir import reservoir
from interlingua.errors import DataError
from interlingua.mining.found import FOUND
from interlingua.mining.knn import centre, make_scanner
from interlingua.mining.lists import Lists
from interlingua.mining.pipeline import MineConfig, TextFile
from interlingua.mining.scan import Block, Centres
from interlingua.mining.texts import read_lines
from interlingua.mining.tiles import bytes_of_a_vector
from interlingua.mining.vectors import PORTION, finished, open_vectors, unit

TRIED_TEXTS = 1024
"""Texts drawn for the trial of the model, of which as many are embedded as ``TRIAL_SECONDS`` allow."""
TRIAL_SECONDS = 8.0
TRIED_VECTORS = 4096
LINE_BYTES = 48
"""Of a line in the work folder, beside its text and its name: where it begins and what text it is."""


class Measured(NamedTuple):
    """A side.

    Attributes:
        lines: of the file.
        texts: those that are not blank.
        characters: of all of them.
        file_bytes: of texts and names.
        sample: some of the texts.
        left: share of the texts whose vectors are not there yet.
    """

    lines: int
    texts: int
    characters: int
    file_bytes: int
    sample: list[str]
    left: float


class SearchSpeed(NamedTuple):
    """What the search takes here, in seconds.

    Attributes:
        pair: of a similarity.
        place: of a vector that finds its way into a list.
        vector: of making a vector ready.
    """

    pair: float
    place: float
    vector: float

    def seconds(self, n: int, m: int, k: int, rows: int) -> float:
        """Of all neighbours both ways.

        Of vectors in any order, the i-th is among the k best so far with probability k / i; so k (1 + ln(m / k)) of m
        find their way into a list.
        """
        places = sum(a * k * (1 + math.log(max(b / k, 1))) for a, b in ((n, m), (m, n)))
        ready = n + m * -(-n // rows)
        return self.pair * n * m + self.place * places + self.vector * ready


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What is said before the start.

    Attributes:
        texts: of source and target.
        embedding_seconds: of both sides.
        search_seconds: of the neighbours; 0 within documents.
        disk_bytes: of the work folder.
        memory_bytes: model and blocks.
        tiles: into which the search is cut.
    """

    texts: tuple[int, int]
    embedding_seconds: float
    search_seconds: float
    disk_bytes: int
    memory_bytes: int
    tiles: int

    def lines(self) -> list[str]:
        """For people."""
        total = self.embedding_seconds + self.search_seconds
        return [
            f"texts: {self.texts[0]:,} and {self.texts[1]:,}, equal ones counted again",
            f"embedding: {duration(self.embedding_seconds)}",
            f"nearest neighbours: {duration(self.search_seconds)}, {self.tiles:,} tiles",
            f"time: {duration(total)} (as fast as this machine was just now)",
            f"disk: {size(self.disk_bytes)} in the work folder",
            f"memory: {size(self.memory_bytes)}",
        ]


def estimate(source: TextFile, target: TextFile, config: MineConfig, folder: Path) -> Estimate:
    """Reads both files, tries the model and the search.

    Args:
        source: the one side.
        target: the other.
        config: how pairs are to be found.
        folder: the work folder, whose vectors need not be made again.

    Raises:
        DataError: a side has no text, or vectors that don't fit it.
    """
    files = (source, folder / "x"), (target, folder / "y")
    sides = [_measure(file, config, at) for file, at in files]
    vectors, seconds = [], 0.0
    for (file, _), side in zip(files, sides, strict=True):
        sample, rate = _trial(file, side)
        vectors.append(sample)
        seconds += side.characters * side.left / rate
    width, (n, m) = vectors[0].shape[1], (side.texts for side in sides)
    each = bytes_of_a_vector(width, config.k)
    block = max(min(config.memory // (3 * each), 2**20), 1)
    rows, columns = min(n, 2 * block), min(m, block)
    search, tiles = 0.0, 0
    if config.documents is None:
        search = search_speed(vectors[0], vectors[1], config.k, config.device).seconds(n, m, config.k, rows)
        tiles = -(-n // rows) * -(-m // columns)
    found = min(n, m) * FOUND.itemsize + (n + m) * 40
    disk = sum(side.file_bytes + side.texts * (LINE_BYTES + 4 * width + 12 * config.k) for side in sides) + found
    memory = peak_bytes() + min(config.memory, (rows + columns) * each)
    return Estimate(
        texts=(n, m), embedding_seconds=seconds, search_seconds=search, disk_bytes=disk, memory_bytes=memory,
        tiles=tiles,
    )  # fmt: skip


def search_speed(x: Float32[ndarray, "a d"], y: Float32[ndarray, "b d"], k: int, device: str = "cpu") -> SearchSpeed:
    """Tries the search on vectors drawn from between those of a sample.

    Two tiles of the same x are done, the second when x has its lists already: what differs is the places found.

    Args:
        x: of length 1, at least one.
        y: likewise.
        k: neighbours.
        device: where the products are made.
    """
    rng = np.random.default_rng(0)
    sides = [_between(rng, side, TRIED_VECTORS * times) for side, times in ((x, 1), (y, 2))]
    scanner = make_scanner(Centres(centre(sides[0]), centre(sides[1])), device=device)
    tile = TRIED_VECTORS
    scanner.prepare(Block(sides[0], 0), of_x=True)  # the first time is slower
    start = time.perf_counter()
    left = scanner.prepare(Block(sides[0], 0), of_x=True)
    right = [scanner.prepare(Block(sides[1][at : at + tile], at), of_x=False) for at in (0, tile)]
    ready = (time.perf_counter() - start) / (3 * tile)
    times = [math.inf, math.inf]
    for _ in range(3):
        of_x = Lists.empty(tile, k)
        for turn in (0, 1):
            of_y = Lists.empty(tile, k)
            start = time.perf_counter()
            scanner.scan(left, right[turn], of_x, of_y)
            times[turn] = min(times[turn], time.perf_counter() - start)
    fresh = tile * k * (1 + math.log(tile / k))
    place = max(0.0, (times[0] - times[1]) / (fresh - tile * k * math.log(2)))
    return SearchSpeed(max(times[0] - place * 2 * fresh, 0.1 * times[0]) / tile**2, place, ready)


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.4 h``, ``2.1 days``."""
    for unit_seconds, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.1f} {name}"
    return f"{seconds:.1f} s"


def size(count: float) -> str:
    """``1.5 GiB``."""
    for power, name in ((4, "TiB"), (3, "GiB"), (2, "MiB")):
        if count >= 2 ** (10 * power):
            return f"{count / 2 ** (10 * power):.1f} {name}"
    return f"{count / 1024:.0f} KiB"


def peak_bytes() -> int:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _measure(file: TextFile, config: MineConfig, folder: Path) -> Measured:
    lines = texts = characters = bytes_ = 0

    def counted() -> Iterator[str]:
        nonlocal lines, texts, characters, bytes_
        for line in read_lines(file.path, file.layout, strip=not config.like_laser):
            lines += 1
            if line.text:
                texts += 1
                characters += len(line.text)
                bytes_ += len(line.text.encode()) + len(line.name)
                yield line.text

    sample = reservoir(counted(), TRIED_TEXTS, seed=0)
    if not sample:
        raise DataError("holds no text; expected a sentence per line", path=file.path)
    there = len(finished(folder)) * PORTION if folder.is_dir() else 0
    return Measured(lines, texts, characters, bytes_, sample, max(0.0, 1 - there / texts))


def _trial(file: TextFile, side: Measured) -> tuple[Float32[ndarray, "n d"], float]:
    """Vectors of some texts, and how many characters a second the model reads."""
    if file.vectors is not None:
        known = open_vectors(file.vectors, side.lines)
        return unit(known[np.unique(np.linspace(0, side.lines - 1, TRIED_TEXTS).astype(np.int64))]), math.inf
    assert file.encode is not None
    texts = iter(side.sample)
    vectors = [file.encode(list(islice(texts, 16)))]  # the first time is slower
    start, characters = time.perf_counter(), 0
    part = 128
    while time.perf_counter() - start < TRIAL_SECONDS and (some := list(islice(texts, part))):
        vectors.append(file.encode(some))
        characters += sum(map(len, some))
        part *= 2
    if not characters:  # all of it was the first time
        vectors.append(file.encode(side.sample))
        characters = sum(map(len, side.sample))
    return np.concatenate(vectors), characters / (time.perf_counter() - start)


def _between(rng: np.random.Generator, vectors: Float32[ndarray, "n d"], count: int) -> Float32[ndarray, "count d"]:
    """Vectors half-way between two of a sample."""
    a, b = (vectors[rng.integers(len(vectors), size=count)] for _ in range(2))
    return unit(a + b + 1e-3 * rng.standard_normal(a.shape).astype(np.float32))
