"""Search in an index of passages, ``/search``, and its description, ``/index/info``."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter
from pydantic import ConfigDict, Field, StrictInt, StrictStr
from starlette.requests import Request
from starlette.responses import Response

from interlingua.encoder.texts import is_blank
from interlingua.errors import CheckpointError, InterlinguaError
from interlingua.retrieval.index_info import index_info
from interlingua.retrieval.ranking import hit_record
from interlingua.retrieval.searcher import Ranking, Searcher, SearchMode
from interlingua.serving.errors import RequestError, mistakes_of_client
from interlingua.serving.model import language_code
from interlingua.serving.routes.document import NOT_BLANK, IndexedLanguage, LanguageField
from interlingua.serving.routes.json_route import WHOLE_NUMBER, Body, StrictRoute, json_response
from interlingua.serving.service import Service

_MOST_HITS = 100
"""Maximum number of hits of a request."""
MAX_QUESTION = 10_000
"""Characters of a question."""
MAX_CONDITION = 2000
"""Characters of a condition."""
_UNREADABLE = "the index of this server cannot be read; see the reason in the server's log"
_Result = TypeVar("_Result")
Hits = Annotated[StrictInt, Field(ge=1, le=_MOST_HITS), WHOLE_NUMBER]


class SearchRequest(Body):
    """The body of ``/search``."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[
        StrictStr,
        Field(min_length=1, max_length=MAX_QUESTION, json_schema_extra={"pattern": NOT_BLANK}),
    ]
    top: Hits = Field(10, description="Maximum number of passages.")
    mode: SearchMode = "vector"
    languages: Annotated[list[IndexedLanguage], Field(max_length=1000, fail_fast=True)] = Field(
        [], description="Search only in these languages."
    )
    per_language: Hits | None = Field(
        None,
        description=(
            "Number of passages of each language to return first; the other best passages follow."
        ),
    )
    language: LanguageField | None = Field(
        None, description="Language of the question, for models that require it."
    )
    where: Annotated[StrictStr, Field(min_length=1, max_length=MAX_CONDITION)] | None = Field(
        None,
        description="SQL condition on columns and metadata, for example language = 'deu_Latn'.",
        json_schema_extra={"pattern": "^id <> '[a-z]*'$"},
    )


async def from_index(request: Request, read: Callable[[], _Result]) -> _Result:
    """Read or change an index in a thread.

    Args:
        request: its line in the log gets the error of a damaged index.
        read: to call.

    Raises:
        RequestError: the index is damaged, or the request is not valid.
    """
    try:
        return await asyncio.to_thread(read)
    # This is not the client's fault, and the client has no use for the paths in the message.
    except CheckpointError as error:
        request.state.log["error"] = str(error)
        raise RequestError(500, _UNREADABLE) from error
    except InterlinguaError as error:
        raise RequestError(422, str(error)) from error


def search_router(
    service: Service, searcher: Searcher, documented: dict[int | str, dict[str, Any]]
) -> APIRouter:
    """Build the routes for search.

    Args:
        service: embeds questions.
        searcher: the index, of the same model.
        documented: replies other than 200, for the OpenAPI document.
    """
    router = APIRouter(route_class=StrictRoute, tags=["search"], responses=documented)
    model = searcher.model

    @router.post("/search")
    async def search(request: Request, body: SearchRequest) -> Response:
        """Return the passages that best answer a question, and the share of each language."""
        if is_blank(body.query):
            raise RequestError(422, "the query is blank; send a text")
        vector = None
        if body.mode != "text":
            if model.needs_language and body.language is None:
                raise RequestError(
                    422, "this model requires the language of the question; send language"
                )
            text = model.question_prompt + body.query
            vectors, _ = await service.embed_texts(
                request, [text], prompt="", language=body.language
            )
            with mistakes_of_client():  # such as a language that a map does not know
                vector = model.map_vectors(vectors, language_code(body.language))[0]

        ranked = functools.partial(
            searcher.rank,
            body.query,
            vector,
            top=body.top,
            mode=body.mode,
            languages=body.languages,
            per_language=body.per_language,
            where=body.where,
        )

        def rank() -> Ranking:
            searcher.refresh()
            try:
                return ranked()
            except CheckpointError:
                # Compaction removes old versions, and this process may still use one of them.
                searcher.refresh(after=0)
                return ranked()

        ranking = await from_index(request, rank)
        return json_response(
            {
                "hits": list(map(hit_record, ranking.hits)),
                "languages": [share._asdict() for share in ranking.shares],
            }
        )

    @router.get("/index/info")
    async def info(request: Request) -> Response:
        """Return the contents of the index, and how its vectors were computed."""

        def described() -> dict[str, Any]:
            searcher.refresh()
            # A client has no use for the folder of the model.
            return index_info(searcher.index)._replace(model=service.model.name)._asdict()

        return json_response(await from_index(request, described))

    return router
