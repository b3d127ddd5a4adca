"""Nearest neighbours of two blocks by the compiled kernel: products of bytes, the scan in the same loop."""

from __future__ import annotations

import ctypes
import threading
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Int8, Int32, UInt8
from numpy import ndarray

from interlingua.kernels import library
from interlingua.mining.lists import Lists
from interlingua.mining.scan import Block, Centres, Precision, rest_and_term

ROWS, GROUP, ALIGNMENT = 6, 64, 64
"""As in kernels/neighbours.c."""
ROWS_AT_ONCE = 1024
"""Their bytes stay in the second-level cache."""
PART = 64 * GROUP
"""Vectors made ready at once."""
CPU = torch.device("cpu")


class Bytes(NamedTuple):
    """A block in bytes.

    Attributes:
        block: the vectors themselves.
        data: the bytes, as the kernel wants them of this side.
        width: bytes of a vector, a multiple of 4.
        scales: what a byte stands for, 0 for the columns that fill the last panel.
        sums: of each vector's bytes, of x alone.
        terms: added to every product of a vector, -inf for the columns that fill the last panel.
        precision: of the rounded vectors.
    """

    block: Block
    data: Int8[ndarray, "n+5 width"] | UInt8[ndarray, " panels"]
    width: int
    scales: Float32[ndarray, " n"]
    sums: Int32[ndarray, " n"]
    terms: Float32[ndarray, " n"]
    precision: Precision


class CompiledScanner:
    """The kernel ``neighbours``, which needs AVX-512 VNNI.

    Args:
        centres: of both sides.
        threads: that share the rows.
    """

    def __init__(self, centres: Centres, *, threads: int = 1) -> None:
        self.centres, self.threads = centres, threads

    @staticmethod
    def available() -> bool:
        """Whether the kernel is there and this processor runs it."""
        return library("neighbours") is not None

    def prepare(self, block: Block, *, of_x: bool) -> Bytes:
        """See ``Scanner``; a part at a time, which stays in the cache."""
        (n, d), width = block.vectors.shape, -(-block.vectors.shape[1] // 4) * 4
        filled = n if of_x else -(-n // GROUP) * GROUP
        scales, terms = np.zeros(filled, np.float32), np.full(filled, -np.inf, np.float32)
        sums, precision = np.zeros(n if of_x else 0, np.int32), Precision.empty(n)
        data = np.zeros((n + ROWS - 1, width), np.int8) if of_x else _aligned(filled * width)
        for start in range(0, n, PART):
            at = slice(start, min(start + PART, n))
            rest, term = rest_and_term(Block(block.vectors[at], 0), self.centres, of_x=of_x, device=CPU)
            scale = rest.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / 127
            signed = (rest / scale[:, None]).round_().to(torch.int8)
            precision.put(at, Precision.of(rest, signed.float() * scale[:, None], term))
            scales[at], terms[at] = scale.numpy(), term.numpy()
            if of_x:
                data[at, :d] = signed.numpy()
                sums[at] = signed.sum(dim=1, dtype=torch.int32).numpy()
            else:
                panels = _panels(signed.numpy(), width)
                data[start * width : start * width + len(panels)] = panels
        return Bytes(block, data, width, scales, sums, terms, precision)

    def scan(self, x: Bytes, y: Bytes, of_x: Lists, of_y: Lists | None) -> None:
        """See ``Scanner``; the threads have lists of y of their own, which are joined in the end."""
        above = x.terms + x.precision.slack(y.precision, x.width)
        starts = range(0, len(x.block.vectors), ROWS_AT_ONCE)
        threads = min(self.threads, len(starts))
        own = [None if of_y is None else Lists.empty(*of_y.values.shape) for _ in range(threads - 1)]
        workers = [
            threading.Thread(target=_rows, args=(x, y, above, of_x, lists, starts[number::threads]))
            for number, lists in enumerate([of_y, *own])
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for lists in own:
            if of_y is not None and lists is not None:
                of_y.join(lists)


def _rows(x: Bytes, y: Bytes, above: Float32[ndarray, " n"], of_x: Lists, of_y: Lists | None, starts: range) -> None:
    """One thread's rows."""
    kernel, m = library("neighbours"), len(y.block.vectors)
    assert kernel is not None
    bars = np.full(len(y.scales), np.inf, np.float32)
    if of_y is not None:
        bars[:m] = of_y.bars
    for start in starts:
        stop = min(start + ROWS_AT_ONCE, len(x.block.vectors))
        places = of_x.values.shape[1], 0 if of_y is None else of_y.values.shape[1]
        sizes = (stop - start, m, x.block.vectors.shape[1], x.width, *places)
        part = of_x.part(start, stop)
        kernel.scan(
            *map(ctypes.c_int64, sizes),
            *map(_at, (x.block.vectors[start:], y.block.vectors, x.data[start:], y.data, x.scales[start:])),
            *map(_at, (x.sums[start:], above[start:], y.scales, y.terms)),
            *map(ctypes.c_int64, (x.block.start + start, y.block.start)),
            *map(_at, (part.values, part.indices)),
            *((None, None) if of_y is None else map(_at, (of_y.values, of_y.indices))),
            _at(bars),
        )


def _at(array: ndarray) -> ctypes.c_void_p:
    """Where an array begins."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


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
