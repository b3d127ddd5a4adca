"""Token vectors for more than 50 languages, which ``interlingua.load("nano")`` reads."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"
__all__ = ["__version__", "folder"]


def folder() -> Path:
    """Return the folder of the model, as interlingua reads it.

    ``interlingua export`` writes it for other libraries.
    """
    return Path(__file__).resolve().parent / "model"
