"""``python -m interlingua`` is the command line."""

from __future__ import annotations

from interlingua.cli.process import run

if __name__ == "__main__":
    run()
