"""Nearest neighbors of two blocks by the compiled kernel, which multiplies bytes.

Every vector, less its mean and along the axes of the frame, is scaled so that its largest
coordinate is 127, and rounded to bytes. The kernel (``kernels/neighbors.c``) multiplies these,
makes a bound of each product, and computes the similarity of a pair exactly if its bound reaches a
list, all in one loop over the rows. The rows are divided among the threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Int8, Int64, UInt8
from numpy import ndarray
from torch import Tensor

from interlingua.kernels import library
from interlingua.retrieval.topk.bounds import PART, STAGE, Block, BlockPrecision, Frame, view
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.runtime.portions import ceil_div

ROOM = 31
_GROUP = 64
_ALIGNMENT = 64
"""Alignment in bytes, as in kernels/neighbors.c."""
_ROWS_AT_ONCE = 1024
"""Number of rows at once, so that their bytes stay in the second-level cache."""


class Bytes(NamedTuple):
    """A block in bytes.

    Attributes:
        block: the vectors themselves.
        width: bytes of a vector, a multiple of what the kernel multiplies at once.
        arrays: the kernel's ``Rows`` or ``Columns``, in its order.
        precision: of the rounded vectors.
    """

    block: Block
    width: int
    arrays: tuple[ndarray, ...]
    precision: BlockPrecision


class CompiledScanner:
    """Scanner with the kernel ``neighbors``, which finds the same neighbors in all its variants.

    Args:
        frame: of both sides.
        threads: number of threads that share the rows.

    Attributes:
        stage: how many stages each thread takes at present, less one.
    """

    def __init__(self, frame: Frame, *, threads: int = 1) -> None:
        self.frame = frame
        self.threads = threads
        kernel = library("neighbors")
        assert kernel is not None
        self.bytes_at_once = int(kernel.bytes_at_once())
        self.bytes_together = int(kernel.bytes_together())
        self.stage = np.full(threads, len(frame.stages) - 1, np.int64)

    @staticmethod
    def available() -> bool:
        """Return whether the kernel is there and this processor runs it."""
        return library("neighbors") is not None

    def prepare(self, block: Block, *, of_x: bool) -> Bytes:
        """Arrange a block of candidates for the kernel, one part at a time to stay in the cache."""
        if of_x:
            return self._prepare_rows(block)
        return self._prepare_columns(block)

    def _prepare_rows(self, block: Block) -> Bytes:
        """Prepare a block of x: signed bytes, row by row, padded with zero rows to a whole tile."""
        n, d = block.vectors.shape
        width = self._padded_width(d)
        stages = self.frame.stages
        scales = np.zeros(n, np.float32)
        terms = np.full(n, -np.inf, np.float32)
        # The bytes of the columns have 128 added: the kernel subtracts 128 times the sum of a row's
        # bytes, which is known here for each stage.
        sums = np.zeros((n, len(stages)), np.int32)
        last_of_stage = [stage - 1 for stage in stages]
        precision = BlockPrecision.empty(n, len(stages))
        data = np.zeros((n + ROOM, width), np.int8)
        for at, signed in self._rounded(block, scales, terms, precision, of_x=True):
            data[at, :d] = signed.numpy()
            sums[at] = signed.cumsum(dim=1, dtype=torch.int32)[:, last_of_stage].numpy()
        known = precision.lengths, precision.tails, precision.errors
        arrays = (block.vectors, data, scales, terms, *known, sums)
        return Bytes(block, width, arrays, precision)

    def _prepare_columns(self, block: Block) -> Bytes:
        """Prepare a block of y: bytes + 128, once in panels and once column by column."""
        n, d = block.vectors.shape
        width = self._padded_width(d)
        room = _padded(n)
        stages = self.frame.stages
        # A column that only fills a panel has the term minus infinity: its bound reaches nothing.
        scales = np.zeros(room, np.float32)
        terms = np.full(room, -np.inf, np.float32)
        precision = BlockPrecision.empty(n, len(stages))
        data = _aligned(room * width)
        each = np.full((n, width), 128, np.uint8)
        # A part holds whole panels, so that it starts where the panels of the previous part end.
        for at, signed in self._rounded(block, scales, terms, precision, of_x=False):
            panels = _panels(signed.numpy(), width, self.bytes_together)
            data[at.start * width : at.start * width + len(panels)] = panels
            each[at, :d] = signed.numpy().view(np.uint8) ^ 128
        # Upper bounds of the lengths of the vectors themselves. The kernel takes the largest length
        # and the largest errors of each panel.
        lengths = precision.lengths + precision.errors[:, -1]
        tails, lengths, errors = (
            _room(of, room) for of in (precision.tails.T, lengths[None], precision.errors.T)
        )
        largest = [of.reshape(len(of), -1, _GROUP).max(axis=2) for of in (lengths, errors)]
        arrays = (block.vectors, data, each, scales, terms, tails, *largest)
        return Bytes(block, width, arrays, precision)

    def _rounded(
        self,
        block: Block,
        scales: Float32[ndarray, " n"],
        terms: Float32[ndarray, " n"],
        precision: BlockPrecision,
        *,
        of_x: bool,
    ) -> Iterator[tuple[slice, Int8[Tensor, "part d"]]]:
        """Yield the bytes of a block, a part at a time, with the position of each part.

        Args:
            block: the vectors.
            scales: output: the value of one step of a byte, for each vector.
            terms: output: the term of the sum that belongs to each vector.
            precision: output.
            of_x: which side the block is of.
        """
        n = len(block.vectors)
        for start in range(0, n, PART):
            at = slice(start, min(start + PART, n))
            seen = view(torch.from_numpy(block.vectors[at]), self.frame, of_x=of_x)
            # A vector of zeros has a step too: nothing is divided by zero.
            scale = seen.rest.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / 127
            signed = (seen.rest / scale[:, None]).round_().to(torch.int8)
            rounded = signed.float() * scale[:, None]
            precision.put(at, BlockPrecision.of(seen, rounded, self.frame.stages))
            scales[at] = scale.numpy()
            terms[at] = seen.term.numpy()
            yield at, signed

    def _padded_width(self, width: int) -> int:
        """Round a width up to a multiple of the kernel's block."""
        return ceil_div(width, self.bytes_at_once) * self.bytes_at_once

    def scan(self, x: Bytes, y: Bytes, of_x: NeighborLists, of_y: NeighborLists | None) -> None:
        """Update the lists of both blocks, those of y only if they are passed.

        Each row of x belongs to one thread, so all threads can write into the lists of x. Only the
        first thread writes into the lists of y. Each other thread has lists of its own, which are
        joined at the end. They get the pairs that reach their row's list, or the largest k-th best
        value that any thread has found for their column.
        """
        # The term of a row, plus how far a bound in float32 may be off.
        above = np.asarray(x.arrays[3] + x.precision.float_error(y.precision, x.width), np.float32)
        x = x._replace(arrays=(*x.arrays[:3], above, *x.arrays[4:]))
        starts = range(0, len(x.block.vectors), _ROWS_AT_ONCE)
        threads = min(self.threads, len(starts))
        lists_of_y = [of_y]
        # Shared by all threads. Each stored value is the k-th best of some pairs, so at most the
        # final one: if two threads write at once, either value is valid. Without lists of y, the
        # value to reach is infinite for each column: no product reaches it.
        kth_best = np.full(_padded(len(y.block.vectors)), np.inf, np.float32)
        if of_y is not None:
            kth_best[: len(y.block.vectors)] = of_y.kth_best
        for _ in range(threads - 1):
            lists = of_y
            if of_y is not None:
                lists = NeighborLists.empty(*of_y.values.shape)
            lists_of_y.append(lists)
        workers = []
        with ThreadPoolExecutor(threads) as pool:
            for number, lists in enumerate(lists_of_y):
                rows = starts[number::threads]
                stage = self.stage[number:]
                task = pool.submit(_scan_rows, x, y, of_x, lists, kth_best, rows, stage)
                workers.append(task)
        for worker in workers:
            worker.result()
        for lists in lists_of_y[1:]:
            if of_y is not None and lists is not None:
                of_y.join(lists)


