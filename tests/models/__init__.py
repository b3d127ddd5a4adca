"""The shipped models. An sdist of the library has their packages without the weights."""

from __future__ import annotations

from pathlib import Path

import pytest

MODELS = Path(__file__).resolve().parents[2] / "models"


def needs_weights(name):
    """Skip a test where the weights of a model are missing, as in an sdist."""
    folder = MODELS / name / "src" / f"interlingua_{name}" / "model"
    return pytest.mark.skipif(not folder.is_dir(), reason=f"the weights of {name} are missing")
