"""Errors in one of several processes."""

from __future__ import annotations

import pytest

from tests.training.machine.test_engine import FAILING
from tests.training.runs import run_python


@pytest.mark.parametrize("failing", ["0", "1", "both"])
def test_an_error_in_any_process_leaves_no_thread_behind(tmp_path, failing):
    """Check threads that aborted a process at its end, or blocked it, in one of three runs."""
    script = tmp_path / "worker.py"
    script.write_text(FAILING)
    done = run_python(script, failing, check=False)
    assert done.returncode == 2, done.stderr
