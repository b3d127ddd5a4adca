"""``interlingua serve [MODEL]``."""

from __future__ import annotations

import os

from interlingua.cli.options import make_command
from interlingua.errors import ConfigError
from interlingua.verbs.serve import ServeOptions, run_serve

_PREFIX = "INTERLINGUA_SERVE_"
"""Prefix of the environment variables."""


@make_command(ServeOptions, quiet=None, variables=_PREFIX)
def serve(options: ServeOptions, _: bool) -> None:
    """Serve a model over HTTP.

    The protocols are those of OpenAI and text-embeddings-inference, and there is a page at /.
    """
    # The option parser would treat an empty variable as if it were not set.
    if os.environ.get(f"{_PREFIX}API_KEY") == "":
        raise ConfigError(
            f"{_PREFIX}API_KEY is empty, which would accept every client; set a key, or unset the"
            " variable"
        )
    run_serve(options)
