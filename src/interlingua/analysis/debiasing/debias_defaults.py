"""Defaults of a language map's estimate, each in this one place.

Apart, so that options can name them in ``--help`` without loading numpy.
"""

from __future__ import annotations

from typing import Literal

METHOD: Literal["project"] = "project"
SENTENCES = 1300
"""Of a language, drawn from each source at most."""
HELD_OUT_SHARE = 0.25
