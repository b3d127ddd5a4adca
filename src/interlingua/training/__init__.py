"""Training: an explicit loop that uses an engine for all calls to devices and processes.

Step t depends on (state, seed, t) and nothing else. The public names are imported when they are
first used, so that importing this package does not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.training.config import TrainConfig as TrainConfig
    from interlingua.training.config import load_train_config as load_train_config
    from interlingua.training.loop import run_training as run_training
    from interlingua.training.result import TrainResult as TrainResult

__all__ = ["TrainConfig", "TrainResult", "load_train_config", "run_training"]

_HOMES = {
    "TrainConfig": "config",
    "TrainResult": "result",
    "load_train_config": "config",
    "run_training": "loop",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
