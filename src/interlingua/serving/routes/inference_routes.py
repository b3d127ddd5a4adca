"""The protocol of text-embeddings-inference: ``/embed``, ``/similarity`` and ``/info``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter
from pydantic import ConfigDict, Field, StrictBool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from interlingua import __version__
from interlingua.serving.errors import mistakes_of_client
from interlingua.serving.model import refuse_blank
from interlingua.serving.routes.document import Dimensions, LanguageField, Prompt, Text, Texts
from interlingua.serving.routes.json_route import Body, StrictRoute, json_response
from interlingua.serving.service import Service

if TYPE_CHECKING:
    from interlingua.retrieval.searcher import Searcher
    from interlingua.serving.routes.link_probabilities import LinkCalibrations


class EmbedRequest(Body):
    """The body of ``/embed``; ``language`` is an addition."""

    inputs: Text | Texts = Field(description="A text, or a list of at least one text.")
    normalize: StrictBool = Field(True, description="Scale the vectors to length 1.")
    truncate: StrictBool | None = Field(
        None, description="Truncate texts that are too long; default: the server's setting."
    )
    prompt_name: Prompt | None = Field(None, description="Name of a prompt of the model.")
    dimensions: Dimensions | None = Field(None, description="Number of leading dimensions to keep.")
    language: LanguageField | None = Field(
        None, description="Language of the texts, for models that require it."
    )


class SimilarityInput(Body):
    """One sentence and those that it is compared with."""

    source_sentence: Text
    sentences: Texts


class SimilarityParameters(Body):
    """Parameters of the embedding; the languages are an addition to the protocol."""

    truncate: StrictBool | None = None
    prompt_name: Prompt | None = None
    source_language: LanguageField | None = Field(
        default=None, description="Language of the source sentence, for models that require it."
    )
    target_language: LanguageField | None = Field(
        default=None, description="Language of the other sentences, for models that require it."
    )


class SimilarityRequest(Body):
    """The body of ``/similarity``."""

    model_config = ConfigDict(extra="forbid")

    inputs: SimilarityInput
    parameters: SimilarityParameters | None = None


def inference_router(service: Service, documented: dict[int | str, dict[str, Any]]) -> APIRouter:
    """Build the routes for inference.

    Args:
        service: embeds the texts.
        documented: replies other than 200, for the OpenAPI document.
    """
    router = APIRouter(
        route_class=StrictRoute, tags=["text-embeddings-inference"], responses=documented
    )

    @router.post("/embed")
    async def embed(request: Request, body: EmbedRequest) -> Response:
        """Embed texts; the reply is a list of vectors."""
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        with mistakes_of_client():
            refuse_blank(texts, "inputs")
        vectors, _ = await service.embed_texts(
            request,
            texts,
            prompt=body.prompt_name,
            language=body.language,
            auto_truncate=body.truncate,
            dim=body.dimensions,
            normalize=body.normalize,
        )
        return json_response(np.ascontiguousarray(vectors))

    @router.post("/similarity")
    async def similarity(request: Request, body: SimilarityRequest) -> Response:
        """Compute the cosine of one sentence with each of the others."""
        parameters = body.parameters or SimilarityParameters()
        sides: dict[str | None, list[str]] = {
            parameters.source_language: [body.inputs.source_sentence]
        }
        sides.setdefault(parameters.target_language, []).extend(body.inputs.sentences)
        service.check_count(1 + len(body.inputs.sentences))
        blocks = []
        for language, texts in sides.items():  # a batch has one language
            block, _ = await service.embed_texts(
                request,
                texts,
                prompt=parameters.prompt_name,
                language=language,
                auto_truncate=parameters.truncate,
            )
            blocks.append(block)
        vectors = np.concatenate(blocks)
        return json_response(np.clip(vectors[1:] @ vectors[0], -1, 1))

    return router


def status_router(
    service: Service, searcher: Searcher | None = None, calibrations: LinkCalibrations | None = None
) -> APIRouter:
    """Build the routes that report the model, the limits and the server's state.

    Args:
        service: embeds the texts.
        searcher: the index, if there is one.
        calibrations: of links, if there are any.
    """
    router = APIRouter(tags=["status"])
    model = service.model
    settings = service.settings

    @router.get("/info")
    async def info() -> Response:
        """Return the model and the limits."""
        return json_response(
            {
                "model_id": model.name,
                "model_dtype": model.dtype,
                "model_type": {"embedding": {"pooling": model.encoder.pooling}},
                "dimensions": model.dim,
                "max_input_length": model.encoder.max_tokens,
                "max_batch_tokens": settings.batch_tokens,
                "max_client_batch_size": settings.max_texts,
                "auto_truncate": settings.auto_truncate,
                "prompts": sorted(model.encoder.settings.prompts),
                "calibrated_languages": calibrations.language_pairs if calibrations else [],
                "needs_language": not model.takes_any_language,
                "question_needs_language": searcher is not None and searcher.model.needs_language,
                "indexed_passages": searcher.languages if searcher is not None else None,
                "version": __version__,
            }
        )

    @router.head("/health", include_in_schema=False)  # load balancers use HEAD
    @router.get("/health")
    async def health() -> Response:
        """Return whether requests are answered."""
        return json_response({"status": "ok"})

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Return counters in Prometheus's format."""
        service.metrics.queue_tokens.set(service.batcher.waiting_tokens)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return router
