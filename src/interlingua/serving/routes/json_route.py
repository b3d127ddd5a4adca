"""Routes with JSON by orjson: strict UTF-8, no lone surrogates, and fast for vectors.

Vectors are written from NumPy's memory, without a Python number for each element. A request of one
short text costs more in the layers of a web framework than in tokenization. So ``DirectRoutes``
looks up the routes of this module by their path and calls them itself. FastAPI describes them in
the OpenAPI document, and answers all other requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, get_type_hints

import numpy as np
import orjson
from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import (
    BaseModel,
    BeforeValidator,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from interlingua.serving.errors import RequestError, error_response
from interlingua.serving.settings import ServeSettings

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
MOST_FIELDS = 100
"""Maximum number of fields of an object in a request."""
MOST_FIELDS_OF_ALL = 100_000
"""Maximum number of fields of all objects in a request together."""
INLINE_BYTES = 64 * 1024
"""Maximum size of a body that is read without a thread; the slowest such body takes 4 ms, starting
a thread takes 0.1 ms."""
COUNTED_BYTES = 1 << 18
"""Number of bytes per counting step, so that NumPy's temporary arrays stay in the cache."""


def as_whole_number(value: Any) -> Any:
    """Convert a float that is a whole number to an integer; return other values unchanged."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


WHOLE_NUMBER = BeforeValidator(as_whole_number)
"""Validator to list after the limits of a ``StrictInt``, because JSON may write 3 as 3.0."""


class Body(BaseModel):
    """A body of a request, or an object in it; an optional field with null counts as absent."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {
            name: value
            for name, value in content.items()
            if value is not None or name not in optional
        }

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema, in which fields with a default may be null."""
        schema = handler(core_schema)
        content = handler.resolve_ref_schema(schema)
        for name, field in content.get("properties", {}).items():
            has_null = {"type": "null"} in field.get("anyOf", [])
            if name in content.get("required", []) or has_null:
                continue
            kept = ("title", "description", "default")
            form = {key: value for key, value in field.items() if key not in kept}
            about = {key: value for key, value in field.items() if key in kept}
            content["properties"][name] = {"anyOf": [form, {"type": "null"}], **about}
        return schema


class StrictRoute(APIRoute):
    """A route whose function takes the request and a JSON body, and returns a response."""

    def get_route_handler(self) -> Handler:
        """Return the handler that parses and checks the body (called by FastAPI)."""
        # A route without a body is left to FastAPI.
        model: type[BaseModel] | None = get_type_hints(self.endpoint).get("body")
        if model is None:
            return super().get_route_handler()

        async def handle(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            # Without a preflight request, a page of another site can send other content types, but
            # not this one.
            if kind != "application/json":
                raise RequestError(
                    415,
                    "the body must be JSON; send it with the header 'content-type:"
                    " application/json'",
                )
            if request.headers.get("content-encoding", "identity").lower() != "identity":
                raise RequestError(
                    415, "a content-encoding is not supported; send the body uncompressed"
                )
            limits = getattr(request.state, "limits", ServeSettings())
            body = await request.body()
            if len(body) <= INLINE_BYTES:
                content = _read(model, body, limits)
            else:
                content = await asyncio.to_thread(_read_large, model, body, limits)
            response: Response = await self.endpoint(request, content)
            return response

        return handle


class DirectRoutes:
    """A dispatcher: it calls ``StrictRoute`` routes by path; all else goes to the application.

    Args:
        app: the application.
        routers: with the routes.
    """

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self.app = app
        self._routes: dict[str, tuple[StrictRoute, Handler]] = {}
        for router in routers:
            for route in router.routes:
                if isinstance(route, StrictRoute) and route.methods == {"POST"}:
                    self._routes[route.path] = (route, route.get_route_handler())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch a request to its route (ASGI)."""
        found = None
        if scope.get("method") == "POST":
            found = self._routes.get(scope["path"])
        if found is None:
            await self.app(scope, receive, send)
            return
        route, handle = found
        # The guards get the path for their counters from the route.
        scope["route"] = route
        try:
            response = await handle(Request(scope, receive))
            # The service's notes for the log go to the client too.
            done = scope.get("state", {}).get("log", {})
            if "texts" in done:
                response.headers["x-truncated-texts"] = str(done.get("truncated", 0))
        except RequestError as error:
            response = error_response(scope["path"], error)
        # The client gets one line, the server's log the traceback.
        except Exception:
            await error_response(scope["path"], RequestError(500, UNFORESEEN))(scope, receive, send)
            raise
        await response(scope, receive, send)


UNFORESEEN = "the server failed to process this request; see the reason in its log"


def json_response(content: Any, headers: dict[str, str] | None = None) -> Response:
    """Return a reply; NumPy arrays become lists of numbers."""
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, headers={"content-type": "application/json", **(headers or {})})


