"""Routes that change the served index: ``/index/add`` and ``/index/delete``.

They exist if the server was started with ``--admin``, which needs a key. Passages are embedded in
the common queue, and a change is seen by the next search.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from jaxtyping import Float32
from numpy import ndarray
from pydantic import ConfigDict, Field, StrictStr
from starlette.requests import Request
from starlette.responses import Response

from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.passage_files import ID_KEYS, Passage, PassageColumns, passage_of
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import Searcher
from interlingua.serving.errors import RequestError
from interlingua.serving.model import language_code
from interlingua.serving.routes.document import LanguageField
from interlingua.serving.routes.json_route import Body, StrictRoute, json_response
from interlingua.serving.routes.search_routes import MAX_CONDITION, from_index
from interlingua.serving.service import Service

REQUEST = "passages"
"""Placeholder for the file of a passage without an id."""
ColumnName = Annotated[StrictStr, Field(min_length=1)]


class AddRequest(Body):
    """The body of ``/index/add``; it names columns as the options of ``index add`` do."""

    model_config = ConfigDict(extra="forbid")

    passages: Annotated[list[dict[str, Any]], Field(min_length=1, fail_fast=True)] = Field(
        description=(
            "Passages with an id and a text; an existing passage with the same id is"
            " replaced. Fields other than id, text, title and language are stored as"
            " metadata."
        )
    )
    language: LanguageField | None = Field(
        None, description="Language of the passages without a language."
    )
    text_column: ColumnName | None = Field(None, description="Name of the field of the texts.")
    title_column: ColumnName | None = Field(None, description="Name of the field of the titles.")
    id_column: ColumnName | None = Field(None, description="Name of the field of the ids.")
    language_column: ColumnName | None = Field(
        None, description="Name of the field of the languages."
    )


class DeleteRequest(Body):
    """The body of ``/index/delete``."""

    model_config = ConfigDict(extra="forbid")

    ids: list[StrictStr] = Field([], description="Ids of passages; unknown ids are ignored.")
    where: Annotated[StrictStr, Field(min_length=1, max_length=MAX_CONDITION)] | None = Field(
        None, description="SQL condition on columns and metadata, as in /search."
    )


def index_router(
    service: Service, searcher: Searcher, documented: dict[int | str, dict[str, Any]]
) -> APIRouter:
    """Return the routes.

    Args:
        service: embeds the passages.
        searcher: the index, which reads the changes.
        documented: replies other than 200, for the OpenAPI document.
    """
    router = APIRouter(
        route_class=StrictRoute, tags=["index"], responses=documented, include_in_schema=False
    )
    one_writer = asyncio.Lock()
    folder = searcher.index.folder

    @router.post("/index/add")
    async def add(request: Request, body: AddRequest) -> Response:
        """Add passages, and replace those with the same ids."""
        passages = _passages(body)
        if searcher.model.needs_language:
            _require_languages(passages)
        loop = asyncio.get_running_loop()

        def embed(wanted: Sequence[Passage]) -> Float32[ndarray, "n d"]:
            coroutine = _embedded(service, searcher, request, wanted)
            return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

        def write() -> dict[str, int]:
            index = PassageIndex(folder)
            with index.writing():
                added = index.add(searcher.model.chunked(passages), embed, checks_all=False)
                index.finish()
            searcher.refresh(after=0)
            # A passage that is split counts as its chunks, as it does in the index.
            counts = {"added": added.added, "replaced": added.replaced, "deleted": added.deleted}
            return {**counts, "unchanged": added.unchanged, "passages": index.count()}

        async with one_writer:
            return json_response(await from_index(request, write))

    @router.post("/index/delete")
    async def delete(request: Request, body: DeleteRequest) -> Response:
        """Remove passages by their ids, by a condition, or by both."""
        if not body.ids and body.where is None:
            raise RequestError(422, "nothing was deleted; send ids or a condition")

        def write() -> dict[str, int]:
            index = PassageIndex(folder)
            with index.writing():
                deleted = index.delete(body.ids, body.where)
                index.finish()
            searcher.refresh(after=0)
            return {"deleted": deleted, "passages": index.count()}

        async with one_writer:
            return json_response(await from_index(request, write))

    return router


def _passages(body: AddRequest) -> list[Passage]:
    """Return the passages of a request.

    Raises:
        RequestError: a passage has no id or text, or a field of a wrong type; its row is named.
    """
    columns = PassageColumns(
        body.text_column, body.title_column, body.id_column, body.language_column
    )
    passages = []
    for row, record in enumerate(body.passages):
        try:
            code = language_code(body.language) or ""
            passage = passage_of(record, REQUEST, row, code, columns)
        except (ConfigError, DataError) as error:
            raise RequestError(422, f"passages: row {row}: {error}") from error
        # A passage without an id of its own would belong to a file.
        if passage.file or not passage.id:
            called = columns.id or ", ".join(ID_KEYS)
            raise RequestError(
                422, f"passages: row {row}: the id is missing; expected a field {called}"
            )
        passages.append(passage)
    return passages


def _require_languages(passages: Sequence[Passage]) -> None:
    """Refuse passages without a language, which a model needs."""
    for passage in passages:
        if not passage.language:
            raise RequestError(
                422,
                f"{passage.id}: the language is missing, which this model requires; send language",
            )


async def _embedded(
    service: Service, searcher: Searcher, request: Request, passages: Sequence[Passage]
) -> Float32[ndarray, "n d"]:
    """Return the vectors of passages, as ``IndexedModel.embed_passages`` makes them."""
    model = searcher.model
    vectors = np.empty((len(passages), model.encoder.dim), dtype=np.float32)
    for rows, texts, language in model.by_language(passages):
        prompted = [model.passage_prompt + text for text in texts]
        found, _ = await service.embed_texts(
            request, prompted, prompt="", language=language, counted=False
        )
        vectors[rows] = model.map_vectors(found, language)
    return vectors
