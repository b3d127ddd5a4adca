"""Errors that clients see: a status and one line, in the shape of the path's protocol."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import orjson
from starlette.responses import Response

from interlingua.errors import InterlinguaError

OPENAI_PATHS = ("/v1/", "/embeddings", "/models", "/openai/")
"""Prefixes of the paths of OpenAI's protocol, including Azure's."""
OPENAI_TYPES = {
    401: "authentication_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
    504: "server_error",
}
INFERENCE_TYPES = {
    413: "Validation",
    422: "Validation",
    424: "Backend",
    429: "Overloaded",
    500: "Backend",
    504: "Backend",
}


class RequestError(Exception):
    """A request that can't be answered.

    Attributes:
        status: the HTTP status.
        message: one line with the remedy.
        headers: additional headers of the reply.
        param: field of the body that is wrong, if the protocol names it.
    """

    def __init__(
        self,
        status: int,
        message: str,
        headers: dict[str, str] | None = None,
        *,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.message = message
        self.headers = headers or {}


@contextlib.contextmanager
def mistakes_of_client() -> Iterator[None]:
    """Convert an error of the library, such as an unknown language, to one of the request.

    Raises:
        RequestError: with status 422.
    """
    try:
        yield
    except InterlinguaError as error:
        raise RequestError(422, str(error)) from error


def error_response(path: str, error: RequestError) -> Response:
    """Return the reply in OpenAI's form for its paths, else in text-embeddings-inference's form."""
    body = orjson.dumps(_body(path, error))
    return Response(body, error.status, {"content-type": "application/json", **error.headers})


def _body(path: str, error: RequestError) -> dict[str, Any]:
    # Clients of OpenAI's protocol look for these four keys, empty or not.
    if path.startswith(OPENAI_PATHS):
        kind = OPENAI_TYPES.get(error.status, "invalid_request_error")
        return {
            "error": {"message": error.message, "type": kind, "param": error.param, "code": None}
        }
    return {"error": error.message, "error_type": INFERENCE_TYPES.get(error.status, "Validation")}
