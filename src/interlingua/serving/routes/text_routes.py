"""Routes on two small lists of sentences: ``/mine``, ``/align`` and ``/tokens``."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter
from jaxtyping import Float32
from numpy import ndarray
from pydantic import ConfigDict, Field, StrictFloat, StrictInt, StrictStr
from starlette.requests import Request
from starlette.responses import Response

from interlingua.alignment.align import Aligner, join_sentences
from interlingua.alignment.sentence_alignment import AlignConfig, Link
from interlingua.corpus.segments.sentence_splitting import split_text
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.texts import is_blank
from interlingua.mining import defaults
from interlingua.mining.checks import CheckPlan
from interlingua.mining.defaults import CHEAP, DEFAULT_CHECKS
from interlingua.mining.mine import MinedPairs, mine_pairs
from interlingua.mining.pair_cut import PairCut
from interlingua.mining.pair_search import PairSearch
from interlingua.mining.pipeline import text_side
from interlingua.serving.errors import RequestError, mistakes_of_client
from interlingua.serving.guards import late_request
from interlingua.serving.model import language_code
from interlingua.serving.routes.document import LanguageField, Prompt, Sentence, SentencesField
from interlingua.serving.routes.json_route import WHOLE_NUMBER, Body, StrictRoute, json_response
from interlingua.serving.routes.link_probabilities import (
    LinkCalibrations,
    LinkProbabilities,
    without_calibration,
)
from interlingua.serving.routes.token_matches import token_cosines, tokenized_pair
from interlingua.serving.service import Service, refuse_not_finite
from interlingua.storage.arrays import unit_rows

_CHARACTERS_PER_TOKEN = 8
"""Maximum number of characters of a text, for each token that a request may have; a longer text is
refused before it is split."""
MAX_SENTENCE = 50_000
"""Maximum characters of a sentence of split text; a model reads little of longer ones."""
MAX_TOKEN_TEXT = 4000
"""Maximum characters of a sentence for matches of tokens."""
TokenText = Annotated[StrictStr, Field(min_length=1, max_length=MAX_TOKEN_TEXT)]
TEXT_OR_SENTENCES = "A plain text, or a list of at least one sentence."


class PairOfTexts(Body):
    """Sentences of two languages, and how they are embedded."""

    model_config = ConfigDict(extra="forbid")

    prompt: Prompt | None = Field(
        None,
        description="Name of a prompt of the model, or a text that is added before every text.",
    )
    source_language: LanguageField | None = Field(
        None, description="Language code or name, for models that require it."
    )
    target_language: LanguageField | None = Field(
        None, description="Language code or name, for models that require it."
    )


class MineRequest(PairOfTexts):
    """The body of ``/mine``."""

    source: SentencesField
    target: SentencesField
    k: Annotated[StrictInt, Field(ge=1, le=64), WHOLE_NUMBER] = defaults.K
    margin: Literal["ratio", "distance", "absolute"] = defaults.DEFAULT_MARGIN
    retrieval: Literal["max", "intersection", "forward", "backward"] = defaults.RETRIEVAL
    threshold: StrictFloat | StrictInt | None = Field(
        None, description="Minimum score of a pair, on the scale of the margin."
    )


class AlignRequest(PairOfTexts):
    """The body of ``/align``: lists of sentences, or plain text, which is split into sentences."""

    source: Sentence | SentencesField = Field(description=TEXT_OR_SENTENCES)
    target: Sentence | SentencesField = Field(description=TEXT_OR_SENTENCES)
    max_sentences: Annotated[StrictInt, Field(ge=2, le=8), WHOLE_NUMBER] = Field(
        defaults.MAX_SENTENCES,
        description="Maximum number of sentences in a link, both sides together.",
    )


class TokensRequest(Body):
    """The body of ``/tokens``."""

    model_config = ConfigDict(extra="forbid")

    source: TokenText
    target: TokenText
    source_language: LanguageField | None = None
    target_language: LanguageField | None = None


def text_router(
    service: Service,
    documented: dict[int | str, dict[str, Any]],
    calibrations: LinkCalibrations | None = None,
) -> APIRouter:
    """Build the routes that work on sentences and documents.

    Args:
        service: embeds the texts.
        documented: replies other than 200, for the OpenAPI document.
        calibrations: convert the scores of links to probabilities; None = no probabilities.
    """
    router = APIRouter(route_class=StrictRoute, tags=["bitext"], responses=documented)

    @router.post("/mine")
    async def mine_pairs(request: Request, body: MineRequest) -> Response:
        """Find translations among two lists, best first; Artetxe and Schwenk (2019)."""
        _check_counts(service, body.source, body.target)
        embed = _embed_in_queue(service, request, body.prompt)
        pairs = await service.in_list_thread(lambda: _mine(body, embed))
        return json_response({"pairs": [pair._asdict() for pair in pairs]})

    @router.post("/align")
    async def align_documents(request: Request, body: AlignRequest) -> Response:
        """Link the sentences of two documents, with probabilities (Thompson and Koehn 2019)."""
        # A list is counted at once; a text is split in the thread, as it may be long.
        _check_lengths(service, body.source, body.target)
        _check_counts(
            service, *[side for side in (body.source, body.target) if isinstance(side, list)]
        )
        languages = _codes(body.source_language, body.target_language)
        encode = _rows_of_length_1(_embed_in_queue(service, request, body.prompt))

        def align() -> dict[str, Any]:
            source = _sentences(body.source, languages[0])
            target = _sentences(body.target, languages[1])
            _check_counts(service, source, target)
            links, probabilities = _align(body, source, target, encode, calibrations)
            return {
                "links": _described(links, source, target, probabilities),
                "source": source,
                "target": target,
                "source_language": languages[0],
                "target_language": languages[1],
                "prior": probabilities.prior,
                "no_probabilities": probabilities.reason,
            }

        return json_response(await service.in_list_thread(align))

    @router.post("/tokens")
    async def tokens(request: Request, body: TokensRequest) -> Response:
        """Compute cosines between the tokens of two sentences."""
        texts = body.source, body.target
        truncate = service.settings.auto_truncate
        codes = _codes(body.source_language, body.target_language)
        with mistakes_of_client():
            sentences = await asyncio.to_thread(
                tokenized_pair, service.model, texts, codes, auto_truncate=truncate
            )
        found = await service.with_encoder(
            request, sentences.tokenized, lambda: token_cosines(service.model, sentences)
        )
        refuse_not_finite(found.numpy())
        source = [span._asdict() for span in sentences.spans[0]]
        target = [span._asdict() for span in sentences.spans[1]]
        return json_response({"source": source, "target": target, "cosines": found.numpy()})

    return router


def _mine(body: MineRequest, embed: Callable[..., Float32[ndarray, "n d"]]) -> MinedPairs:
    """Mine in memory as ``interlingua.mine`` does, with the same checks."""
    sides = []
    for name, texts, code in (
        ("source", body.source, body.source_language),
        ("target", body.target, body.target_language),
    ):
        sides.append(text_side(texts, name, code, functools.partial(embed, language=code)))
    cut = PairCut(threshold=body.threshold)
    checks = CheckPlan.parse(",".join(CHEAP), DEFAULT_CHECKS)
    config = PairSearch(k=body.k, margin=body.margin, retrieval=body.retrieval)
    return mine_pairs(sides[0], sides[1], config, cut, checks, model="served")


def _align(
    body: AlignRequest,
    source: list[str],
    target: list[str],
    encode: Callable[..., Float32[ndarray, "n d"]],
    calibrations: LinkCalibrations | None,
) -> tuple[tuple[Link, ...], LinkProbabilities]:
    """Align as ``interlingua.align`` does, and return the links with their probabilities."""
    languages = body.source_language, body.target_language
    config = AlignConfig(max_sentences=body.max_sentences)
    aligner = Aligner(encode, config, source_language=languages[0], target_language=languages[1])
    links = aligner.align(source, target).links
    pairs = [_texts(link, source, target) for link in links if link.source and link.target]
    if calibrations is None:
        return links, without_calibration(pairs)
    return links, calibrations.probabilities(pairs, languages, prompt=body.prompt, encode=encode)


def _texts(link: Link, source: list[str], target: list[str]) -> tuple[str, str]:
    """Return both sides of a link, as they are embedded."""
    return join_sentences(source, link.source), join_sentences(target, link.target)


def _described(
    links: tuple[Link, ...], source: list[str], target: list[str], probabilities: LinkProbabilities
) -> list[dict[str, Any]]:
    """Return links in the format for clients; an unlinked sentence has no probability."""
    found = []
    values = iter(probabilities.values)
    for link in links:
        one, other = _texts(link, source, target)
        is_pair = bool(link.source and link.target)
        found.append(
            {
                "source": list(link.source),
                "target": list(link.target),
                "source_text": one,
                "target_text": other,
                "cost": link.cost,
                "probability": next(values) if is_pair else None,
            }
        )
    return found


def _sentences(given: str | list[str], code: str | None) -> list[str]:
    if isinstance(given, list):
        return given
    sentences = split_text(given.splitlines(), code or "")
    if not sentences:
        raise RequestError(422, "a side contains no sentence; send a text")
    longest = max(map(len, sentences))
    if longest > MAX_SENTENCE:
        raise RequestError(
            422,
            f"a sentence has {longest:,} characters; send at most {MAX_SENTENCE:,}, or a list of"
            " sentences",
        )
    return sentences


def _codes(source: str | None, target: str | None) -> tuple[str | None, str | None]:
    """Return the codes of both languages."""
    with mistakes_of_client():
        return language_code(source), language_code(target)


def _check_counts(service: Service, *sides: list[str]) -> None:
    for side in sides:
        service.check_count(len(side))


def _check_lengths(service: Service, *sides: str | list[str]) -> None:
    most = _CHARACTERS_PER_TOKEN * service.settings.max_request_tokens
    for side in sides:
        if isinstance(side, str) and len(side) > most:
            raise RequestError(
                413, f"a text has {len(side):,} characters; send at most {most:,} in a request"
            )


def _embed_in_queue(
    service: Service, request: Request, prompt: str | None
) -> Callable[..., Float32[ndarray, "n d"]]:
    """Return a function that embeds for mining and alignment; blank texts get the zero vector.

    The texts wait in the common queue, and so does the calling thread.
    """
    loop = asyncio.get_running_loop()
    seconds = service.settings.request_seconds
    end = time.monotonic() + seconds

    def embed(texts: list[str], *, language: str | None = None) -> Float32[ndarray, "n d"]:
        visible = [row for row, text in enumerate(texts) if not is_blank(text)]
        found = np.zeros((len(texts), service.model.dim), dtype=np.float32)
        coroutine = service.embed_texts(
            request,
            [texts[row] for row in visible],
            prompt=prompt,
            language=language,
            counted=False,
        )
        waiting = asyncio.run_coroutine_threadsafe(coroutine, loop)
        # When the time of the request is over, no client waits for this thread any more.
        try:
            vectors, _ = waiting.result(max(0.0, end - time.monotonic()))
            if visible:
                found[visible] = vectors
        except TimeoutError:
            waiting.cancel()
            raise late_request(seconds) from None
        return found

    return embed


def _rows_of_length_1(
    embed: Callable[..., Float32[ndarray, "n d"]],
) -> Callable[..., Float32[ndarray, "n d"]]:
    """Return a function that embeds as an ``Aligner`` expects, each text once.

    Truncation of long texts is not reported to a client.
    """
    known: dict[tuple[str | None, str], Float32[ndarray, " d"]] = {}

    def encode(
        texts: list[str], *, language: str | None = None, report: EncodeReport | None = None
    ) -> Float32[ndarray, "n d"]:
        missing = [text for text in dict.fromkeys(texts) if (language, text) not in known]
        if missing:
            vectors = unit_rows(embed(missing, language=language))
            known.update(zip([(language, text) for text in missing], vectors, strict=True))
        return np.stack([known[language, text] for text in texts])

    return encode
