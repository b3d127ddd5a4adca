"""Nearest neighbors of two blocks by the compiled kernel: products of bytes, the scan in the same
loop.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Int8, Int64, UInt8
from numpy import ndarray

from interlingua.kernels import library
from interlingua.search.topk.bounds import PART, STAGE, Block, Frame, Precision, view
from interlingua.search.topk.lists import NeighborLists

ROOM = 31
GROUP = 64
ALIGNMENT = 64
"""As in kernels/neighbors.c."""
ROWS_AT_ONCE = 1024
"""Their bytes stay in the second-level cache."""
CPU = torch.device("cpu")


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
    precision: Precision


class CompiledScanner:
    """The kernel ``neighbors``; it finds the same with all variants.

    Args:
        frame: of both sides.
        threads: that share the rows.

    Attributes:
        stage: how many stages each thread takes at present, less one.
    """

    def __init__(self, frame: Frame, *, threads: int = 1) -> None:
        self.frame = frame
        self.threads = threads
        kernel = library("neighbors")
        assert kernel is not None
        self.bytes_at_once = int(kernel.bytes_at_once())
        self.stage = np.full(threads, len(frame.stages) - 1, np.int64)

    @staticmethod
    def available() -> bool:
        """Whether the kernel is there and this processor runs it."""
        return library("neighbors") is not None

    def prepare(self, block: Block, *, of_x: bool) -> Bytes:
        """See ``Scanner``; a part at a time, which stays in the cache."""
        n, d = block.vectors.shape
        width = -(-d // self.bytes_at_once) * self.bytes_at_once
        room = n if of_x else -(-n // GROUP) * GROUP
        stages = self.frame.stages
        scales = np.zeros(room, np.float32)
        terms = np.full(room, -np.inf, np.float32)
        sums = np.zeros((n if of_x else 0, len(stages)), np.int32)
        precision = Precision.empty(n, len(stages))
        data = np.zeros((n + ROOM, width), np.int8) if of_x else _aligned(room * width)
        each = np.full((0 if of_x else n, width), 128, np.uint8)
        for start in range(0, n, PART):
            at = slice(start, min(start + PART, n))
            seen = view(Block(block.vectors[at], 0), self.frame, of_x=of_x, device=CPU)
            scale = seen.rest.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / 127
            signed = (seen.rest / scale[:, None]).round_().to(torch.int8)
            precision.put(at, Precision.of(seen, signed.float() * scale[:, None], stages))
            scales[at], terms[at] = scale.numpy(), seen.term.numpy()
            if of_x:
                data[at, :d] = signed.numpy()
                sums[at] = signed.cumsum(dim=1, dtype=torch.int32)[
                    :, [stage - 1 for stage in stages]
                ].numpy()
            else:
                panels = _panels(signed.numpy(), width)
                data[start * width : start * width + len(panels)] = panels
                each[at, :d] = signed.numpy().view(np.uint8) ^ 128
        known = precision.lengths, precision.tails, precision.errors
        if of_x:
            return Bytes(
                block, width, (block.vectors, data, scales, terms, *known, sums), precision
            )
        lengths = precision.lengths + precision.errors[:, -1]  # of the vectors themselves, at most
        tails, lengths, errors = (
            _room(of, room) for of in (precision.tails.T, lengths[None], precision.errors.T)
        )
        largest = [of.reshape(len(of), -1, GROUP).max(axis=2) for of in (lengths, errors)]
        return Bytes(
            block, width, (block.vectors, data, each, scales, terms, tails, *largest), precision
        )

    def scan(self, x: Bytes, y: Bytes, of_x: NeighborLists, of_y: NeighborLists | None) -> None:
        """See ``Scanner``; threads but the first have lists of y of their own, for what is better
        than known.
        """
        above = np.asarray(x.arrays[3] + x.precision.float_error(y.precision, x.width), np.float32)
        x = x._replace(arrays=(*x.arrays[:3], above, *x.arrays[4:]))
        starts = range(0, len(x.block.vectors), ROWS_AT_ONCE)
        threads = min(self.threads, len(starts))
        own = [
            None if of_y is None else NeighborLists.empty(*of_y.values.shape)
            for _ in range(threads - 1)
        ]
        kth_best = np.full(-(-len(y.block.vectors) // GROUP) * GROUP, np.inf, np.float32)
        if of_y is not None:
            kth_best[: len(y.block.vectors)] = of_y.kth_best
        with ThreadPoolExecutor(threads) as pool:
            workers = [
                pool.submit(
                    _rows,
                    x,
                    y,
                    of_x,
                    lists,
                    kth_best.copy(),
                    starts[number::threads],
                    self.stage[number:],
                )
                for number, lists in enumerate([of_y, *own])
            ]
        for worker in workers:
            worker.result()
        for lists in own:
            if of_y is not None and lists is not None:
                of_y.join(lists)


def _rows(
    x: Bytes,
    y: Bytes,
    of_x: NeighborLists,
    of_y: NeighborLists | None,
    kth_best: Float32[ndarray, " m"],
    starts: range,
    stage: Int64[ndarray, " 1"],
) -> None:
    """One thread's rows; kth_best are what neighbors of y have to reach, the stage is where its
    last rows stood.
    """
    kernel = library("neighbors")
    m = len(y.block.vectors)
    assert kernel is not None
    ends = np.array([*range(STAGE, STAGE * x.precision.tails.shape[1], STAGE), x.width], np.int64)
    columns = (ctypes.c_void_p * len(y.arrays))(*(_pointer(array).value for array in y.arrays))
    for start in starts:
        stop = min(start + ROWS_AT_ONCE, len(x.block.vectors))
        places = of_x.values.shape[1], 0 if of_y is None else of_y.values.shape[1]
        part = of_x.part(start, stop)
        kernel.scan(
            *map(
                ctypes.c_int64,
                (stop - start, m, x.block.vectors.shape[1], x.width, *places, len(ends)),
            ),
            *map(_pointer, (ends, stage)),
            (ctypes.c_void_p * len(x.arrays))(
                *(_pointer(array[start:]).value for array in x.arrays)
            ),
            columns,
            *map(ctypes.c_int64, (x.block.start + start, y.block.start)),
            *map(_pointer, (part.values, part.indices)),
            *((None, None) if of_y is None else map(_pointer, (of_y.values, of_y.indices))),
            _pointer(kth_best),
        )


def _pointer(array: ndarray) -> ctypes.c_void_p:
    """Where an array begins."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def _room(array: Float32[ndarray, "stages n"], room: int) -> Float32[ndarray, "stages room"]:
    """With zeros behind, for whole panels."""
    wide = np.zeros((len(array), room), np.float32)
    wide[:, : array.shape[1]] = array
    return wide


def _panels(signed: Int8[ndarray, "n d"], width: int) -> UInt8[ndarray, " panels"]:
    """Bytes + 128, four of a column side by side, 64 columns in a panel."""
    filled = -(-len(signed) // GROUP) * GROUP
    unsigned = np.full((filled, width), 128, np.uint8)
    unsigned[: len(signed), : signed.shape[1]] = signed.view(np.uint8) ^ 128
    return unsigned.reshape(filled // GROUP, GROUP, width // 4, 4).transpose(0, 2, 1, 3).ravel()


def _aligned(size: int) -> UInt8[ndarray, " size"]:
    """Room for bytes, where a cache line begins."""
    room = np.empty(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size]
