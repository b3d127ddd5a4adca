"""OpenAI's embeddings protocol: ``/v1/embeddings`` and ``/v1/models``."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter
from pydantic import BeforeValidator, Field, StrictInt, StrictStr
from starlette.requests import Request
from starlette.responses import Response

from interlingua.serve.document import MARK, Dimensions, Language, ModelName, Prompt, Texts
from interlingua.serve.errors import RequestError, mistakes_of_client
from interlingua.serve.json_route import Body, StrictRoute, json_response, whole
from interlingua.serve.service import Service


def _whole_numbers(ids: Any) -> Any:
    """Floats as whole numbers; looking at types is many times faster than a call for each id."""
    if isinstance(ids, list) and float in set(map(type, ids)):
        return list(map(whole, ids))
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

    input: StrictStr | Texts | OneTokenList | TokenLists = Field(
        description="A text, several texts, or token ids of this model's own vocabulary."
    )
    model: ModelName = Field(description="The name that the server was started with.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Dimensions | None = Field(
        None, description="How many of the first dimensions to keep, for models trained so."
    )
    user: StrictStr | None = Field(None, description="Accepted and not used.")
    prompt: Prompt | None = Field(
        None, description="Name of a prompt of the model, or text put before every input."
    )
    language: Language | None = Field(
        None, description="Language of the texts, for models that need it."
    )


def openai_router(service: Service, documented: dict[int | str, dict[str, Any]]) -> APIRouter:
    """The routes.

    Args:
        service: what embeds.
        documented: replies other than 200, for the OpenAPI document.
    """
    router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["OpenAI"], responses=documented)
    name = service.model.name
    described = {"id": name, "object": "model", "created": 0, "owned_by": "interlingua"}

    @router.post("/embeddings")
    async def embeddings(request: Request, body: EmbeddingsRequest) -> Response:
        """Embeds texts."""
        if body.model != name:
            raise RequestError(
                404, f"this server has no model {body.model[:100]!r}; its model is {name!r}"
            )
        texts, token_lists = _inputs(body.input)
        if token_lists is None:
            vectors, tokenized = await service.embed_texts(
                request,
                texts,
                prompt=body.prompt,
                language=body.language,
                dim=body.dimensions,
            )
        else:
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

    @router.get("/models")
    async def models() -> Response:
        """The one model that there is."""
        return json_response({"object": "list", "data": [described]})

    @router.get("/models/{model}")
    async def model_by_name(model: ModelName) -> Response:
        """The model, if it is called so."""
        if model != name:
            raise RequestError(
                404, f"this server has no model {model[:100]!r}; its model is {name!r}"
            )
        return json_response(described)

    return router


def _inputs(given: Any) -> tuple[list[str], list[list[int]] | None]:
    """Texts, or lists of token ids, whichever was sent; None where it was texts."""
    # The first element tells the form of all, as pydantic has checked; no list is empty.
    if isinstance(given, str):
        return [given], None
    if isinstance(given[0], str):
        return given, None
    if isinstance(given[0], int):
        return [], [given]
    return [], given


def _base64(vector: Any) -> str:
    """The bytes of a vector, in the order of bytes that the protocol has on any machine."""
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode()
