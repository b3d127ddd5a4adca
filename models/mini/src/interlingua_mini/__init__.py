"""interlingua's small multilingual sentence encoder: the files of the model, and where they are.

The package needs no other one. ``interlingua.load("mini")`` and ``SentenceTransformer(str(interlingua_mini.folder()))``
read the same files.
"""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"
__all__ = ["__version__", "folder"]


def folder() -> Path:
    """The folder of the model, as installed."""
    return Path(__file__).resolve().parent / "model"