def _scan_rows(
    x: Bytes,
    y: Bytes,
    of_x: NeighborLists,
    of_y: NeighborLists | None,
    kth_best: Float32[ndarray, " m"],
    starts: range,
    stage: Int64[ndarray, " 1"],
) -> None:
    """Scan the rows of one thread.

    Args:
        x: the rows.
        y: the columns.
        of_x: lists of all rows.
        of_y: this thread's lists of the columns.
        kth_best: the value that neighbors of each column have to reach; all threads share it, and
            the kernel changes it.
        starts: first row of each batch.
        stage: the stage of the last rows; changed by the kernel.
    """
    kernel = library("neighbors")
    assert kernel is not None
    m, width = y.block.vectors.shape
    # The number of bytes up to the end of each stage; the last stage includes the bytes that only
    # fill the width.
    ends = np.array([*range(STAGE, STAGE * x.precision.tails.shape[1], STAGE), x.width], np.int64)
    columns = (ctypes.c_void_p * len(y.arrays))(*(_pointer(array).value for array in y.arrays))
    column_k = 0
    column_values = None
    column_indices = None
    if of_y is not None:
        column_k = of_y.values.shape[1]
        column_values = _pointer(of_y.values)
        column_indices = _pointer(of_y.indices)
    for start in starts:
        stop = min(start + _ROWS_AT_ONCE, len(x.block.vectors))
        part = of_x.part(start, stop)
        sizes = (stop - start, m, width, x.width, part.values.shape[1], column_k, len(ends))
        addresses = (_pointer(array[start:]).value for array in x.arrays)
        rows = (ctypes.c_void_p * len(x.arrays))(*addresses)
        # In the order of the parameters of ``scan`` in kernels/neighbors.c.
        kernel.scan(
            *map(ctypes.c_int64, sizes),
            _pointer(ends),
            _pointer(stage),
            rows,
            columns,
            ctypes.c_int64(x.block.start + start),
            ctypes.c_int64(y.block.start),
            _pointer(part.values),
            _pointer(part.indices),
            column_values,
            column_indices,
            _pointer(kth_best),
        )


