"""``python -m interlingua`` is the command line."""

from __future__ import annotations

from interlingua.cli.main import main

if __name__ == "__main__":
    main()
