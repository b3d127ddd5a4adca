"""Defaults of a language map's estimate, each in this one place.

They are in a separate module, so that options can name them in ``--help`` without loading numpy.
"""

from __future__ import annotations

from typing import Literal

METHOD: Literal["project"] = "project"
SENTENCES = 1300
"""Maximum number of sentences of a language that are drawn from each source."""
HELD_OUT_SHARE = 0.25
