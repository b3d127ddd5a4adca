"""JSON in and out by orjson: strict UTF-8, no half characters, and vectors without a Python number for each element."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from interlingua.serve.errors import RequestError


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return orjson.loads(await self.body())
        except orjson.JSONDecodeError as error:
            raise RequestError(400, f"the body is no valid JSON: {error}") from error


class StrictRoute(APIRoute):
    """A route that reads the body with orjson."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See FastAPI."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            # A page of another site can send other kinds, but not this one, without asking this server first.
            if request.method == "POST" and kind != "application/json":
                raise RequestError(415, "send the body as JSON, with the header 'content-type: application/json'")
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


def json_response(content: Any, headers: dict[str, str] | None = None) -> Response:
    """A reply; NumPy arrays become lists of numbers."""
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, headers={"content-type": "application/json", **(headers or {})})
