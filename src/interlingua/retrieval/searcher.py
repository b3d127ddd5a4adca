"""Construction of an index from files, and search in it."""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import resolve_language
from interlingua.config.registry import check_choice
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.language_map_files import MAP_FILE, read_map
from interlingua.errors import ConfigError, DataError
from interlingua.report.rows import RowList
from interlingua.retrieval.chunks import DEFAULT_CHUNKS, ChunkSettings
from interlingua.retrieval.feedback import Searchable, rankings_with_feedback
from interlingua.retrieval.index_files import (
    IndexFile,
    check_index_files,
    list_index_files,
    read_files,
)
from interlingua.retrieval.indexed_model import IndexedModel
from interlingua.retrieval.passage_files import USUAL_COLUMNS, Passage, PassageColumns
from interlingua.retrieval.passage_index import (
    Added,
    PassageIndex,
    read_index_settings,
    require_same,
)
from interlingua.retrieval.ranking import (
    Hit,
    LanguageShare,
    first_of_each_language,
    followed,
    fused,
    hit_language_shares,
    merged,
    without_copies,
)
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike

SearchMode = Literal["vector", "text", "hybrid", "feedback"]
MODES: tuple[SearchMode, ...] = ("vector", "text", "hybrid", "feedback")
FUSED_DEPTH = 5
"""Number of hits that fusion reads from each ranking, as a multiple of the hits requested."""
LEAST_FUSED = 100
"""Minimum number of hits that fusion reads from each ranking; the lowest scores of these hits
determine the scale of the normalized scores."""
MOST_HITS = 10_000
"""Maximum number of hits of a search."""
MOST_FACTOR = 64
"""Maximum ratio of hits read to hits requested; more hits are read if some are copies of texts."""
REFRESH_SECONDS = 0.5
"""Seconds between two checks whether another process changed the index."""


class Ranking(RowList[Hit]):
    """The hits of a search, best first.

    Args:
        hits: best first.
        shares: how much of the ranking is in each language, next to its share of the passages
            searched.
    """

    columns_if_empty = Hit._fields

    def __init__(self, hits: Iterable[Hit], shares: list[LanguageShare]) -> None:
        super().__init__(hits)
        self.shares = shares

    @property
    def hits(self) -> list[Hit]:
        """The hits, best first: the ranking itself."""
        return self


def build_index(
    model: str,
    files: Sequence[PathLike],
    folder: PathLike,
    *,
    prompt: str | None = None,
    question_prompt: str | None = None,
    language_map: PathLike | None = None,
    language: str | None = None,
    approximate: bool = False,
    chunks: ChunkSettings = DEFAULT_CHUNKS,
    documents: bool = False,
    columns: PassageColumns = USUAL_COLUMNS,
    dtype: Dtype = "float32",
    device: str | None = None,
    progress: Progress = SILENT,
) -> Added:
    """Build an index of the passages in files, or resume an unfinished one.

    Args:
        model: a model directory, a training run or ``hf:owner/name``.
        files: see ``read_passages``. All are read before the first passage is embedded.
        folder: of the index.
        prompt: for passages, a prompt's name or a text; by default the model's own.
        question_prompt: for questions, a name or a text in the same way.
        language_map: folder that ``interlingua debias --vectors`` wrote, or its file; applied to
            all vectors.
        language: any code, for passages that name none; by default the one in a file's name.
        approximate: make an index of vectors too, see ``PassageIndex.finish``.
        chunks: sizes of the chunks into which long passages are cut.
        documents: make one passage of a text file, instead of one passage per line.
        columns: names of the columns of tables and Parquet, and of the keys of JSON.
        dtype: to compute in.
        device: cpu, cuda, cuda:1.
        progress: counts the passages that are committed.

    Raises:
        ConfigError: the folder holds other files, or an index of another model, prompt or map.
        CheckpointError: there is no such model or map.
        DataError: a file can't be read or has no passage, or an id occurs twice.
    """
    named = list_index_files(files, folder)
    map_read = None if language_map is None else read_map(language_map)
    encoder = Encoder.load(model, device=device)
    embedder = IndexedModel(
        encoder,
        _absolute(model),
        prompt=prompt,
        question_prompt=question_prompt,
        language_map=map_read,
        chunks=chunks,
        dtype=dtype,
    )
    check_index_files(named, language=language, documents=documents, columns=columns)
    index = PassageIndex.create(folder, embedder.settings)
    with index.writing():
        if language_map is not None:
            path = Path(language_map)
            shutil.copyfile(path / MAP_FILE if path.is_dir() else path, index.folder / MAP_FILE)
        passages = read_files(named, language=language, documents=documents, columns=columns)
        added = _add(index, named, passages, embedder, progress)
        index.finish(approximate=approximate)
    return added


