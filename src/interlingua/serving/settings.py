"""Limits of a server: each is a flag of ``interlingua serve`` and an environment variable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from interlingua.config import AtLeast
from interlingua.config.options import MODEL, Options, option
from interlingua.errors import ConfigError

ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/\s]+", re.IGNORECASE)
"""A scheme, a host and maybe a port, as browsers write an origin."""
PACKAGES = ("fastapi", "orjson", "prometheus_client", "uvicorn")
"""Modules of the extra ``serve``."""


@dataclass(frozen=True)
class ServeSettings(Options):
    """Limits of one server, and its key.

    Raises:
        ConfigError: a number is too small, the key is empty, or an origin is not valid.
    """

    batch_tokens: Annotated[int, AtLeast(1)] = option(
        4096, "Maximum number of tokens in a batch. With fewer, new requests wait less."
    )
    queue_tokens: Annotated[int, AtLeast(1)] = option(
        1_000_000, "Maximum number of waiting tokens; further requests get status 429."
    )
    max_texts: Annotated[int, AtLeast(1)] = option(2048, "Maximum number of texts in a request.")
    max_request_tokens: Annotated[int, AtLeast(1)] = option(
        300_000, "Maximum number of tokens in a request."
    )
    max_body: Annotated[int, AtLeast(1)] = option(
        16 * 1024**2, "Maximum size of a request, in bytes."
    )
    max_header: Annotated[int, AtLeast(256)] = option(
        16 * 1024, "Maximum size of a request's headers, in bytes; larger ones get status 431."
    )
    header_seconds: Annotated[float, AtLeast(0.1)] = option(
        20.0, "Maximum time to receive the headers of a request, in seconds."
    )
    body_seconds: Annotated[float, AtLeast(0.1)] = option(
        30.0, "Maximum time to receive the body of a request, in seconds."
    )
    request_seconds: Annotated[float, AtLeast(0.1)] = option(
        300.0, "Maximum time to answer a request, in seconds; then status 504."
    )
    stop_seconds: Annotated[float, AtLeast(0.1)] = option(
        20.0, "Time to answer accepted requests after SIGTERM, in seconds; then status 503."
    )
    auto_truncate: bool = option(True, "Cut texts that are too long; otherwise refuse them.")
    any_name: bool = option(False, "Accept any model name in requests.", group=MODEL)
    accept_token_ids: bool = option(
        False,
        "Accept token ids in place of texts; clients must use this model's own tokenizer.",
        group=MODEL,
    )
    cors_origin: Sequence[str] | None = option(
        None,
        "Origins of web pages and apps that may send requests: https://example.org,"
        " app://obsidian.md, or * for all.",
        metavar="ORIGIN",
    )
    allowed_hosts: Sequence[str] | None = option(
        None,
        "Host names that requests may use besides this machine's. By default, any name is allowed;"
        " on a loopback address without --api-key, only this machine's names are.",
        metavar="NAME",
    )
    api_key: str | None = option(
        None,
        "Key that requests must carry; by default none is needed. The environment variable"
        " keeps the key out of process lists.",
    )

    admin: bool = option(
        False, "Enable /index/add and /index/delete, which change the index; needs --api-key."
    )

    def __post_init__(self) -> None:
        """Check ranges, the key and the origins."""
        if self.api_key is not None and not self.api_key.strip():
            raise ConfigError(
                "api_key is empty, which would accept every client; pass a key, or remove the"
                " option"
            )
        if self.admin and self.api_key is None:
            raise ConfigError(
                "admin requires a key, because it allows clients to change the index; add"
                " --api-key, set INTERLINGUA_SERVE_API_KEY, or remove --admin"
            )
        for origin in self.cors_origin or ():
            if not ORIGIN.fullmatch(origin):
                raise ConfigError(
                    f"cors_origin {origin!r}: expected a scheme and a host without a path, such as"
                    " https://example.org or app://obsidian.md, or *"
                )
