"""Limits of a server; every field is a flag of ``interlingua serve`` and an environment variable."""

from __future__ import annotations

from dataclasses import dataclass

from interlingua.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeSettings:
    """Limits of one server, and its key.

    Raises:
        ConfigError: a number is not positive, or the key is empty.
    """

    batch_tokens: int = 4096
    """Tokens of a batch at most; a new request waits for one running batch, so smaller is quicker to answer."""
    queue_tokens: int = 1_000_000
    """Tokens that may wait; requests beyond get status 429 and the seconds to wait for."""
    max_texts: int = 2048
    """Texts of a request at most."""
    max_request_tokens: int = 300_000
    """Tokens of a request at most."""
    max_body: int = 16 * 1024**2
    """Bytes of a request's body at most."""
    body_seconds: float = 30.0
    """A client that has not sent its whole body by then is refused."""
    auto_truncate: bool = True
    """Whether texts longer than the model's limit are cut there, or refused."""
    api_key: str | None = None
    """Requests must carry it as ``Authorization: Bearer KEY``; None = open to all."""

    def __post_init__(self) -> None:
        for field in ("batch_tokens", "queue_tokens", "max_texts", "max_request_tokens", "max_body", "body_seconds"):
            if getattr(self, field) <= 0:
                raise ConfigError(f"{field} is {getattr(self, field)}; it must be positive")
        if self.api_key == "":
            raise ConfigError("api_key is empty, which would admit everyone; give a key, or drop the option")
