"""Ollama's embeddings protocol: ``/api/embed``, and the routes that its clients call before it.

Names of models there end with a tag: ``e5:latest`` is ``e5``.
"""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from pydantic import Field, StrictBool
from starlette.requests import Request
from starlette.responses import Response

from interlingua import __version__
from interlingua.serving.routes.document import Dimensions, ModelName, Text, Texts
from interlingua.serving.routes.json_route import Body, StrictRoute, json_response
from interlingua.serving.service import Service

TAG = ":latest"


class OllamaEmbedRequest(Body):
    """The body of ``/api/embed``; fields for models that generate text are not used."""

    input: Text | Texts = Field(description="A text, or a list of at least one text.")
    model: ModelName | None = Field(
        None, description="One of the server's model names; default: its model."
    )
    truncate: StrictBool | None = Field(
        None, description="Truncate texts that are too long; default: the server's setting."
    )
    dimensions: Dimensions | None = Field(None, description="Number of leading dimensions to keep.")


class OllamaPromptRequest(Body):
    """The body of ``/api/embeddings``, the older path."""

    prompt: Text
    model: ModelName | None = None


def ollama_router(service: Service, documented: dict[int | str, dict[str, Any]]) -> APIRouter:
    """Return the routes.

    Args:
        service: embeds the texts.
        documented: replies other than 200, for the OpenAPI document.
    """
    router = APIRouter(route_class=StrictRoute, tags=["Ollama"], responses=documented)

    @router.post("/api/embed")
    async def embed(request: Request, body: OllamaEmbedRequest) -> Response:
        """Embed texts; vectors have length 1."""
        started = time.perf_counter_ns()
        name = service.check_name(_without_tag(body.model))
        texts = [body.input] if isinstance(body.input, str) else body.input
        vectors, tokenized = await service.embed_texts(
            request, texts, auto_truncate=body.truncate, dim=body.dimensions
        )
        return json_response(
            {
                "model": body.model or name,
                "embeddings": list(vectors),
                "total_duration": time.perf_counter_ns() - started,
                "load_duration": 0,
                "prompt_eval_count": tokenized.tokens,
            }
        )

    @router.post("/api/embeddings", include_in_schema=False)
    async def embed_prompt(request: Request, body: OllamaPromptRequest) -> Response:
        """Embed one text."""
        service.check_name(_without_tag(body.model))
        vectors, _ = await service.embed_texts(request, [body.prompt])
        return json_response({"embedding": vectors[0]})

    @router.get("/api/tags", include_in_schema=False)
    async def tags() -> Response:
        """Return the only model, under each of its names."""
        return json_response({"models": list(map(_model, service.model.names))})

    @router.get("/api/version", include_in_schema=False)
    async def version() -> Response:
        """Return the version of this program."""
        return json_response({"version": __version__})

    return router


def _without_tag(name: str | None) -> str | None:
    return None if name is None else name.removesuffix(TAG)


def _model(name: str) -> dict[str, Any]:
    """Return the model as Ollama lists one; missing properties are empty."""
    return {
        "name": f"{name}{TAG}",
        "model": f"{name}{TAG}",
        "modified_at": "1970-01-01T00:00:00Z",
        "size": 0,
        "digest": "",
        "details": {"format": "safetensors", "family": "interlingua"},
    }
