"""An index in memory of the passages in a list or a table, with the same search as on disk.

``Index`` embeds the passages and keeps their vectors; ``Ranker`` ranks them by exact cosines, as it
does for an index on disk. Words and SQL conditions need an index on disk.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import resolve_language
from interlingua.config.options import checked_call, is_frame, listed
from interlingua.config.registry import DEFAULT_MODEL
from interlingua.corpus.frames import frame_records
from interlingua.encoder.encoder import Encoder, load
from interlingua.encoder.texts import checked_texts, is_blank
from interlingua.errors import ConfigError, DataError, count_of, with_article
from interlingua.retrieval.chunks import OVERLAP, TOKENS, ChunkSettings
from interlingua.retrieval.indexed_model import IndexedModel
from interlingua.retrieval.passage_files import Passage, PassageColumns, passage_of
from interlingua.retrieval.ranking import Hit
from interlingua.retrieval.searcher import Ranker, Ranking
from interlingua.retrieval.topk.exact import exact_topk
from interlingua.storage.files import PathLike

MemoryMode = Literal["vector", "feedback"]


class MemoryPassages:
    """Passages with their vectors, in the place of a ``PassageIndex``.

    Args:
        passages: in any order.
        vectors: one of length 1 for each.
    """

    def __init__(self, passages: Sequence[Passage], vectors: Float32[ndarray, "n d"]) -> None:
        # Equal scores are in the order of the ids, as in an index on disk.
        order = sorted(range(len(passages)), key=lambda row: passages[row].id)
        self.passages = [passages[row] for row in order]
        self._vectors = vectors[order]
        self._languages = np.array([passage.language for passage in self.passages])
        self._row_of = {passage.id: row for row, passage in enumerate(self.passages)}
        if len(self._row_of) < len(passages):
            twice = Counter(passage.id for passage in passages).most_common(1)[0][0]
            raise DataError(f"the id {twice!r} occurs twice; use unique ids")

    def count(self) -> int:
        """Return the number of passages."""
        return len(self.passages)

    def languages(self) -> dict[str, int]:
        """Return the number of passages by language, largest first."""
        return dict(Counter(passage.language for passage in self.passages).most_common())

    def vectors(self, ids: Sequence[str]) -> Float32[ndarray, "n d"]:
        """Return the vectors of passages, in the order of their ids."""
        return self._vectors[[self._row_of[name] for name in ids]]

    def nearest(
        self,
        vector: Float32[ndarray, " d"],
        top: int,
        *,
        languages: Sequence[str] = (),
        where: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """Return the passages of largest cosine, by exact search.

        Args:
            vector: of the question, of length 1.
            top: maximum number of hits.
            languages: codes to search in; () = all.
            where: must be None.
            exact: no effect, as each search is exact.

        Raises:
            ConfigError: there is a condition.
        """
        if where is not None:
            raise _needs_disk("a condition")
        rows = np.arange(len(self.passages))
        if languages:
            rows = np.flatnonzero(np.isin(self._languages, list(languages)))
        if not len(rows):
            return []
        candidates = self._vectors if len(rows) == len(self.passages) else self._vectors[rows]
        found = exact_topk(vector[None], candidates, k=min(top, len(rows)))
        scores = found.similarities[0].tolist()
        places = rows[found.indices[0].numpy()].tolist()
        return [_hit(self.passages[row], score) for row, score in zip(places, scores, strict=True)]

    def matching(
        self, text: str, top: int, *, languages: Sequence[str] = (), where: str | None = None
    ) -> list[Hit]:
        """Refuse a search by words.

        Raises:
            ConfigError: always.
        """
        raise _needs_disk("a search by words")

    def matching_with_cosines(
        self,
        text: str,
        vector: Float32[ndarray, " d"],
        top: int,
        *,
        languages: Sequence[str] = (),
        where: str | None = None,
    ) -> tuple[list[Hit], dict[str, float]]:
        """Refuse a search by words.

        Raises:
            ConfigError: always.
        """
        raise _needs_disk("a search by words")


class Index:
    """Passages in memory that can be searched.

    The hits are the same as those of an index on disk: a passage that is longer than a chunk is
    found by its parts, and copies of a text are one hit.

    Args:
        model: an encoder, a model's folder or name; None = the default model.
        texts: texts, or a table in memory with the column text and maybe id, title and language;
            its other columns are metadata of the hits. Without an id column, the ids are the
            numbers of the rows, from 0.
        language: of passages that name none, in any code, if the model needs it.
        text_column: column of the texts; text, contents or sentence by default.
        title_column: column of the titles; title by default.
        id_column: column of the ids; id, _id or docid by default.
        language_column: column of the languages; language or lang by default.
        prompt: for passages, a prompt's name, or the text to put in front; the model's own by
            default.
        question_prompt: for questions, a name or a text in the same way.
        chunk_tokens: maximum number of tokens in a chunk; longer passages are cut at the ends of
            sentences; 0 = never.
        chunk_overlap: maximum number of tokens that a chunk shares with the one before it.

    Raises:
        ConfigError: an option is unknown or out of range, or the model is not an encoder
            of this package.
        DataError: a text is missing or blank, or an id occurs twice.
    """

    @checked_call
    def __init__(
        self,
        model: Encoder | PathLike | None,
        texts: Any,
        *,
        language: str | None = None,
        text_column: str | None = None,
        title_column: str | None = None,
        id_column: str | None = None,
        language_column: str | None = None,
        prompt: str | None = None,
        question_prompt: str | None = None,
        chunk_tokens: int = TOKENS,
        chunk_overlap: int = OVERLAP,
    ) -> None:
        columns = PassageColumns(text_column, title_column, id_column, language_column)
        code = resolve_language(language).code if language is not None else ""
        # Errors in the texts are reported before a model is read.
        passages = list(_passages(texts, code, columns))
        encoder = _encoder(model)
        embedder = IndexedModel(
            encoder,
            "",
            prompt=prompt,
            question_prompt=question_prompt,
            chunks=ChunkSettings(chunk_tokens, chunk_overlap),
            dtype=encoder.compute_dtype,
        )
        chunks = list(embedder.chunked(passages))
        self._passages = MemoryPassages(chunks, embedder.embed_passages(chunks))
        self._ranker = Ranker(self._passages, embedder)

    @checked_call
    def search(
        self,
        question: str | Iterable[str],
        *,
        top: int = 10,
        mode: MemoryMode = "vector",
        languages: str | Iterable[str] | None = None,
        per_language: int | None = None,
        language: str | None = None,
    ) -> Ranking | list[Ranking]:
        """Return the passages that best answer a question, in any language.

        Args:
            question: one question, or several.
            top: maximum number of hits.
            mode: vector, or feedback, see ``interlingua search``.
            languages: search only in these: names separated by commas, or a list.
            per_language: number of passages of each language that come first; the other best ones
                follow.
            language: of the question, if the model needs it.

        Returns:
            A ranking, best hits first; for several questions, a list with one ranking for each.

        Raises:
            ConfigError: a question is blank, or an option is unknown or out of range.
            DataError: there is no passage in one of the languages.
        """
        if isinstance(question, str):
            if is_blank(question):
                raise ConfigError("the question is empty; pass a text")
            return self._ranker.search(
                question,
                top=top,
                mode=mode,
                languages=listed(languages) or (),
                per_language=per_language,
                language=language,
            )
        rankings: list[Any] = [
            self.search(
                one,
                top=top,
                mode=mode,
                languages=languages,
                per_language=per_language,
                language=language,
            )
            for one in checked_texts(question, "questions")
        ]
        return rankings

    def __len__(self) -> int:
        """Return the number of passages; long ones are cut into chunks."""
        return self._passages.count()

    def __repr__(self) -> str:
        """Return one line."""
        languages = [code for code in self._passages.languages() if code]
        of_languages = f" in {count_of(len(languages), 'languages')}" if languages else ""
        dim = self._ranker.model.encoder.dim
        return f"<Index of {count_of(len(self), 'passages')}{of_languages}, {dim} dimensions>"


def _needs_disk(what: str) -> ConfigError:
    return ConfigError(
        f"an index in memory only compares vectors, and {what} requires an index on disk; create"
        " one: interlingua.index('build', [FILES], output=FOLDER)"
    )


def _encoder(model: Any) -> Encoder:
    if model is None:
        model = DEFAULT_MODEL
    if isinstance(model, str | os.PathLike):
        return load(model)
    if not isinstance(model, Encoder):
        raise ConfigError(
            "the first argument: expected an encoder (interlingua.load) or a model's folder,"
            f" found {with_article(type(model).__name__)}; call interlingua.Index(model, texts)"
        )
    return model


def _passages(texts: Any, language: str, columns: PassageColumns) -> Iterator[Passage]:
    """Yield the passages of a table, of records or of texts.

    Raises:
        DataError: a row holds no text.
    """
    if is_frame(texts):
        records: Iterable[Any] = frame_records(texts)
    elif isinstance(texts, Sequence) and texts and isinstance(texts[0], Mapping):
        records = texts
    else:
        if columns.named():
            raise ConfigError(
                f"the column {columns.named()[0]!r} requires a table, found texts; remove it"
            )
        records = ({"text": text} for text in checked_texts(texts))
    for row, record in enumerate(records):
        try:
            passage = passage_of(record, "", row, language, columns)
        except DataError as error:
            raise DataError(f"texts: row {row:,} (counted from 0): {error}") from None
        # A passage without an id of its own gets its row number as its id.
        yield passage._replace(id=passage.id.removeprefix(":"))


def _hit(passage: Passage, score: float) -> Hit:
    facts = passage._asdict()
    del facts["file"]
    return Hit(score=score, **facts)
