"""Defaults of mining, scoring and aligning, and the types of options that several verbs share.

They have a module of their own, so that ``--help`` can show them without loading numpy.
"""

from __future__ import annotations

from typing import Annotated, Literal

from interlingua.config import AtLeast, Between

Margin = Literal["ratio", "distance", "absolute"]
Retrieval = Literal["forward", "backward", "intersection", "max"]
Equal = Literal["exact", "folded", "never"]
"""Rule by which lines have the same text."""
K = 4
"""Neighbors that a margin is averaged over."""
DEFAULT_MARGIN: Literal["ratio"] = "ratio"
RETRIEVAL: Literal["max"] = "max"
EQUAL: Literal["exact"] = "exact"
MEMORY_GIB = 4
BACKGROUND = 1000
"""Number of further texts of the other side that margins within documents also include."""
WINDOW = 8192
"""Pairs of a stream among which neighbors are searched."""
MAX_SENTENCES = 4
"""Sentences in a link, both sides together."""
SKIP_QUANTILE = 0.1
BAND = 5
PROBES = 2000
"""Held-out pairs of a calibration."""
CHEAP = ("script", "length", "empty", "copied", "numbers", "duplicate", "hub")
"""Checks on mined pairs that are measured; they need no further package and suit any text."""
GLOSSARY = "glossary"
"""The check that needs a file."""
RULES = ("placeholders", "tags", "units", "ending", "spaces", "keys", "translations", "sources")
"""Checks of the form of two texts, which messages and documents for translators need."""
REVIEWED = ("script", "length", "empty", "copied", "numbers", *RULES)
"""Checks that are measured for a review sheet unless others are named."""
DROPPED_OF_PAIR = "script,length,empty,copied,numbers"
"""Checks of single pairs that reject by default, in every verb that filters."""
DEFAULT_CHECKS = f"{DROPPED_OF_PAIR},duplicate,hub"
"""Checks that reject a mined pair unless others are named."""
NeighborCount = Annotated[int, AtLeast(1)]
"""Type of ``k``."""
Background = Annotated[int, AtLeast(0)]
WindowSize = Annotated[int, AtLeast(2)]
MaxSentences = Annotated[int, AtLeast(2)]
"""At least 2, because a link of one sentence to one sentence has two."""
SkipQuantile = Annotated[float, Between(0, 1)]
BandWidth = Annotated[int, AtLeast(1)]