def add_to_index(
    folder: PathLike,
    files: Sequence[PathLike],
    *,
    language: str | None = None,
    documents: bool = False,
    columns: PassageColumns = USUAL_COLUMNS,
    dtype: Dtype = "float32",
    device: str | None = None,
    progress: Progress = SILENT,
) -> Added:
    """Add the passages of files to an index; see ``build_index``.

    A passage with the same id is replaced. A file that is already in the index is replaced as a
    whole: passages that the file no longer contains are deleted from the index.
    """
    index = PassageIndex(folder)
    named = list_index_files(files, folder)
    embedder = load_index_model(index, dtype=dtype, device=device)
    check_index_files(named, language=language, documents=documents, columns=columns)
    with index.writing():
        passages = read_files(named, language=language, documents=documents, columns=columns)
        added = _add(index, named, passages, embedder, progress)
        index.finish()
    return added


def _add(
    index: PassageIndex,
    files: Sequence[IndexFile],
    passages: Iterable[Passage],
    embedder: IndexedModel,
    progress: Progress,
) -> Added:
    names = [file.name for file in files]
    passages = embedder.chunked(passages)
    progress.start(None, "passages", "indexing")  # the number of passages is not known
    return index.add(passages, embedder.embed_passages, files=names, progress=progress)


def delete_from_index(folder: PathLike, ids: Sequence[str] = (), where: str | None = None) -> int:
    """Remove passages from an index and return their number; see ``PassageIndex.delete``."""
    index = PassageIndex(folder)
    with index.writing():
        deleted = index.delete(ids, where)
        index.finish()
    return deleted


def load_index_model(
    index: PassageIndex,
    *,
    model: str | None = None,
    dtype: Dtype = "float32",
    device: str | None = None,
) -> IndexedModel:
    """Load the model that an index was built with.

    Args:
        index: the index.
        model: current folder or name of the model; by default the one at build time.
        dtype: to compute in.
        device: cpu, cuda, cuda:1.

    Raises:
        ConfigError: it is another model.
        CheckpointError: it no longer exists.
    """
    path = model or index.settings.model
    return model_for(index.folder, Encoder.load(path, device=device), path, dtype=dtype)


def model_for(
    folder: PathLike, encoder: Encoder, path: str, *, dtype: Dtype = "float32"
) -> IndexedModel:
    """Return an encoder with the prompts and the map of an index.

    Args:
        folder: of the index.
        encoder: the encoder that the index was built with.
        path: where it was read from.
        dtype: to compute in.

    Raises:
        ConfigError: the index was built with another encoder.
    """
    settings = read_index_settings(folder)
    embedder = IndexedModel(
        encoder,
        path,
        prompt=settings.passage_prompt,
        question_prompt=settings.question_prompt,
        language_map=read_map(folder) if settings.map_digest else None,
        chunks=ChunkSettings(settings.chunk_tokens, settings.chunk_overlap),
        dtype=dtype,
    )
    require_same(folder, settings, embedder.settings)
    return embedder


