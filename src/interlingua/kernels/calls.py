"""Calls of the functions of ``training.c`` on tensors, in as many threads as are useful.

C knows neither the type nor the size of the data at an address, and a wrong address corrupts memory
silently. Two tables therefore specify the type of each argument of every function, and each call is
checked against them first.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from interlingua.kernels import KERNELS_VARIABLE, library, variant

_TYPES = {torch.float32: 0, torch.bfloat16: 1}
"""Codes of activations, as in training.c."""
_FUNCTIONS = {
    "residual_norm": "..aaf.ff.aaf",
    "residual_norm_back": "..aaf.faafff",
    "activation": "...afa",
    "activation_back": "...aafaf",
    "attention": "...afaf",
    "attention_back": "...aaffaf",
    "observe": "..afifff",
    "slopes_of": "..afiffaf",
}
"""Type that each argument of a function points to: a = activations, f = float32, i = int64; a
dot = not a tensor. The functions are in the order of the table in training.c."""
_SIZES = {
    "residual_norm": "..nnw.ww.nnr",
    "residual_norm_back": "..nnr.wnnwww",
    "activation": "...nwn",
    "activation_back": "...nnwnw",
    "observe": "..nwrrrr",
    "slopes_of": "..nwrrrnw",
}
"""Elements of each tensor that a function uses: r = one per row, w = one per column, n = all.

