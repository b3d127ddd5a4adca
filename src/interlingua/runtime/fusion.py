"""Fusion of elementwise work between two matrix products into one pass by ``torch.compile``.

torch runs each operation separately, and each operation reads and writes all its elements. On a GPU
this takes about as long as the products. If a run turns ``switch`` on, each function that is marked
``one_pass`` is compiled into one kernel. There is one switch for the whole process, because the
backward pass runs in threads that torch starts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import torch

from interlingua.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")


class Switch:
    """Switch of the compilation of functions marked ``one_pass``.

    Attributes:
        is_on: whether the compilation is on.
    """

    def __init__(self) -> None:
        self.is_on = False

    def set(self, *, on: bool, device: torch.device) -> None:
        """Turn the compilation on or off for all later calls in this process.

        Args:
            on: compile.
            device: where the functions will run; a trial compilation is made for it.

        Raises:
            ConfigError: nothing can be compiled on this machine.
        """
        if on and not self.is_on:
            try:
                # The gradients of single loss terms need several backward passes; donated buffers
                # allow only one.
                config: Any = import_module("torch._functorch.config")
                config.donated_buffer = False
                # A function is compiled for each combination of width, dropout and type. By default
                # torch stops compiling after eight of them.
                config = import_module("torch._dynamo.config")
                config.recompile_limit = max(64, config.recompile_limit)
                # Really compile a function: only this shows whether there is a compiler.
                torch.compile(_probe)(torch.ones(8, device=device))
            # torch wraps what its compilers raise in errors of many kinds.
            except Exception as error:
                needed = "Triton" if device.type == "cuda" else "a C++ compiler"
                reason = str(error).strip().partition("\n")[0]
                raise ConfigError(
                    f"run: compile: torch.compile fails on this machine ({reason}); install"
                    f" {needed}, or remove compile"
                ) from error
        self.is_on = on


switch = Switch()


def one_pass(*, rows: int = 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function of tensors: its operations may run as one, with different rounding.

    Args:
        rows: number of its first arguments that are tensors with a row for each token. Only their
            number of rows differs from step to step; their widths are compiled in, so that a GPU
            reads each row once and as a whole. 0 = any size may differ.
    """

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        # Compiled at the first use, because torch.compile imports many modules. Sizes that differ
        # at every step are dynamic; otherwise each size would be compiled anew.
        compiled = functools.cache(lambda: torch.compile(function, dynamic=not rows))

        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            if not switch.is_on:
                return function(*args, **kwargs)
            for tensor in args[:rows]:
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
            return compiled()(*args, **kwargs)

        return run

    return mark


def _probe(x: torch.Tensor) -> torch.Tensor:
    return x.exp() + 1
