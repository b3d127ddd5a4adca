from __future__ import annotations

import subprocess
import sys


def test_the_package_runs_as_the_command_line():
    command = [sys.executable, "-m", "interlingua", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.startswith("interlingua 0.")
