"""Elementwise work between two matrix products, in one pass over memory by ``torch.compile``.

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
    """Whether functions marked ``one_pass`` are compiled.

    Attributes:
        is_on: now.
    """

    def __init__(self) -> None:
        self.is_on = False

    def set(self, *, on: bool, device: torch.device) -> None:
        """Turns it on or off for all that this process does from now on.

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
                # A real compilation, as only that shows whether there is a compiler.
                torch.compile(_probe)(torch.ones(8, device=device))
            # torch wraps what its compilers raise in errors of many kinds.
            except Exception as error:
                needed = "Triton" if device.type == "cuda" else "a C++ compiler"
                reason = str(error).strip().partition("\n")[0]
                raise ConfigError(
                    f"run: compile is set, but torch.compile fails here: {reason}; install"
                    f" {needed}, or remove compile"
                ) from error
        self.is_on = on


switch = Switch()


def one_pass(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function of tensors: its operations may run as one, in other roundings."""
    # On the first use, as torch.compile imports much. Batches differ in length at every step, and
    # sizes that are not dynamic would be compiled anew for each.
    compiled = functools.cache(lambda: torch.compile(function, dynamic=True))

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if switch.is_on:
            return compiled()(*args, **kwargs)
        return function(*args, **kwargs)

    return run


def _probe(x: torch.Tensor) -> torch.Tensor:
    return x.exp() + 1