def _padded(columns: int) -> int:
    """Round a number of columns up to whole panels."""
    return ceil_div(columns, _GROUP) * _GROUP


def _pointer(array: ndarray) -> ctypes.c_void_p:
    """Return the address of an array."""
    # The kernel counts elements from this address, and does not support strides.
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def _room(array: Float32[ndarray, "stages n"], room: int) -> Float32[ndarray, "stages room"]:
    """Pad an array with zeros to whole panels."""
    wide = np.zeros((len(array), room), np.float32)
    wide[:, : array.shape[1]] = array
    return wide


def _panels(signed: Int8[ndarray, "n d"], width: int, together: int) -> UInt8[ndarray, " panels"]:
    """Return bytes + 128 in panels of 64 columns, ``together`` bytes of a column side by side."""
    filled = _padded(len(signed))
    unsigned = np.full((filled, width), 128, np.uint8)
    # Flipping the highest bit of a signed byte adds 128 to it.
    unsigned[: len(signed), : signed.shape[1]] = signed.view(np.uint8) ^ 128
    # [panel][column][some bytes] to [panel][some bytes][column]: an instruction multiplies these
    # bytes of several columns at once.
    parts = unsigned.reshape(filled // _GROUP, _GROUP, width // together, together)
    return parts.transpose(0, 2, 1, 3).ravel()


def _aligned(size: int) -> UInt8[ndarray, " size"]:
    """Allocate bytes that start at a cache line."""
    room = np.empty(size + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + size]
