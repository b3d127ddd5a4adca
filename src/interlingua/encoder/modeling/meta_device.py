"""Modules without numbers: made on the device "meta", where a tensor has a shape and no memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextlib.contextmanager
def meta_device() -> Iterator[None]:
    """Create the modules of the block on the device "meta", without their initial values.

    Without this, torch would compute the shapes of the initial values of ``nn.Embedding``, and
    import its compiler to do so. This import takes longer than loading a small model.
    """
    with torch.device("meta"), _SkipInitialization():
        yield


class _SkipInitialization(TorchFunctionMode):
    """A mode in which the functions of ``torch.nn.init`` return their tensor as it is."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function, unless it draws initial values."""
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"]
        return func(*args, **kwargs)
