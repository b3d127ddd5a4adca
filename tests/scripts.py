"""Scripts of experiments, which are no modules of a package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def load_script(path: Path) -> Any:
    """Load a script as a module with the name of its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
