from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.cli.common import resumable
from interlingua.errors import InterlinguaError


def test_ctrl_c_says_where_vectors_are():
    with (
        pytest.raises(InterlinguaError, match="stored in out/results"),
        resumable(True, Path("out")),
    ):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), resumable(False, Path("out")):
        raise KeyboardInterrupt
