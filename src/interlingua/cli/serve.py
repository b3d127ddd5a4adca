"""``interlingua serve [MODEL]``."""

from __future__ import annotations

from interlingua.cli.options import command
from interlingua.verbs.serve import ServeOptions, run_serve

PREFIX = "INTERLINGUA_SERVE_"
"""Of the environment variables."""


@command(ServeOptions, quiet=None, variables=PREFIX)
def serve(options: ServeOptions, _: bool) -> None:
    """Answers embedding requests over HTTP: OpenAI's protocol, text-embeddings-inference's, and a page at /."""
    run_serve(options)
