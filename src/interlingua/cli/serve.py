"""``interlingua serve [MODEL]``."""

from __future__ import annotations

import os

from interlingua.cli.options import command
from interlingua.errors import ConfigError
from interlingua.verbs.serve import ServeOptions, run_serve

PREFIX = "INTERLINGUA_SERVE_"
"""Of the environment variables."""


@command(ServeOptions, quiet=None, variables=PREFIX)
def serve(options: ServeOptions, _: bool) -> None:
    """Answers embedding requests over HTTP: OpenAI's protocol, text-embeddings-inference's, and a
    page at /.
    """
    if os.environ.get(f"{PREFIX}API_KEY") == "":  # the parser of options would take it for unset
        raise ConfigError(
            f"{PREFIX}API_KEY is empty, which would admit everyone; give a key, or unset the"
            " variable"
        )
    run_serve(options)
