"""OpenAI's embeddings protocol: ``/v1/embeddings`` and ``/v1/models``.

Clients use different bases for these paths, so the paths also exist without ``/v1``, and where
clients of Azure expect them.
"""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter
from pydantic import BeforeValidator, Field, StrictInt, StrictStr
from starlette.requests import Request
from starlette.responses import Response

from interlingua.errors import DataError
from interlingua.serving.errors import RequestError, mistakes_of_client
from interlingua.serving.model import refuse_blank
from interlingua.serving.routes.document import (
    MARK,
    Dimensions,
    LanguageField,
    ModelName,
    Prompt,
    Text,
    Texts,
)
from interlingua.serving.routes.json_route import Body, StrictRoute, as_whole_number, json_response
from interlingua.serving.service import Service

AZURE_PATH = "/openai/deployments/{deployment}/embeddings"
TOKENS_REFUSED = (
    "input contains token ids, which are only valid for the tokenizer of one model; send"
    " texts (LangChain: check_embedding_ctx_length=False), or, if the ids are of this"
    " model's vocabulary, start the server with --accept-token-ids"
)


def _whole_numbers(ids: Any) -> Any:
    """Convert floats to whole numbers.

    Checking types first is many times faster than a call for each id.
    """
    if isinstance(ids, list) and float in set(map(type, ids)):
        return list(map(as_whole_number, ids))
    return ids


TokenIds = Annotated[
    list[Annotated[StrictInt, Field(ge=0, lt=2**31, json_schema_extra={MARK: "token"})]],
    Field(fail_fast=True),
    BeforeValidator(_whole_numbers),
]
OneTokenList = Annotated[TokenIds, Field(min_length=1)]
TokenLists = Annotated[list[OneTokenList], Field(min_length=1, fail_fast=True)]


class EmbeddingsRequest(Body):
    """The body of a request; ``prompt`` and ``language`` are additions to OpenAI's."""

    input: Text | Texts | OneTokenList | TokenLists = Field(
        description="A text, a list of texts, or token ids of this model's vocabulary.",
        json_schema_extra={MARK: "input"},
    )
    model: ModelName | None = Field(
        None, description="One of the server's model names; default: its model."
    )
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Dimensions | None = Field(
        None,
        description="Number of leading dimensions to keep, for models trained for it.",
    )
    user: StrictStr | None = Field(None, description="Ignored.")
    prompt: Prompt | None = Field(
        None,
        description="Name of a prompt of the model, or a text that is added before every input.",
    )
    language: LanguageField | None = Field(
        None, description="Language of the texts, for models that require it."
    )


def openai_router(service: Service, documented: dict[int | str, dict[str, Any]]) -> APIRouter:
    """Build the routes of OpenAI's protocol.

    Args:
        service: embeds the texts.
        documented: replies other than 200, for the OpenAPI document.
    """
    router = APIRouter(route_class=StrictRoute, tags=["OpenAI"], responses=documented)

    @router.post("/openai/v1/embeddings", include_in_schema=False)
    @router.post(AZURE_PATH, include_in_schema=False)
    @router.post("/embeddings", include_in_schema=False)
    @router.post("/v1/embeddings")
    async def embeddings(request: Request, body: EmbeddingsRequest) -> Response:
        """Embed texts."""
        name = service.check_name(request.path_params.get("deployment", body.model))
        texts, token_lists = _inputs(body.input)
        if token_lists is None:
            _refuse_blank_input(texts)
            vectors, tokenized = await service.embed_texts(
                request,
                texts,
                prompt=body.prompt,
                language=body.language,
                dim=body.dimensions,
            )
        else:
            if not service.settings.accept_token_ids:
                raise RequestError(400, TOKENS_REFUSED, param="input")
            # Token ids are taken as they are, without prompt and language.
            service.check_count(len(token_lists))
            with mistakes_of_client():
                tokenized = service.model.wrap_tokens(
                    token_lists, auto_truncate=service.settings.auto_truncate
                )
            vectors = await service.embed_tokens(request, tokenized, dim=body.dimensions)
        # OpenAI's own client asks for base64, which is shorter and faster to read.
        is_base64 = body.encoding_format == "base64"
        data = [
            {
                "object": "embedding",
                "index": row,
                "embedding": _base64(vector) if is_base64 else vector,
            }
            for row, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokenized.tokens, "total_tokens": tokenized.tokens}
        content = {"object": "list", "data": data, "model": name, "usage": usage}
        return json_response(content)

    @router.get("/models", include_in_schema=False)
    @router.get("/v1/models")
    async def models() -> Response:
        """Return the only model, under each of its names."""
        return json_response({"object": "list", "data": list(map(_model, service.model.names))})

    @router.get("/models/{model}", include_in_schema=False)
    @router.get("/v1/models/{model}")
    async def model_by_name(model: ModelName) -> Response:
        """Return the model if it has this name."""
        return json_response(_model(service.check_name(model)))

    return router


def _model(name: str) -> dict[str, Any]:
    """Return the model as OpenAI describes one."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "interlingua"}


def _refuse_blank_input(texts: list[str]) -> None:
    """Refuse a blank text with the status that clients of OpenAI know."""
    try:
        refuse_blank(texts)
    except DataError as error:
        raise RequestError(400, str(error), param="input") from error


def _inputs(given: Any) -> tuple[list[str], list[list[int]] | None]:
    """Return texts and None, or, if token ids were sent, an empty list and the lists of ids."""
    # All elements have the form of the first one, as pydantic has checked; no list is empty.
    if isinstance(given, str):
        return [given], None
    if isinstance(given[0], str):
        return given, None
    if isinstance(given[0], int):
        return [], [given]
    return [], given


def _base64(vector: Any) -> str:
    """Encode the bytes of a vector in base64, little-endian on any machine as in the protocol."""
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode()
