"""Scripts that are run in a process of their own, and that die at a chosen call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def die_at(owner, name, moment):
    """Make a numbered call of a function end this process, like kill -9."""
    real, calls = getattr(owner, name), []

    def deadly(*arguments, **options):
        calls.append(1)
        if len(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    setattr(owner, name, deadly)


def run_script(script, *arguments):
    """Run a script, and return its end."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode
