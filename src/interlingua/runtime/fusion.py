"""Fusion of elementwise work between two matrix products into one pass by ``torch.compile``.

torch runs each operation by itself, and each reads and writes all of its elements. On a GPU that
takes about as long as the products do. The functions that are marked ``one_pass`` are compiled into
one kernel each once ``switch`` is on, which a run asks for. The switch is one for the whole
process, as the backward pass runs in threads of torch's own.
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
        is_on: now.
    """

    def __init__(self) -> None:
        self.is_on = False

    def set(self, *, on: bool, device: torch.device) -> None:
        """Turn it on or off for all that this process does from now on.

        Args:
            on: compile.
            device: where the functions will run; that it can compile is tried.

        Raises:
            ConfigError: nothing can be compiled here.
        """
        if on and not self.is_on:
            try:
                # Gradients of single terms go backward more than once; donated buffers allow one
                # pass.
                config: Any = import_module("torch._functorch.config")
                config.donated_buffer = False
                # A function is compiled for each width, dropout and type that it meets; beyond
                # torch's eight it would no longer be.
                config = import_module("torch._dynamo.config")
                config.recompile_limit = max(64, config.recompile_limit)
                # A real compilation, as only that shows whether there is a compiler.
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
    """Mark a function of tensors: its operations may run as one, in other roundings.

    Args:
        rows: how many of its arguments, from the first on, are tensors with a row for each token.
            Of these only the number of rows differs from step to step; widths are compiled in, so
            that a GPU reads a row once, whole. 0 = any size may differ.
    """

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        # On the first use, as torch.compile imports much. Sizes that differ at every step would be
        # compiled anew for each, were they not dynamic.
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
