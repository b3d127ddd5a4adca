"""The wheel of a distribution of this repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def build_wheel(project: Path, folder: Path, **settings: str) -> Path:
    """Build a project's wheel by hatchling without a network, and return its path.

    Args:
        project: folder with a pyproject.toml.
        folder: where the wheel lands.
        settings: more of the environment.
    """
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    environment = {**os.environ, **settings}
    built = subprocess.run(
        command, cwd=project, env=environment, check=False, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    [wheel] = folder.glob("*.whl")
    return wheel
