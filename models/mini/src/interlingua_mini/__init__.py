"""interlingua's small multilingual sentence encoder: its files, and where they are.

``interlingua.load("mini")`` and ``SentenceTransformer(str(interlingua_mini.folder()))`` read the
same model.
"""

from __future__ import annotations

from interlingua_mini.unpacking import folder

__version__ = "0.1.0"
__all__ = ["__version__", "folder"]
