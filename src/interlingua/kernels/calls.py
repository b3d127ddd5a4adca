"""How the functions of ``training.c`` are called: on tensors, by as many threads as pay.

C knows neither the type nor the size of the data at an address, and a wrong address corrupts memory
silently. Two tables therefore specify the type of each argument of every function, and each call is
checked against them first.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator
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
"""Type that each argument of a function points to: activations, float32, int64; a dot = not a
tensor."""
_SIZES = {
    "residual_norm": "..nnw.ww.nnr",
    "residual_norm_back": "..nnr.wnnwww",
    "activation": "...nwn",
    "activation_back": "...nnwnw",
    "observe": "..nwrrrr",
    "slopes_of": "..nwrrrnw",
}
"""Elements of each tensor that a function uses: one per row, one per column (width), or all.

The two numbers are the arguments before the first tensor. The arguments of ``attention`` are in a
struct, see ``encoder/executors/fused.py``.
"""
_MEASURED = ("amx", "avx512", "avx512vnni", "avxvnni", "avx2")
"""Variants that were seen to be no slower than torch; without a trial another one is used only
where ``INTERLINGUA_KERNELS`` names it."""
MIN_ELEMENTS = 1 << 17
"""Minimum number of activations per thread."""


class ChosenKernel:
    """The executor of the passes of training in this process.

    One for the whole process, as the backward pass runs in threads of torch's own.

    Attributes:
        executor: "kernel" or "torch"; None: no one chose, see ``is_kernel_preferred``.
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
    """Call a function of the kernel on activations of the type of ``like``.

    Tensors are passed by their address, whole numbers as 64 bits.

    Raises:
        TypeError: a tensor has another type than the function expects, which would corrupt memory.
        ValueError: a tensor is smaller than the function expects.
        MemoryError: the function could not allocate its buffers.
    """
    kernel = library("training")
    assert kernel is not None
    dtypes = {"a": like.dtype, "f": torch.float32, "i": torch.int64}
    for kind, value in zip(_FUNCTIONS[name], arguments, strict=True):
        if isinstance(value, Tensor) or kind != ".":
            _check(name, value, dtypes.get(kind))
    if name in _SIZES:
        _check_sizes(name, arguments)
    values = map(_as_c_value, arguments)
    # Every function returns 0, or else had no memory.
    if getattr(kernel, name)(ctypes.c_int64(_TYPES[like.dtype]), *values):
        raise MemoryError(f"no memory for {name} in a batch; lower run.micro_batch_size")


def _as_c_value(value: Any) -> Any:
    """Convert a value for C: a tensor to its address, an int to 64 bits, others unchanged."""
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if isinstance(value, int):
        return ctypes.c_int64(value)
    return value


def _check(name: str, value: Any, dtype: torch.dtype | None) -> None:
    """Refuse anything but a contiguous tensor of a type in the memory of this machine."""
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
        raise TypeError(f"{name} takes contiguous {dtype} on cpu, got {what}")


def _check_sizes(name: str, arguments: tuple[Any, ...]) -> None:
    """Refuse tensors that end before the last number that the function reads or writes."""
    sizes = _SIZES[name]
    # The dots before the first letter are the numbers before the first tensor.
    first_tensor = len(sizes) - len(sizes.lstrip("."))
    rows, width = arguments[first_tensor - 2 : first_tensor]
    needed = {"n": rows * width, "w": width, "r": rows}
    if rows < 0 or width < 0:
        raise ValueError(f"{name} takes sizes of at least 0, got {rows} rows of {width}")
    for size, value in zip(sizes, arguments, strict=True):
        if size != "." and value.numel() < needed[size]:
            raise ValueError(
                f"{name} takes {needed[size]} numbers of a tensor that has {value.numel()}"
            )


def even_parts(rows: int, width: int) -> list[int]:
    """Return the bounds of parts of about equal numbers of rows, one part per useful thread."""
    parts = min(threads_for(rows * width), max(1, rows))
    return [rows * part // parts for part in range(parts + 1)]


def threads_for(elements: int) -> int:
    """Return the number of threads worth using for a pass over ``elements`` elements."""
    return max(1, min(torch.get_num_threads(), elements // MIN_ELEMENTS))


def in_threads(bounds: list[int], part: Callable[[int, int], None]) -> None:
    """Run ``part(first, last)`` for all parts at once, in the threads of torch's OpenMP.

    Those threads keep their cores busy for some milliseconds after each product of matrices, so
    that other threads would not gain anything. Python's own threads are used if torch has no GNU
    OpenMP.
    """
    parts = list(pairwise(bounds))
    if len(parts) == 1:
        part(*parts[0])
        return
    errors: list[BaseException] = []  # of any thread; Python would only print those of the others

    def run(_: int | None = None) -> None:
        # ctypes lets go of the interpreter's lock during a call, so that the threads run at once.
        while True:
            try:
                first, last = parts.pop()
            except IndexError:  # other threads took all of them
                return
            try:
                part(first, last)
            except BaseException as error:
                errors.append(error)

    run_in_team = _openmp()
    if run_in_team is None:
        threads = [threading.Thread(target=run) for _ in parts[1:]]
        for thread in threads:
            thread.start()
        run()
        for thread in threads:
            thread.join()
    else:
        # As many threads as torch's products have: a smaller team would end the others.
        threads_of_team = max(len(parts), torch.get_num_threads())
        run_in_team(_TeamFunction(run), None, threads_of_team, 0)
    if errors:
        raise errors[0]


_TeamFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@functools.cache
def _openmp() -> Callable[..., None] | None:
    """Return ``GOMP_parallel`` of the GNU OpenMP that torch has loaded, or None without one."""
    try:
        run_in_team = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):  # the last one: Windows needs a name
        return None
    run_in_team.restype = None
    run_in_team.argtypes = (_TeamFunction, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    return run_in_team