def _read_large(model: type[BaseModel], body: bytes, limits: ServeSettings) -> BaseModel:
    """Read a large body in a thread.

    The parser keeps Python's lock until it is done, which takes a second for millions of values.
    So values are counted first, in steps that release the lock.
    """
    values, fields = count_values(body)
    if fields > MOST_FIELDS_OF_ALL:
        raise RequestError(
            400, f"the body has {fields:,} fields in objects; send only the fields of /openapi.json"
        )
    # A request may have two lists, of texts or of lists of token ids.
    most = 2 * (limits.max_texts + limits.max_request_tokens)
    if values > most:
        raise RequestError(
            413, f"the body has {values:,} values; send at most {most:,} in a request"
        )
    return _read(model, body, limits)


def count_values(body: bytes) -> tuple[int, int]:
    """Count the values and the fields of objects in JSON, without parsing it.

    Args:
        body: JSON, or anything else.

    Returns:
        The number of values, where an empty list or object counts as two, and that of fields.
    """
    values = 1
    fields = 0
    is_inside = False  # of a string
    start = 0
    while start < len(body):
        part = body[start : start + COUNTED_BYTES]
        # An escape must not be cut: a backslash and the character behind it stay together.
        is_cut = (len(part) - len(part.rstrip(b"\\"))) % 2 == 1
        if is_cut and start + len(part) < len(body):
            part = part[:-1]
        start += len(part)
        # Without escapes each quotation mark starts or ends a string.
        plain = part.replace(b"\\\\", b"").replace(b'\\"', b"")
        characters = np.frombuffer(plain, dtype=np.uint8)
        marks = characters == ord('"')
        # The sum of bytes may overflow, but its parity stays correct.
        is_in_string = (np.cumsum(marks, dtype=np.uint8) % 2 == 1) != is_inside
        outside = characters[~is_in_string]
        counts = np.bincount(outside, minlength=128)
        values += int(counts[ord(",")] + counts[ord("[")] + counts[ord("{")])
        fields += int(counts[ord(":")])
        is_inside = is_inside != (int(marks.sum()) % 2 == 1)
    return values, fields


def _read(model: type[BaseModel], body: bytes, limits: ServeSettings) -> BaseModel:
    """Parse the body of a request, or raise a one-line error that names the fault."""
    try:
        with _without_collector():
            content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"the body is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise RequestError(400, "the body must be a JSON object, {...}; see /openapi.json")
    _refuse_large(content, limits)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise RequestError(400, _first_fault(model, error)) from error


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Disable Python's search for cycles, which would go through millions of new objects.

    JSON never has cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _refuse_large(content: dict[str, Any], limits: ServeSettings) -> None:
    """Refuse more items than a request may have, before any of them is examined.

    A validator takes minutes for a list of millions, and nothing else is answered meanwhile.

    Raises:
        RequestError: with status 400 or 413.
    """
    if len(content) > MOST_FIELDS:
        raise RequestError(
            400, f"an object has {len(content):,} fields; send only the fields of /openapi.json"
        )
    for value in content.values():
        if isinstance(value, dict):
            _refuse_large(value, limits)
        if isinstance(value, list) and value:
            _refuse_long_list(value, limits)


def _refuse_long_list(value: list[Any], limits: ServeSettings) -> None:
    """Refuse a list of too many texts or token ids; see ``_refuse_large``."""
    if isinstance(value[0], int | float):
        refuse_tokens(len(value), limits)
        return
    refuse_texts(len(value), limits)
    refuse_tokens(sum(len(item) for item in value if isinstance(item, list)), limits)


def refuse_texts(texts: int, limits: ServeSettings) -> None:
    """Refuse a request of too many texts.

    Raises:
        RequestError: with status 413.
    """
    if texts > limits.max_texts:
        raise RequestError(
            413,
            f"the request has {texts:,} texts; send at most {limits.max_texts:,} in a request",
        )


def refuse_tokens(tokens: int, limits: ServeSettings) -> None:
    """Refuse a request of too many tokens.

    Raises:
        RequestError: with status 413.
    """
    if tokens > limits.max_request_tokens:
        raise RequestError(
            413,
            f"the request has {tokens:,} tokens; send at most {limits.max_request_tokens:,} in a"
            " request",
        )


def _first_fault(model: type[BaseModel], error: ValidationError) -> str:
    """Return the first fault of the body, in one line."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    first = faults[0]
    name = str(first["loc"][0])
    # A field with several allowed types has a fault for each type; none shows the intended type.
    of_field = [fault for fault in faults if fault["loc"][:1] == first["loc"][:1]]
    if len(of_field) > 1:
        field = model.model_fields.get(name)
        if field is None or field.description is None:
            return f"{name}: the value has none of the allowed types; see /openapi.json"
        return (
            f"{name}: the value has none of the allowed types ({field.description}); see"
            " /openapi.json"
        )
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}"
