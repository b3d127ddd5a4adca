"""Checks of every request before it is parsed: its id, the key, limits of size and time.

The guards also write one line of the log for each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import time
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlingua.serving.errors import RequestError, error_response
from interlingua.serving.hosts import host_name
from interlingua.serving.json_log import WriteLine, now, write_json_line
from interlingua.serving.metrics import ServerMetrics
from interlingua.serving.settings import ServeSettings

OPEN_PATHS = frozenset({"/", "/page.js", "/page.css", "/health", "/metrics"})
"""Paths without a key: the page asks its user for it, and monitoring has none."""
REQUEST_ID = re.compile(r"[\w.:-]{1,128}")
"""Pattern of ids that are accepted from the client; others could forge lines of the log."""
MOST_BODIES = 16
"""Maximum size of the bodies of all current requests together, as a multiple of the maximum size of
one body."""


@dataclass(slots=True)
class _Body:
    """The received part of a request's body."""

    chunks: list[bytes] = field(default_factory=list)
    size: int = 0


class Guards:
    """Middleware around the application.

    Args:
        app: the application that answers.
        settings: the limits and the key.
        metrics: counts requests.
        write_line: takes a record of each request.
        hosts: names that requests may give as their host, see ``hosts.accepted_hosts``; None = any.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeSettings,
        metrics: ServerMetrics,
        write_line: WriteLine = write_json_line,
        hosts: Collection[str] | None = None,
    ) -> None:
        self.app = app
        self.hosts = hosts
        self.settings = settings
        self.metrics = metrics
        self.write_line = write_line
        self._key_forms = _key_forms(settings.api_key)
        self._held = 0
        """Number of bytes of all bodies that have arrived and are not answered yet."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and count one request, then pass it to the application (ASGI)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        request_id = _request_id(headers)
        details: dict[str, Any] = {}
        body = _Body()
        state = scope.setdefault("state", {})
        state["log"] = details  # handlers add what they know
        state["limits"] = self.settings
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        try:
            self._check_host(scope["headers"])
            self._check_key(scope["path"], headers)
            await self._read_body(headers, receive, body)
            replayed = _replay(b"".join(body.chunks), receive)
            await self._answer(scope, replayed, send_with_id)
        except RequestError as error:
            if not status:
                await error_response(scope["path"], error)(scope, receive, send_with_id)
        except asyncio.CancelledError:  # the stop time is over
            late = RequestError(
                503,
                "the server stopped before it processed this request; send the request to another"
                " server",
            )
            if not status:
                await error_response(scope["path"], late)(scope, receive, send_with_id)
        except _DisconnectedError:
            status = 499  # as nginx logs a client that left
        finally:
            self._held -= body.size
            self._record(scope, status or 500, time.perf_counter() - started, request_id, details)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application within the time limit of a request."""
        seconds = self.settings.request_seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                await self.app(scope, receive, send)
        except TimeoutError:
            if not limit.expired():  # the application itself raised it
                raise
            raise late_request(seconds) from None

    def _check_host(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        given = [value.decode("latin-1") for name, value in headers if name == b"host"]
        # Two programs between client and server could each use a different one of them.
        if len(given) > 1:
            raise RequestError(400, "the request has several Host headers; send one", _CLOSE)
        # Another site can make its own host name point at this machine.
        if self.hosts is not None and given and host_name(given[0]) not in self.hosts:
            raise RequestError(
                421,
                f"the host {given[0][:100]!r} is not a name of this server; use its address, or"
                " start the server with --allowed-hosts NAME or with --api-key",
            )

    def _check_key(self, path: str, headers: dict[str, str]) -> None:
        if not self._key_forms or path in OPEN_PATHS:
            return
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            key = headers.get("api-key", "")  # as clients of Azure send it
        sent = key.strip().encode("latin-1")  # the bytes as they came
        is_right = sum(hmac.compare_digest(sent, form) for form in self._key_forms) > 0
        if not is_right:
            raise RequestError(
                401,
                "the key is missing or wrong; send the header 'Authorization: Bearer KEY'",
                _ASK_FOR_KEY,
            )

    async def _read_body(self, headers: dict[str, str], receive: Receive, body: _Body) -> None:
        limit = self.settings.max_body
        too_large = RequestError(
            413, f"the body has more than {limit:,} bytes; send fewer texts in a request", _CLOSE
        )
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > limit:
            raise too_large
        is_more = True
        seconds = self.settings.body_seconds
        try:
            async with asyncio.timeout(seconds):  # wait_for would make a task for each request
                while is_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _DisconnectedError
                    body.chunks.append(message.get("body", b""))
                    body.size += len(body.chunks[-1])
                    self._held += len(body.chunks[-1])
                    is_more = message.get("more_body", False)
                    if body.size > limit:
                        raise too_large
                    if self._held > MOST_BODIES * limit:
                        raise RequestError(
                            429,
                            f"the bodies of all current requests take {self._held:,} bytes; send"
                            " the request again later",
                            {"retry-after": "1", **_CLOSE},
                        )
        except TimeoutError:
            raise RequestError(
                408, f"the body did not arrive within {seconds:g} s; send the request again", _CLOSE
            ) from None

    def _record(
        self, scope: Scope, status: int, seconds: float, request_id: str, details: dict[str, Any]
    ) -> None:
        # Clients may make up any number of paths; those without a route are counted together.
        path = getattr(scope.get("route"), "path", "other")
        self.metrics.requests.labels(path, str(status)).inc()
        self.metrics.seconds.labels(path).observe(seconds)
        client = scope.get("client")
        self.write_line(
            {
                "time": now(),
                "id": request_id,
                "client": client[0] if client else None,
                "method": scope["method"],
                "path": scope["path"][:200],
                "status": status,
                "seconds": round(seconds, 6),
                **details,
            }
        )


def late_request(seconds: float) -> RequestError:
    """Return the error of a request that took too long.

    Args:
        seconds: maximum time of a request.
    """
    return RequestError(
        504,
        f"the request took longer than {seconds:g} s; send fewer or shorter texts in a request, or"
        " start the server with a larger --request-seconds",
    )


def _key_forms(key: str | None) -> list[bytes]:
    """Return the bytes of a key in a header: clients encode non-ASCII as UTF-8 or Latin-1.

    Without a key the list is empty.
    """
    if key is None:
        return []
    forms = [key.strip().encode()]
    with contextlib.suppress(UnicodeEncodeError):
        forms.append(key.strip().encode("latin-1"))
    return forms


class _DisconnectedError(Exception):
    """The client left before its request was complete."""


_ASK_FOR_KEY = {"www-authenticate": "Bearer"}
_CLOSE = {"connection": "close"}


def _request_id(headers: dict[str, str]) -> str:
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receiver for the application: the whole body first, then later messages."""
    is_sent = False

    async def receive_again() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