The numbers of rows and columns (width) are the arguments before the first tensor. The arguments of
``attention`` are in a struct, see ``encoder/executors/fused.py``.
"""
_MEASURED = ("amx", "avx512", "avx512vnni", "avxvnni", "avx2")
"""Variants that were measured to be no slower than torch. Any other variant is used without a trial
only if ``INTERLINGUA_KERNELS`` names it."""
MIN_ELEMENTS = 1 << 17
"""Minimum number of activations per thread."""


class ChosenKernel:
    """The executor of the passes of training in this process.

    There is one for the whole process, because the backward pass runs in torch's own threads.

    Attributes:
        executor: "kernel" or "torch"; None: no choice was made, see ``is_kernel_preferred``.
    """

    def __init__(self) -> None:
        self.executor: str | None = None


chosen = ChosenKernel()


@contextlib.contextmanager
def computed_by(executor: str) -> Iterator[None]:
    """Compute the passes of training with "kernel" or "torch" for the block."""
    before = chosen.executor
    chosen.executor = executor
    try:
        yield
    finally:
        chosen.executor = before


def runs_here() -> bool:
    """Return whether the kernel is available and this processor runs it."""
    return library("training") is not None


def is_kernel_preferred() -> bool:
    """Return whether the kernel is used without a trial: it was measured, or the user names it."""
    used = variant("training")
    return used in _MEASURED or used == os.environ.get(KERNELS_VARIABLE)


def can_use_training_kernel(like: Tensor) -> bool:
    """Return whether the kernel runs here and is chosen, for this kind of activations."""
    if like.device.type != "cpu" or like.dtype not in _TYPES or not runs_here():
        return False
    if chosen.executor is None:
        return is_kernel_preferred()
    return chosen.executor == "kernel"


def call_kernel(name: str, like: Tensor, *arguments: Any) -> None:
    """Call a function of the kernel on activations of the type of ``like``, in this thread.

    Tensors and structs are passed by their address, whole numbers as 64 bits.

    Raises:
        TypeError: a tensor has another type than the function expects, which would corrupt memory.
        ValueError: a tensor is smaller than the function expects.
        MemoryError: the function could not allocate its buffers.
    """
    call_in_parts(name, like, [0, 1], lambda first, last: arguments)


def call_in_parts(
    name: str, like: Tensor, bounds: list[int], arguments: Callable[[int, int], Sequence[Any]]
) -> None:
    """Call a function of the kernel for several parts at once, see ``call_kernel``.

    The parts run in the threads of torch's OpenMP. Those threads keep their cores busy for some
    milliseconds after each product of matrices, so other threads would not be faster.
    Python's own threads are used if torch has no GNU OpenMP.

    Args:
        name: of the function.
        like: a tensor of the type of the activations.
        bounds: of the parts.
        arguments: returns the arguments of the part from one bound to the next.
    """
    kernel = library("training")
    assert kernel is not None
    # Kept until the end of the calls: structs among them are passed by address.
    parts = [arguments(first, last) for first, last in pairwise(bounds)]
    for part in parts:
        _check_all(name, like, part)
    each = 1 + len(parts[0])
    slots = [_slot(value) for part in parts for value in (_TYPES[like.dtype], *part)]
    memory = (ctypes.c_int64 * len(slots))(*slots)
    number = list(_FUNCTIONS).index(name)

    def run(team: Any, threads: int, first: int, count: int) -> int:
        place = ctypes.byref(memory, first * each * ctypes.sizeof(ctypes.c_int64))
        sizes = map(ctypes.c_int64, (threads, number, count, each))
        return int(kernel.run_parts(team, *sizes, place))

    team = _openmp()
    if len(parts) == 1:
        failed = run(None, 1, 0, 1)
    elif team is not None:
        # As many threads as torch's products have: a smaller team would end the other threads.
        failed = run(team, max(len(parts), torch.get_num_threads()), 0, len(parts))
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            failed = any(pool.map(lambda part: run(None, 1, part, 1), range(len(parts))))
    # Every function returns 0, unless it could not allocate memory.
    if failed:
        raise MemoryError(f"not enough memory for {name} in a batch; lower run.micro_batch_size")


def _slot(value: Any) -> int:
    """Convert a value to 64 bits: a tensor or struct to its address, a float to its bits."""
    if value is None:  # no address
        return 0
    if isinstance(value, Tensor):
        return value.data_ptr()
    if isinstance(value, ctypes.Structure):
        return ctypes.addressof(value)
    if isinstance(value, float):
        (bits,) = struct.unpack("=I", struct.pack("=f", value))
        return int(bits)
    return int(value)


def _check_all(name: str, like: Tensor, arguments: Sequence[Any]) -> None:
    """Refuse arguments with which the function would read or write beyond a tensor."""
    dtypes = {"a": like.dtype, "f": torch.float32, "i": torch.int64}
    for kind, value in zip(_FUNCTIONS[name], arguments, strict=True):
        if isinstance(value, Tensor) or kind != ".":
            _check(name, value, dtypes.get(kind))
    if name in _SIZES:
        _check_sizes(name, arguments)


def _check(name: str, value: Any, dtype: torch.dtype | None) -> None:
    """Refuse everything except a contiguous tensor of the type in the memory of the CPU."""
    fits = (
        isinstance(value, Tensor)
        and value.dtype == dtype
        and value.device.type == "cpu"
        and value.is_contiguous()
    )
    if not fits:
        what = type(value).__name__
        if isinstance(value, Tensor):
            what = f"{value.dtype} on {value.device}"
        raise TypeError(f"{name}: expected a contiguous tensor of {dtype} on the CPU, found {what}")


def _check_sizes(name: str, arguments: Sequence[Any]) -> None:
    """Refuse tensors that end before the last number that the function reads or writes."""
    sizes = _SIZES[name]
    # The dots before the first letter are the numbers before the first tensor.
    first_tensor = len(sizes) - len(sizes.lstrip("."))
    rows, width = arguments[first_tensor - 2 : first_tensor]
    needed = {"n": rows * width, "w": width, "r": rows}
    if rows < 0 or width < 0:
        raise ValueError(f"{name}: expected sizes of at least 0, found {rows} rows of {width}")
    for size, value in zip(sizes, arguments, strict=True):
        if size != "." and value.numel() < needed[size]:
            raise ValueError(f"{name}: expected {needed[size]} elements, found {value.numel()}")


def even_parts(rows: int, width: int) -> list[int]:
    """Return the bounds of parts of about equal numbers of rows, one part per useful thread."""
    parts = min(threads_for(rows * width), max(1, rows))
    return [rows * part // parts for part in range(parts + 1)]


def threads_for(elements: int) -> int:
    """Return the number of threads worth using for a pass over ``elements`` elements."""
    return max(1, min(torch.get_num_threads(), elements // MIN_ELEMENTS))


@functools.cache
def _openmp() -> ctypes.c_void_p | None:
    """Return ``GOMP_parallel`` of the GNU OpenMP that torch has loaded, or None without one."""
    try:
        return ctypes.cast(ctypes.CDLL(None).GOMP_parallel, ctypes.c_void_p)
    except (AttributeError, OSError, TypeError):  # TypeError: Windows needs a name
        return None
