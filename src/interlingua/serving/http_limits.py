"""Limits on the header of a request, which uvicorn's protocol lacks.

uvicorn accepts headers of any size, and waits for their end without a time limit. Here the size of
a request's line and headers has a limit, which also holds for the trailers of a body, and the
headers must be complete within some seconds.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from interlingua.serving.errors import RequestError, error_response
from interlingua.serving.settings import ServeSettings


class _TooLargeError(Exception):
    """The headers exceed their limit in bytes."""


class LimitedHttp(HttpToolsProtocol):
    """The protocol of uvicorn on httptools, with limits on the header.

    Attributes:
        settings: the limits.
    """

    settings: ServeSettings = ServeSettings()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header_bytes = 0
        """Number of bytes of the current request's line and headers."""
        self._idle_bytes = 0
        """Bytes received since a request's headers were complete or a part of its body came."""
        self._is_too_large = False
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the header (asyncio's callback)."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer (asyncio's callback)."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; refuse too many that bring no progress (asyncio's callback)."""
        # The parser calls ``on_header`` only when a header is complete, so bytes are counted here
        # too. The callbacks below that show progress set the count to 0.
        self._idle_bytes += len(data)
        before = self._idle_bytes
        super().data_received(data)
        made_progress = self._idle_bytes < before
        if not made_progress and self._idle_bytes > self.settings.max_header:
            self._refuse(self._too_large())

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser or a callback refused."""
        if self._is_too_large:
            self._refuse(self._too_large())
        else:
            self._refuse(RequestError(400, "the request is not valid HTTP/1.1"))

    def on_message_begin(self) -> None:
        """Start to count the bytes of a header, and its time (httptools' callback)."""
        super().on_message_begin()
        self._header_bytes = 0
        self._start_timer()

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the URL (httptools' callback)."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header line (httptools' callback)."""
        # With the colon, the space and the end of the line.
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the timer of the header (httptools' callback)."""
        self._stop_timer()
        self._idle_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that a part of the body arrived (httptools' callback)."""
        self._idle_bytes = 0
        super().on_body(body)

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > self.settings.max_header:
            # httptools ends parsing, and ``send_400_response`` is called.
            self._is_too_large = True
            raise _TooLargeError

    def _too_large(self) -> RequestError:
        return RequestError(
            431,
            f"the headers have more than {self.settings.max_header:,} bytes; send fewer headers",
        )

    def _start_timer(self) -> None:
        self._stop_timer()
        self._header_timer = self.loop.call_later(self.settings.header_seconds, self._on_timer)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _on_timer(self) -> None:
        # While a request is being answered, further requests of the client are not read.
        if self._is_answering:
            self._start_timer()
            return
        seconds = self.settings.header_seconds
        self._refuse(
            RequestError(
                408, f"the headers did not arrive within {seconds:g} s; send the request again"
            )
        )

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, error: RequestError) -> None:
        """Answer with an error and close the connection."""
        if self.transport.is_closing():
            return
        # Another reply on this connection may be half sent.
        if not self._is_answering:
            response = error_response("", error)
            lines = [f"{name}: {value}\r\n" for name, value in response.headers.items()]
            head = (
                STATUS_LINE[error.status] + "".join([*lines, "connection: close\r\n\r\n"]).encode()
            )
            self.transport.write(head + bytes(response.body))
        self.transport.close()


def limited_http(settings: ServeSettings) -> type[asyncio.Protocol]:
    """Return the protocol with the limits of a server."""
    return type("LimitedHttp", (LimitedHttp,), {"settings": settings})
