"""Reranking routes: texts ordered by their cosine with a question.

Clients of Cohere and Jina send ``documents``, and those of text-embeddings-inference ``texts``. A
cosine of two vectors is not a cross-encoder's score; it orders texts of all languages by meaning.
"""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from pydantic import ConfigDict, Field, StrictBool, StrictInt
from starlette.requests import Request
from starlette.responses import Response

from interlingua.encoder.query_and_passage import Role, role_prompt
from interlingua.encoder.texts import is_blank
from interlingua.serving.errors import RequestError, mistakes_of_client
from interlingua.serving.model import refuse_blank
from interlingua.serving.routes.document import LanguageField, ModelName, Text, Texts
from interlingua.serving.routes.json_route import WHOLE_NUMBER, Body, StrictRoute, json_response
from interlingua.serving.service import Service


class Document(Body):
    """A document of Cohere's and Jina's protocols."""

    text: Text


Documents = Annotated[list[Text | Document], Field(min_length=1, fail_fast=True)]


def _one_of(name: str, other: str) -> dict[str, Any]:
    """Return the schema of a body with one of two fields."""
    return {
        "required": [name],
        "properties": {name: {"type": "array"}, other: {"type": "null"}},
    }


class RerankRequest(Body):
    """The body of ``/rerank``: ``documents`` or ``texts``."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [_one_of("documents", "texts"), _one_of("texts", "documents")]}
    )

    query: Text
    documents: Documents | None = Field(None, description="Texts, or objects with a text.")
    texts: Texts | None = Field(None, description="Alternative to documents; the reply is a list.")
    model: ModelName | None = None
    top_n: Annotated[StrictInt, Field(ge=1), WHOLE_NUMBER] | None = Field(
        None, description="Maximum number of results; default: all."
    )
    return_documents: StrictBool = Field(False, description="Include the documents in the reply.")
    return_text: StrictBool = Field(False, description="Include the texts in the reply.")
    truncate: StrictBool | None = Field(
        None, description="Truncate texts that are too long; default: the server's setting."
    )
    language: LanguageField | None = Field(
        None, description="Language of all texts, for models that require it."
    )


def rerank_router(service: Service, documented: dict[int | str, dict[str, Any]]) -> APIRouter:
    """Return the routes.

    Args:
        service: embeds the texts.
        documented: replies other than 200, for the OpenAPI document.
    """
    router = APIRouter(route_class=StrictRoute, tags=["rerank"], responses=documented)

    @router.post("/v1/rerank", include_in_schema=False)
    @router.post("/v2/rerank", include_in_schema=False)
    @router.post("/rerank")
    async def rerank(request: Request, body: RerankRequest) -> Response:
        """Rank texts by their cosine with a question, largest first."""
        name = service.check_name(body.model)
        given = body.texts if body.documents is None else body.documents
        if given is None or (body.texts is not None and body.documents is not None):
            raise RequestError(422, "expected either documents or texts; send one of them")
        texts = [item.text if isinstance(item, Document) else item for item in given]
        service.check_count(1 + len(texts))
        if is_blank(body.query):
            raise RequestError(422, "the query is blank; send a text")
        with mistakes_of_client():
            refuse_blank(texts, "texts" if body.documents is None else "documents")
        question, query_tokens = await _embed(service, request, body, [body.query], "query")
        vectors, text_tokens = await _embed(service, request, body, texts, "passage")
        cosines = np.clip(vectors @ question[0], -1, 1)
        tokens = query_tokens + text_tokens
        # Texts with equal cosines keep their order.
        order = np.argsort(-cosines, kind="stable")[: body.top_n].tolist()
        if body.documents is None:
            found = []
            for row in order:
                shown = {"text": texts[row]} if body.return_text else {}
                found.append({"index": row, "score": float(cosines[row]), **shown})
            return json_response(found)
        results = []
        for row in order:
            shown = {"document": {"text": texts[row]}} if body.return_documents else {}
            results.append({"index": row, "relevance_score": float(cosines[row]), **shown})
        return json_response(
            {
                "id": str(uuid.uuid4()),
                "model": name,
                "results": results,
                "usage": {"total_tokens": tokens, "prompt_tokens": tokens},
                "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
            }
        )

    return router


async def _embed(
    service: Service, request: Request, body: RerankRequest, texts: list[str], role: Role
) -> tuple[Any, int]:
    """Return the vectors of texts with the model's prompt for their role, and their tokens."""
    prompt = role_prompt(service.model.encoder, role, {}, None)
    vectors, tokenized = await service.embed_texts(
        request, texts, prompt=prompt, language=body.language, auto_truncate=body.truncate
    )
    return vectors, tokenized.tokens
