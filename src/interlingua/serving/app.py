"""The application: routes, errors, guards and the page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from interlingua import __version__
from interlingua.serving.errors import RequestError, error_response
from interlingua.serving.guards import Guards
from interlingua.serving.json_log import WriteLine, write_json_line
from interlingua.serving.metrics import ServerMetrics
from interlingua.serving.model import ServedModel
from interlingua.serving.routes.document import document_of_model
from interlingua.serving.routes.inference_routes import inference_router, status_router
from interlingua.serving.routes.json_route import UNFORESEEN, DirectRoutes
from interlingua.serving.routes.ollama_routes import ollama_router
from interlingua.serving.routes.openai_routes import openai_router
from interlingua.serving.routes.rerank_routes import rerank_router
from interlingua.serving.routes.text_routes import text_router
from interlingua.serving.service import Service
from interlingua.serving.settings import ServeSettings

if TYPE_CHECKING:
    from interlingua.retrieval.searcher import Searcher
    from interlingua.serving.routes.link_probabilities import LinkCalibrations

PAGE_FILES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
    " data:"
)
"""The page loads nothing from elsewhere and runs no script but its own."""
STATUSES = {
    400: "The body is not JSON, or not of this form",
    401: "The key is missing or wrong",
    404: "The model is unknown",
    408: "The body did not arrive in time",
    415: "The body is not declared as JSON",
    413: "Too many texts, tokens or bytes",
    421: "The request is for the host of another server",
    422: "The model cannot process a text, prompt, language or number of dimensions",
    429: "The queue is full; the header Retry-After is the time to wait",
    503: "The server is stopping",
    504: "The request took too long",
}


def make_app(
    model: ServedModel,
    settings: ServeSettings,
    *,
    metrics: ServerMetrics | None = None,
    write_line: WriteLine = write_json_line,
    searcher: Searcher | None = None,
    calibrations: LinkCalibrations | None = None,
    hosts: Collection[str] | None = None,
) -> ASGIApp:
    """Build the ASGI application of one process.

    Args:
        model: the model that embeds.
        settings: limits and the key.
        metrics: counters; default: of only this process.
        write_line: writes the log's records.
        searcher: an index of the same model, for /search; None = there is none.
        calibrations: of the same model, for the probabilities of /align; None = there are none.
        hosts: allowed host names of requests; None = any.
    """
    counters = metrics or ServerMetrics()
    service = Service(model, settings, counters)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        try:
            yield
        finally:
            # The only requests left are those that were cut off at the end of the stop time.
            await asyncio.to_thread(service.batcher.close, drop=True)

    # Behind an HTTPS proxy, a redirect to the path without a final slash would wrongly name
    # http://.
    app = FastAPI(
        title="interlingua",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    documented: dict[int | str, dict[str, Any]] = {
        code: {"description": text} for code, text in STATUSES.items()
    }
    routers = [
        openai_router(service, documented),
        ollama_router(service, documented),
        rerank_router(service, documented),
        inference_router(service, documented),
        text_router(service, documented, calibrations),
    ]
    if searcher is not None:
        from interlingua.serving.routes.search_routes import search_router

        routers.append(search_router(service, searcher, documented))
        if settings.admin:
            from interlingua.serving.routes.index_routes import index_router

            routers.append(index_router(service, searcher, documented))
    for router in routers:
        app.include_router(router)
    app.include_router(status_router(service, searcher, calibrations))
    for path, (name, kind) in PAGE_FILES.items():
        app.add_api_route(
            path, _page_file(name, kind), methods=["GET", "HEAD"], include_in_schema=False
        )
    app.openapi_schema = document_of_model(
        app.openapi(),
        model,
        searcher.languages if searcher else (),
        token_ids=settings.accept_token_ids,
    )
    app.add_exception_handler(RequestError, _on_request_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_failure)
    guards = Guards(DirectRoutes(app, routers), settings, counters, write_line, hosts)
    return guards if settings.cors_origin is None else _for_pages(guards, settings.cors_origin)


def _for_pages(guards: Guards, origins: Sequence[str]) -> ASGIApp:
    """Return the application with the headers that let pages of these origins use it."""
    # This layer is outside the guards: a browser sends its preflight request without the key, and
    # a page can read a refusal of the guards only with these headers.
    return CORSMiddleware(
        guards,
        allow_origins=tuple(origins),
        allow_methods=("GET", "HEAD", "POST"),
        allow_headers=("*",),
        allow_private_network=True,
        expose_headers=("retry-after", "x-request-id", "x-truncated-texts"),
    )


def _page_file(name: str, kind: str) -> Callable[[], Any]:
    content = resources.files("interlingua.serving").joinpath("page", name).read_bytes()

    async def read() -> Response:
        return Response(
            content, media_type=kind, headers={"content-security-policy": CONTENT_POLICY}
        )

    return read


async def _on_request_error(request: Request, error: Any) -> Response:
    return error_response(request.url.path, error)


async def _on_http_error(request: Request, error: Any) -> Response:
    return error_response(
        request.url.path,
        RequestError(error.status_code, str(error.detail), dict(error.headers or {})),
    )


async def _on_failure(request: Request, error: Any) -> Response:
    """Handle an unexpected error: log the traceback, and send one line to the client."""
    return error_response(request.url.path, RequestError(500, UNFORESEEN))
