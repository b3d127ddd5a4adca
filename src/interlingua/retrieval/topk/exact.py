"""Exact k nearest neighbors by inner product, block by block.

Each block of x meets each block of y once, and a scanner brings the lists of both up to date, so
that both directions come from one pass over the similarities. The vectors may be memory maps of any
length; only a block of each side and the lists themselves are held in memory.

FAISS searches one direction at a time and has no bound for skipping pairs: for the neighbors of
100,000 by 100,000 vectors both ways its flat index takes 154 s, the kernel here 17 s and plain
torch 49 s, with the same neighbors (``benchmarks/README.md``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from interlingua.errors import DataError, count_of
from interlingua.retrieval.topk.bounds import STAGE, Block, Frame, Scanner
from interlingua.retrieval.topk.device_scanner import DeviceScanner
from interlingua.retrieval.topk.kernel_scanner import CompiledScanner
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.retrieval.topk.scanner_choice import choose_scanner
from interlingua.retrieval.topk.torch_scanner import TorchScanner
from interlingua.runtime.portions import ceil_div

BLOCK = 65_536
"""Maximum number of vectors of a block."""
_KEPT_BYTES = 2**29
"""Maximum bytes of prepared blocks of y that are kept for all of x; on a GPU half of the free
memory."""
LARGE = 2**28
"""Smallest number of pairs for which a GPU saves more time than its start takes."""
_PART = 4096
"""Vectors read and checked at once."""
SAMPLE = 4096
"""Number of sampled vectors of a side; their mean and axes approximate those of all."""
LONGEST = 1e18
"""Maximum length of a vector: no product of two vectors and no distance from a mean exceeds the
range of float32."""
PAIRS_OF_AXES = 512
"""Minimum number of pairs per element of the (d, d) matrix of axes; with fewer pairs, the axes cost
more than they save."""


_WANTED: ContextVar[str | torch.device | None] = ContextVar("large searches", default=None)
"""The device that ``searching_on`` sets."""


class Neighbors(NamedTuple):
    """The nearest candidates of each query, best first.

    Equal similarities are in order of their index.
    """

    similarities: Float[Tensor, "n k"]
    indices: Int64[Tensor, "n k"]


def exact_topk(
    queries: NDArray[np.floating],
    candidates: NDArray[np.floating],
    *,
    k: int,
    rows: int = BLOCK,
    columns: int = BLOCK,
    device: str | torch.device | None = None,
) -> Neighbors:
    """Return the k candidates of largest inner product for every query.

    Args:
        queries: (n, d), in memory or mapped; read block by block as float32.
        candidates: (m, d), vectors of the other side.
        k: neighbors per query; m if there are fewer candidates.
        rows: maximum number of queries in a block; blocks have nearly the same size.
        columns: maximum number of candidates in a block.
        device: for a large search, see ``search_device``.

    Raises:
        DataError: a side is empty, widths differ, or a vector is not finite.
    """
    of_queries, _ = _search(
        queries, candidates, k=k, rows=rows, columns=columns, device=device, both=False
    )
    return of_queries


def mutual_topk(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    *,
    k: int,
    rows: int = BLOCK,
    columns: int = BLOCK,
    device: str | torch.device | None = None,
) -> tuple[Neighbors, Neighbors]:
    """Return the nearest neighbors of x in y and of y in x; every similarity is computed once.

    Args:
        x: (n, d), in memory or mapped; read block by block as float32.
        y: (m, d), vectors of the target.
        k: neighbors per vector; fewer if the other side is smaller than k.
        rows: maximum number of vectors of x in a block; blocks have nearly the same size.
        columns: maximum number of vectors of y in a block.
        device: for a large search, see ``search_device``.

    Returns:
        ``(of_x, of_y)``: indices of ``of_x`` point into y, those of ``of_y`` into x.

    Raises:
        DataError: a side is empty, widths differ, or a vector is not finite.
    """
    of_x, of_y = _search(x, y, k=k, rows=rows, columns=columns, device=device, both=True)
    return of_x, of_y


def _search(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    *,
    k: int,
    rows: int,
    columns: int,
    device: str | torch.device | None,
    both: bool,
) -> tuple[Neighbors, Neighbors]:
    """Return the neighbors of x and those of y; without ``both`` the latter are empty."""
    check_sides(x, y, k)
    device = search_device(len(x), len(y), device)
    of_x = NeighborLists.empty(len(x), min(k, len(y)))
    of_y: NeighborLists | None = None
    if both:
        of_y = NeighborLists.empty(len(y), min(k, len(x)))
    rows = balanced_block_size(len(x), rows)
    columns = balanced_block_size(len(y), columns)
    frame = make_frame(x, y, rows, columns)
    scanner = make_scanner(frame, device=device, pairs=len(x) * len(y))
    # Every block of y meets every block of x. If there are several blocks of x, and memory for all
    # of y, each block of y is prepared only once.
    keep = len(x) > rows and prepared_bytes(*y.shape) <= kept_bytes(device)
    kept: dict[int, Any] = {}
    for i in range(0, len(x), rows):
        left = scanner.prepare(read_block(x, i, rows), of_x=True)
        for j in range(0, len(y), columns):
            right = kept.get(j) or scanner.prepare(read_block(y, j, columns), of_x=False)
            if keep:
                kept[j] = right
            # Parts of lists are views: the scanner writes into the lists themselves.
            part_of_y = None
            if of_y is not None:
                part_of_y = of_y.part(j, j + columns)
            scanner.scan(left, right, of_x.part(i, i + rows), part_of_y)
    return neighbors_of(of_x), neighbors_of(of_y or NeighborLists.empty(0, k))


def balanced_block_size(count: int, most: int) -> int:
    """Return the block size for the fewest blocks of nearly equal size, at most ``most`` each."""
    blocks = ceil_div(count, most)
    return ceil_div(count, blocks)


def prepared_bytes(count: int, width: int) -> int:
    """Return the maximum memory of prepared vectors: float32, and their rounded copy."""
    return 8 * count * width


@contextlib.contextmanager
def searching_on(device: str | torch.device | None) -> Iterator[None]:
    """Run large searches that specify no device on this device, inside the ``with`` block.

    Tasks do not specify devices; the code that runs them may.

    Args:
        device: None = as outside the block.
    """
    token = _WANTED.set(device or _WANTED.get())
    try:
        yield
    finally:
        _WANTED.reset(token)


def search_device(
    queries: int, candidates: int, given: str | torch.device | None = None
) -> torch.device:
    """Return the device of a search; the result is the same on every device.

    Args:
        queries: number of queries.
        candidates: number of candidates.
        given: the device of a large search; by default that of ``searching_on``, or a GPU if there
            is one. A small search runs on the CPU, because it would end before a GPU has started.
    """
    if queries * candidates < LARGE:
        return torch.device("cpu")
    given = given or _WANTED.get()
    if given is not None:
        return torch.device(given)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def kept_bytes(device: torch.device) -> int:
    """Return the maximum memory of prepared blocks of y, in bytes."""
    if device.type != "cuda":
        return _KEPT_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    return free // 2


def make_scanner(
    frame: Frame, *, device: str | torch.device = "cpu", pairs: int = 0
) -> Scanner[Any]:
    """Return the fastest scanner on this machine.

    Args:
        frame: of both sides.
        device: where the products are made.
        pairs: expected number of pairs; for a large number a trial decides which method is faster.
    """
    if torch.device(device).type == "cpu" and choose_scanner(frame, pairs) == "kernel":
        return CompiledScanner(frame, threads=torch.get_num_threads())
    if torch.device(device).type == "cuda":
        return DeviceScanner(frame, device=device)
    return TorchScanner(frame, device=device)


def read_block(vectors: NDArray[np.floating], start: int, size: int) -> Block:
    """Read some of the vectors as float32.

    Raises:
        DataError: one is not finite, or too long.
    """
    block = np.empty((min(size, len(vectors) - start), vectors.shape[1]), np.float32)
    # In parts, so that what was read is still in the cache when it is looked at.
    for at in range(0, len(block), _PART):
        part = block[at : at + _PART]
        # Numbers that float32 does not hold become infinite, and are reported below.
        with np.errstate(over="ignore"):
            part[:] = vectors[start + at : start + at + len(part)]
        # Neither NaN nor an infinite square is less than or equal to the limit.
        is_good = np.einsum("nd,nd->n", part, part) <= LONGEST**2
        if not is_good.all():
            row = int(np.flatnonzero(~is_good)[0])
            what = f"vector {start + at + row} (counted from 0)"
            # The original numbers are tested: float64 can hold some that float32 cannot.
            if np.isnan(part[row]).any() or np.isinf(vectors[start + at + row]).any():
                raise DataError(f"{what} contains NaN or infinity; embed its text again")
            raise DataError(
                f"{what}: the length is above {LONGEST:g}; scale the vectors to length 1"
            )
    return Block(block, start)


def make_frame(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    rows: int = SAMPLE,
    columns: int = SAMPLE,
    *,
    pairs: int | None = None,
) -> Frame:
    """Compute the means and axes of some vectors of both sides, if they are finite.

    A vector that is not finite is reported later, by its row, when it is read.

    Args:
        x: (n, d).
        y: (m, d).
        rows: maximum number of vectors of x in a block; no more are read at once.
        columns: maximum number of vectors of y in a block.
        pairs: expected number of pairs, if these vectors are a sample of more.
    """
    sides = [_spread(side, min(size, SAMPLE)) for side, size in ((x, rows), (y, columns))]
    with np.errstate(over="ignore", invalid="ignore"):
        of_x, of_y = (side.mean(axis=0) for side in sides)
    if not (np.isfinite(of_x).all() and np.isfinite(of_y).all()):
        return Frame(np.zeros_like(of_x), np.zeros_like(of_y))
    # A single stage has all coordinates, whatever their axes.
    if x.shape[1] <= STAGE or (pairs or len(x) * len(y)) < PAIRS_OF_AXES * x.shape[1] ** 2:
        return Frame(of_x, of_y)
    centered = [side - mean for side, mean in zip(sides, (of_x, of_y), strict=True)]
    rest = torch.from_numpy(np.concatenate(centered))
    # Divide by the largest number, so that no square is too large for float32. The axes do not
    # change.
    rest = rest / rest.abs().max().clamp(min=torch.finfo(torch.float32).tiny)
    # The axes of both sides together, those of largest variance first: ``eigh`` has them last.
    axes = torch.linalg.eigh((rest.T @ rest).double()).eigenvectors.flip(1)
    mixed = [part @ _mixing(part.shape[1]) for part in axes.split(STAGE, dim=1)]
    return Frame(of_x, of_y, torch.cat(mixed, dim=1).float().numpy())


def _mixing(size: int) -> Float[Tensor, "size size"]:
    """Return a random rotation that mixes the axes of a stage.

    The rounding step of bytes depends on the largest coordinate of a vector, so no axis should
    dominate.
    """
    seeded = torch.Generator().manual_seed(0)
    normal = torch.randn(size, size, generator=seeded, dtype=torch.float64)
    mixing: Float[Tensor, "size size"] = torch.linalg.qr(normal).Q
    return mixing


def _spread(vectors: NDArray[np.floating], size: int) -> NDArray[np.float32]:
    """Return vectors that are spread evenly over a side."""
    step = max(1, len(vectors) // size)
    with np.errstate(over="ignore"):
        return np.asarray(vectors[: step * size : step], dtype=np.float32)


def neighbors_of(lists: NeighborLists) -> Neighbors:
    """Convert full lists to tensors."""
    return Neighbors(torch.from_numpy(lists.values), torch.from_numpy(lists.indices))


def check_sides(x: NDArray[np.floating], y: NDArray[np.floating], k: int) -> None:
    """Refuse arguments that can't be searched.

    Raises:
        DataError: a side is empty, or widths differ or are 0.
    """
    if k < 1:
        raise ValueError(f"k: expected at least 1, found {k}")
    if x.ndim != 2 or y.ndim != 2:
        raise DataError(
            f"expected two 2-dimensional arrays of vectors, found shapes {x.shape} and {y.shape};"
            " pass one vector per row"
        )
    if x.shape[1] != y.shape[1]:
        raise DataError(
            f"expected vectors of the same dimension, found {x.shape[1]} and {y.shape[1]}; embed"
            " both sides with the same model"
        )
    if not x.shape[1]:
        raise DataError("the vectors have dimension 0; embed the texts again")
    if not len(x) or not len(y):
        raise DataError(
            f"a side of the search is empty: {count_of(len(x), 'vectors')} against {len(y)}; pass"
            " at least one vector for each side"
        )
