"""Which checks on mined pairs run by default, and which of them reject a pair.

Apart from the checks, so that options can name the defaults in ``--help`` without loading numpy.
"""

from __future__ import annotations

from interlingua.registry import CHECKS

CHEAP = tuple(name for name in CHECKS if name != "language")
"""All that need no further package."""
DROPPED = "script,length,copied,duplicate,hub"
"""What rejects a pair unless other checks are named."""