@dataclass(frozen=True, slots=True)
class _Query:
    """The question of a search and its scope; the attributes are as in ``Ranker.rank``."""

    index: Searchable
    question: str
    vector: Float32[ndarray, " d"] | None
    languages: list[str]
    """Languages that are searched."""
    is_restricted: bool
    """True if the index has other languages too."""
    where: str | None
    exact: bool

    def ranking(self, mode: str, top: int, per_language: int | None = None) -> list[Hit]:
        """Return the best hits, at most ``per_language`` of each language."""
        if mode != "hybrid":
            return self._of_one_kind(mode, top, per_language)
        depth = min(max(FUSED_DEPTH * top, LEAST_FUSED), MOST_HITS)
        if per_language is None:
            return self._fused(depth)[:top]
        # Words and vectors may find different passages of a language, so their union could contain
        # twice as many passages of it.
        both = self._fused(depth, FUSED_DEPTH * per_language)
        return first_of_each_language(both, per_language)[:top]

    def unique_ranking(self, mode: str, top: int, per_language: int | None = None) -> list[Hit]:
        """Rank as ``ranking`` does, but keep one copy of each text: copies have equal scores."""
        factor = 1
        while True:
            most = min(factor * top, MOST_HITS)
            share = None if per_language is None else min(factor * per_language, MOST_HITS)
            found = self.ranking(mode, most, share)
            hits = without_copies(found)
            has_copies = len(hits) < len(found)
            if per_language is not None:
                hits = first_of_each_language(hits, per_language)
            # Copies took some places, so more hits are read, unless the ranking has no more hits.
            is_complete = len(hits) >= top or (per_language is None and len(found) < most)
            if not has_copies or is_complete or factor >= MOST_FACTOR:
                return hits[:top]
            factor *= 4

    def _of_one_kind(self, kind: str, top: int, per_language: int | None = None) -> list[Hit]:
        most = top if per_language is None else min(per_language, top)
        if kind == "feedback" and self.vector is not None:
            given = (self.index, self.vector, most, self.languages)
            return merged(rankings_with_feedback(*given, where=self.where, exact=self.exact), top)
        if per_language is None:
            return self._nearest(kind, top, self.languages if self.is_restricted else ())
        return merged([self._nearest(kind, most, [code]) for code in self.languages], top)

    def _fused(self, depth: int, per_language: int | None = None) -> list[Hit]:
        """Fuse the rankings by vectors and by words.

        Each of these two rankings has at most ``per_language`` hits of each language.
        """
        nearest = self._of_one_kind("vector", depth, per_language)
        cosines = {hit.id: hit.score for hit in nearest}
        groups: list[Sequence[str]] = [self.languages if self.is_restricted else ()]
        most = depth
        if per_language is not None:
            groups = [[code] for code in self.languages]
            most = min(per_language, depth)
        rankings = []
        for codes in groups:
            hits, theirs = self.index.matching_with_cosines(
                self.question, cast(Any, self.vector), most, languages=codes, where=self.where
            )
            rankings.append(hits)
            # A cosine that the scan computed takes precedence over one that is computed again.
            cosines = theirs | cosines
        return fused(nearest, merged(rankings, depth), cosines)

    def _nearest(self, kind: str, most: int, languages: Sequence[str]) -> list[Hit]:
        if kind == "text" or self.vector is None:
            return self.index.matching(self.question, most, languages=languages, where=self.where)
        return self.index.nearest(
            self.vector, most, languages=languages, where=self.where, exact=self.exact
        )


