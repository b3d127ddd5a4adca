"""``interlingua.search`` and ``interlingua search``: passages of an index that answer questions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from interlingua.config import AtLeast, refuse_unread
from interlingua.config.options import (
    INPUT,
    MODEL,
    SEARCH,
    Names,
    Options,
    argument,
    function_of,
    listed,
    option,
)
from interlingua.config.registry import DEFAULT_MODEL
from interlingua.encoder.texts import checked_texts, is_blank
from interlingua.errors import ConfigError, DataError
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_index, check_inputs
from interlingua.verbs.parts.shared_options import STANDARD_INPUT, Model

if TYPE_CHECKING:
    from interlingua.retrieval.searcher import Ranking


@dataclass(frozen=True)
class SearchOptions(Options):
    """Options of ``search``."""

    folder: PathLike | Model = argument("Folder of an index.")
    questions: str | Sequence[str] = argument(
        "Questions in any language; - reads one question per line from standard input.",
        kind=list[str],
    )
    texts: Any = option(
        None,
        "Texts or a table in memory to search in place of an index; the first argument is then"
        " the model.",
        group=INPUT,
        is_positional=True,
        is_in_memory=True,
    )
    # How questions are embedded.
    language: str | None = option(
        None, "Language of the questions, in any code, if the model needs it.", group=INPUT
    )
    model: str | None = option(
        None, "Folder of the index's model, if it was moved.", group=MODEL, reads="model"
    )
    dtype: str = option(
        "float32", "Type to compute in: float32, bfloat16, float16 or int8.", group=MODEL
    )
    device: str | None = option(
        None, "Device: cpu, cuda, cuda:1; by default a GPU if there is one.", group=MODEL
    )
    # Selection of the results.
    top: Annotated[int, AtLeast(1)] = option(
        10, "Maximum number of passages to find.", group=SEARCH
    )
    mode: str = option(
        "vector",
        "Search by vector, by text (words, BM25), by hybrid (both, fused within each language),"
        " or by feedback (by vector; to search the other languages, the best passage also serves as"
        " a question).",
        group=SEARCH,
    )
    languages: Names | None = option(
        None,
        "Languages to search, separated by commas: de,en,th; all by default.",
        group=SEARCH,
        kind=str,
    )
    per_language: Annotated[int, AtLeast(1)] | None = option(
        None,
        "Number of passages of each language to list first; the best others follow.",
        group=SEARCH,
    )
    where: str | None = option(
        None,
        "SQL condition on the passages: \"year >= 2024 AND language = 'deu_Latn'\".",
        group=SEARCH,
    )
    exact: bool = option(
        False, "Compare with all vectors, even if the index is approximate.", group=SEARCH
    )


def rankings(options: SearchOptions) -> Iterator[tuple[str, Ranking]]:
    """Yield each question with its passages, as soon as they are found.

    Raises:
        ConfigError: a question is empty, or there is none.
        DataError: standard input contains no question; its empty lines are ignored.
    """
    _check_first(options)
    questions = _questions(options.questions)  # refuses an empty one before the model is loaded
    if options.texts is not None:
        yield from _rankings_in_memory(options, questions)
        return
    check_index(options.folder)
    check_inputs(options)
    from interlingua.retrieval.passage_index import PassageIndex
    from interlingua.retrieval.searcher import Searcher, load_index_model

    index = PassageIndex(options.folder)
    computing: Any = {"dtype": options.dtype, "device": options.device}
    searcher = Searcher(index, load_index_model(index, model=options.model, **computing))
    for question in questions:
        ranking = searcher.search(
            question,
            top=options.top,
            mode=cast(Any, options.mode),
            languages=listed(options.languages) or (),
            per_language=options.per_language,
            where=options.where,
            exact=options.exact,
            language=options.language,
        )
        yield question, ranking


def _check_first(options: SearchOptions) -> None:
    """Check that the first argument is an index, or a model if texts are passed.

    Raises:
        ConfigError: it is neither.
    """
    from interlingua.verbs.evaluate import check_encoder_named

    if options.texts is not None:
        # None means the default model.
        if options.folder is not None:
            check_encoder_named(options.folder, "search(model, question, texts)")
    elif not isinstance(options.folder, str | os.PathLike):
        raise ConfigError(
            "expected the folder of an index, or texts after the question; call"
            " interlingua.search(model, question, texts)"
        )


def _rankings_in_memory(
    options: SearchOptions, questions: Iterator[str]
) -> Iterator[tuple[str, Ranking]]:
    """Yield each question with the texts that are nearest.

    Raises:
        ConfigError: an option is for an index on disk.
    """
    from interlingua.encoder.encoder import load
    from interlingua.retrieval.memory_index import Index

    refuse_unread(options, "model", "where", "exact", reason="texts", when=True)
    model = options.folder
    if isinstance(model, str | os.PathLike | None):
        model = load(
            DEFAULT_MODEL if model is None else model,
            device=options.device or "auto",
            dtype=cast(Any, options.dtype),
        )
    else:
        refuse_unread(options, "device", "dtype", reason="a loaded model", when=True)
    index = Index(model, options.texts)
    for question in questions:
        ranking: Any = index.search(
            question,
            top=options.top,
            mode=cast(Any, options.mode),
            languages=options.languages,
            per_language=options.per_language,
            language=options.language,
        )
        yield question, ranking


def _questions(questions: str | Sequence[str]) -> Iterator[str]:
    """Yield the questions, checked at once, or the lines of standard input as they arrive."""
    if isinstance(questions, str):
        questions = [questions]
    questions = list(checked_texts(questions, "questions"))
    if questions == [STANDARD_INPUT]:
        return _typed_questions()
    if not questions or any(map(is_blank, questions)):
        raise ConfigError("the question is empty; pass a text")
    return iter(questions)


def _typed_questions() -> Iterator[str]:
    # Each question is answered before the next line is read, for use at a terminal.
    is_empty = True
    for line in sys.stdin:
        if not is_blank(question := line.strip()):
            is_empty = False
            yield question
    if is_empty:
        raise DataError("standard input contains no question; write one question per line")


def run_search(options: SearchOptions) -> Ranking | list[Ranking]:
    """Search an index, or texts in memory, for the passages that answer questions.

    Texts in memory are searched by ``interlingua.search(model, question, texts)``. For many
    questions at different times, ``interlingua.Index`` is faster; for an index on disk,
    ``interlingua.retrieval.searcher.Searcher`` is faster. Both keep the model in memory.

    Args:
        options: of the verb.

    Returns:
        A ranking: a list of hits, best first, with the ``shares`` of the languages. For several
        questions, a list with one ranking for each.

    Raises:
        ConfigError: a question is empty, there is no such index, or it is of another model.
        CheckpointError: the index or the model is damaged or missing.
    """
    found = [ranking for _, ranking in rankings(options)]
    is_one = isinstance(options.questions, str) and options.questions != STANDARD_INPUT
    return found[0] if is_one else found


search = function_of(SearchOptions, run_search, "search")