class Ranker:
    """Passages with the model of their vectors.

    Args:
        index: the passages, on disk or in memory.
        model: the model that embedded them.
    """

    index: Searchable

    def __init__(self, index: Searchable, model: IndexedModel) -> None:
        self.index = index
        self.model = model
        self.languages = index.languages()
        """Number of passages of every language."""

    def search(
        self,
        question: str,
        *,
        top: int = 10,
        mode: SearchMode = "vector",
        languages: Sequence[str] = (),
        per_language: int | None = None,
        where: str | None = None,
        exact: bool = False,
        language: str | None = None,
    ) -> Ranking:
        """Return the passages that best answer a question; see ``rank``.

        Args:
            question: in any language.
            top: maximum number of hits.
            mode: of the comparison.
            languages: codes of the languages to search in; () = all.
            per_language: number of hits of each language that come first.
            where: a condition in SQL.
            exact: see ``PassageIndex.nearest``.
            language: of the question, if the model needs it.

        Raises:
            ConfigError: the model needs the language, or see ``rank``.
            DataError: see ``rank``.
        """
        vector = None if mode == "text" else self.model.embed_question(question, language)
        options: Any = {"mode": mode, "languages": languages, "per_language": per_language}
        return self.rank(question, vector, top=top, where=where, exact=exact, **options)

    def rank(
        self,
        question: str,
        vector: Float32[ndarray, " d"] | None,
        *,
        top: int = 10,
        mode: SearchMode = "vector",
        languages: Sequence[str] = (),
        per_language: int | None = None,
        where: str | None = None,
        exact: bool = False,
    ) -> Ranking:
        """Return the passages that best answer a question, from the question's vector.

        Args:
            question: its words are read by the modes text and hybrid.
            vector: of length 1; None is for the mode text.
            top: maximum number of hits.
            mode: of the comparison: by vectors, by the words of the text (BM25), by both (see
                ``fused``), or by vectors with feedback (see ``rankings_with_feedback``).
            languages: codes of the languages to search in; () = all.
            per_language: number of best hits of each language that come first, so that no language
                fills the ranking; the other hits follow, up to ``top``, in the order that they have
                without this option.
            where: a condition in SQL, such as ``year = 2024``, see ``with_metadata``.
            exact: see ``PassageIndex.nearest``.

        Raises:
            ConfigError: the mode is unknown, a number is out of range, or the condition is not
                valid.
            DataError: the index has no passage in one of the languages.
        """
        check_choice("mode", mode, MODES)
        for name, number in (("top", top), ("per_language", per_language)):
            if number is not None and not 1 <= number <= MOST_HITS:
                raise ConfigError(
                    f"{name}: expected a number from 1 to {MOST_HITS}, found {number}"
                )
        if vector is None and mode != "text":
            raise ConfigError(
                f"mode {mode} requires the vector of the question; pass the vector, or use the"
                " mode text"
            )
        searched = self._searched(languages)
        query = _Query(self.index, question, vector, list(searched), bool(languages), where, exact)
        hits = query.unique_ranking(mode, top, per_language)
        if per_language is not None and len(hits) < top:
            # After the best passages of every language, feedback has nothing to add: only the
            # question ranks the rest.
            rest = query.unique_ranking("vector" if mode == "feedback" else mode, top)
            hits = followed(hits, rest, top)
        return Ranking(hits, hit_language_shares(hits, searched))

    def _searched(self, languages: Sequence[str]) -> dict[str, int]:
        """Return the number of passages of every language searched."""
        if not languages:
            return self.languages
        codes = [resolve_language(code).code for code in languages]
        missing = next((code for code in codes if code not in self.languages), None)
        if missing is not None:
            known = ", ".join(code or "(none)" for code in self.languages)
            raise DataError(f"the index has no passage in {missing}; use one of: {known}")
        return {code: self.languages[code] for code in codes}


class Searcher(Ranker):
    """An index on disk with its model.

    Args:
        index: the index to search.
        model: the model that it was built with, see ``load_index_model``.
    """

    index: PassageIndex

    def __init__(self, index: PassageIndex, model: IndexedModel) -> None:
        super().__init__(index, model)
        # The table is already open; the first check finds out whether it is still the newest.
        self._state: tuple[int, ...] = ()
        self._looked = -math.inf
        self._refreshing = threading.Lock()

    def refresh(self, *, after: float = REFRESH_SECONDS) -> None:
        """Reload the index if any process has changed it since the last check.

        Args:
            after: minimum seconds since the last check; if fewer have passed, nothing is done.

        Raises:
            CheckpointError: the index was removed, damaged, or replaced by that of another model.
        """
        if time.monotonic() - self._looked < after:
            return
        # Searches during a refresh read the version that is already open. With ``after=0`` every
        # change has to be seen, even one that the running refresh may have missed.
        if not self._refreshing.acquire(blocking=after == 0):
            return
        try:
            state = self.index.state()
            if state != self._state:
                self.index.reload()
                self.languages = self.index.languages()
                self._state = state
            self._looked = time.monotonic()
        finally:
            self._refreshing.release()


def _absolute(model: str) -> str:
    """Return a path that is valid in any working directory; a hub model's name is unchanged."""
    return str(Path(model).absolute()) if Path(model).exists() else model
