"""An index of passages on disk: LanceDB's table, and the model that made its vectors.

``DIR/index.json`` names the model with the digest of its weights, and the prompts.
``DIR/passages.lance`` holds the passages with their vectors of length 1. Passages are added in
commits of some thousand rows: a killed run loses only its unfinished commit, and the same command
resumes after the last finished one. A writer first locks the folder, and then reads the newest
version of the table. LanceDB merges rows by id, so that no id is stored twice, and each row has a
checksum, which is compared when the row is read. The column ``words`` holds title and text as
``word_forms`` writes them. It is split into words by Unicode's rules (ICU), which suits an index of
many languages; stemming would suit an index of only one.

``DIR/scan`` holds the vectors once more, as an array that exact searches map, see ``vector_scan``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import logging
import math
import os
import shutil
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import from_mapping
from interlingua.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    count_of,
    import_extra,
)
from interlingua.retrieval.conditions import with_metadata
from interlingua.retrieval.lance_table import (
    CHECKED_COLUMNS,
    content_key,
    lance_reads,
    lance_writes,
    refuse_fragment,
    rows_are_whole,
    sql_strings,
    table_rows,
    table_schema,
    text_digest,
)
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.ranking import Hit
from interlingua.retrieval.vector_scan import (
    SCAN_FOLDER,
    SCAN_RECORD,
    VectorScan,
    open_scan,
    scan_version,
    write_scan,
)
from interlingua.retrieval.word_forms import word_forms
from interlingua.runtime.portions import portions
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.storage.formats import PASSAGE_INDEX
from interlingua.storage.locks import LOCK_FILE, exclusive
from interlingua.storage.record import RecordError, holds_record, read_record, write_record
from interlingua.storage.temporary import sweep

log = logging.getLogger("interlingua")
SETTINGS_FILE = "index.json"
TABLE = "passages"
COMMIT_PASSAGES = 4096
"""Passages of a commit."""
LEAST_APPROXIMATE = 5000
"""Minimum passages for an approximate search; fewer are compared one by one in milliseconds."""
MOST_SCANNED = 1_000_000
"""Maximum passages of an index with mapped vectors; above it only an index of vectors (IVF-PQ) is
fast."""
PROBED_CELLS = 40
"""Cells of vectors that an approximate search looks into."""
REFINED = 10
"""Number of candidates whose true cosine is computed, as a multiple of the hits requested."""
LEAST_REFINED = 200
"""Minimum number of candidates whose true cosine is computed, for searches for a few hits."""
_SHOWN = ("id", "text", "title", "language", "metadata", "document", "offset", "heading")
PASSAGE_COLUMNS = Passage._fields
ROW = (*CHECKED_COLUMNS, "checksum")
"""Columns to read for the check of rows."""
LOCK_REMEDY = "wait until it has finished, or use another folder"
EmbedPassages = Callable[[Sequence[Passage]], Float32[ndarray, "n d"]]
"""Function that returns the vectors of passages, of length 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexSettings:
    """Settings of the vectors of an index; a question has to be embedded with the same ones."""

    model: str
    """Folder or ``hf:owner/name``."""
    digest: str
    """Digest of its weights and settings."""
    dim: int
    """Width of the vectors."""
    passage_prompt: str = ""
    """Text in front of passages."""
    question_prompt: str = ""
    """Text in front of questions."""
    map_digest: str = ""
    """Digest of the language map in the index's folder, which is applied to all vectors; empty =
    none."""
    chunk_tokens: int = 0
    """Maximum tokens of a passage; longer ones are cut; 0 = no limit."""
    chunk_overlap: int = 0
    """Maximum tokens that a chunk shares with the one before it."""


@dataclass(frozen=True, slots=True)
class Added:
    """Counts of the passages that were added."""

    added: int
    replaced: int
    """Passages whose id was already in the index with another text, title, language or metadata."""
    unchanged: int
    deleted: int = 0
    """Number of passages of the indexed files that are no longer in them."""


def read_index_settings(folder: PathLike) -> IndexSettings:
    """Read the settings of an index; this needs no package of the extra ``search``.

    Raises:
        ConfigError: there is no index.
        CheckpointError: the file is damaged.
    """
    path = Path(folder) / SETTINGS_FILE
    if not path.is_file():
        raise ConfigError(
            f"{folder}: no index found; create one: interlingua index build MODEL FILES -o {folder}"
        )
    try:
        return from_mapping(IndexSettings, read_record(path, PASSAGE_INDEX), where=SETTINGS_FILE)
    except (RecordError, ConfigError) as error:
        raise CheckpointError(str(error)) from error


def require_same(folder: PathLike, ours: IndexSettings, given: IndexSettings) -> None:
    """Refuse to mix vectors of two models or two prompts.

    Args:
        folder: of the index.
        ours: its settings.
        given: those of a model.

    Raises:
        ConfigError: a setting that changes vectors differs; the message names it.
    """
    for field in dataclasses.fields(IndexSettings):
        name = field.name
        # The model may have been moved.
        if name == "model":
            continue
        built = getattr(ours, name)
        other = getattr(given, name)
        if built != other:
            called = {"digest": "the model", "dim": "the model", "map_digest": "the language map"}
            what = called.get(name, name.replace("_", " "))
            raise ConfigError(
                f"{folder}: the index was built with another value of {what} (expected"
                f" {str(built)[:40]!r}, found {str(other)[:40]!r}); use the same value, or build"
                " another index"
            )


class _Opened(NamedTuple):
    """A version of the table with the mapped vectors of exact searches.

    Attributes:
        table: LanceDB's.
        scan: its mapped vectors; None if there are none of this version.
        is_approximate: whether it has an index of vectors.
    """

    table: Any
    scan: VectorScan | None
    is_approximate: bool


class PassageIndex:
    """An index that exists.

    Args:
        folder: of the index.
        create: make the table of passages if it is missing.

    Raises:
        ConfigError: there is no index.
        CheckpointError: its settings or its passages are missing or damaged.
        MissingExtraError: the extra ``search`` is not installed.
    """

    def __init__(self, folder: PathLike, *, create: bool = False) -> None:
        os.environ.setdefault(
            "LANCEDB_LOG", "error"
        )  # its warnings are of no use to the user of an index
        import_extra("lancedb", extra="search")
        self.folder = Path(folder)
        self.settings = read_index_settings(folder)
        self._writer: int | None = None
        if create and not self._has_table():
            self._create_table()
        self._table = self._open_table()
        self._opened: _Opened | None = None
        self._opening = threading.Lock()

    @classmethod
    def create(cls, folder: PathLike, settings: IndexSettings) -> PassageIndex:
        """Make an index, or open the existing one if it has the same settings.

        Raises:
            ConfigError: the folder holds other files, or an index of other settings.
        """
        path = Path(folder)
        if path.is_file():
            raise ConfigError(f"{path}: expected a folder, found a file; use another folder")
        # The lock covers the check too: if two builds start in the same new folder, the second one
        # finds the settings of the first.
        with exclusive(path, remedy=LOCK_REMEDY):
            sweep(path)  # removes an incomplete settings file, which a killed build left
            if holds_record(path / SETTINGS_FILE, PASSAGE_INDEX):
                require_same(path, read_index_settings(path), settings)
            else:
                if any(file.name != LOCK_FILE for file in path.iterdir()):
                    raise ConfigError(
                        f"{path}: the folder contains other files; use another folder"
                    )
                _write_settings(path, settings)
        return cls(path, create=True)

    def state(self) -> tuple[int, ...]:
        """Return a value that changes whenever another process writes to the index or replaces it.

        Raises:
            CheckpointError: the index was removed.
        """
        versions = self.folder / f"{TABLE}.lance" / "_versions"
        try:
            made = (self.folder / SETTINGS_FILE).stat()
            changed = versions.stat()
            # Two versions may be written within one tick of the clock of the file system.
            count = sum(1 for _ in os.scandir(versions))
        except OSError as error:
            raise CheckpointError(
                f"{self.folder}: the index was deleted; build it again"
            ) from error
        # The mapped vectors are written after the version of the table that they belong to.
        scan = 0
        with contextlib.suppress(OSError):
            scan = (self.folder / SCAN_FOLDER / SCAN_RECORD).stat().st_ino
        return made.st_ino, made.st_mtime_ns, changed.st_ino, changed.st_mtime_ns, count, scan

    def reload(self) -> None:
        """Read the newest version of the table.

        Raises:
            CheckpointError: the index was removed or damaged, or replaced by that of another model.
        """
        try:
            require_same(self.folder, read_index_settings(self.folder), self.settings)
        except ConfigError as error:
            raise CheckpointError(str(error)) from error
        self._table = self._open_table()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other writers out until the block ends, and read the newest version of the table.

        A nested block in the same thread has no further effect.

        Raises:
            ConfigError: another process writes, or the index was replaced by one of another model.
            CheckpointError: the index was removed or damaged.
        """
        thread = threading.get_ident()
        if self._writer == thread:
            yield
            return
        with exclusive(self.folder, remedy=LOCK_REMEDY):
            # Another process may have changed the data that were read before the lock.
            require_same(self.folder, read_index_settings(self.folder), self.settings)
            self._table = self._open_table()
            self._writer = thread
            try:
                yield
            finally:
                self._writer = None

    def add(
        self,
        passages: Iterable[Passage],
        embed: EmbedPassages,
        *,
        files: Collection[str] = (),
        progress: Progress = SILENT,
        checks_all: bool = True,
    ) -> Added:
        """Embed the passages that are new or changed, and commit them some thousand at a time.

        Passages of an earlier state of the files are deleted last, so that a killed run loses
        nothing.

        Memory: one commit, and about 200 bytes for each passage that is indexed or passed.

        Args:
            passages: any number.
            embed: returns their vectors, of length 1.
            files: names of files that are passed with all their passages; other passages of these
                files are deleted from the index.
            progress: counts the passages that are committed.
            checks_all: look for damaged and repeated rows in the whole index; if False, only among
                the rows with the ids of ``passages``, which are then all in memory at once.

        Raises:
            DataError: an id occurs twice, or the disk is full.
        """
        with self.writing():
            ids = None
            if not checks_all:
                passages = list(passages)
                ids = [passage.id for passage in passages]
            return self._add(passages, embed, files, progress, self._contents(ids))

    def _add(
        self,
        passages: Iterable[Passage],
        embed: EmbedPassages,
        files: Collection[str],
        progress: Progress,
        known: Mapping[int, int | None],
    ) -> Added:
        seen: set[int] = set()
        documents: set[int] = set()
        counts: Counter[str] = Counter()
        committed = 0
        for block in portions(passages, COMMIT_PASSAGES):
            wanted: list[Passage] = []
            for passage in block:
                key = text_digest(passage.id)
                content = content_key(passage)
                if key in seen:
                    kept = f"{committed:,} passages before this one are in the index"
                    raise DataError(f"the id {passage.id!r} occurs twice; use unique ids; {kept}")
                seen.add(key)
                if not passage.file:
                    documents.add(text_digest(passage.document or passage.id))
                state = (
                    "added"
                    if key not in known
                    else "unchanged"
                    if known[key] == content
                    else "replaced"
                )
                counts[state] += 1
                if state != "unchanged":
                    wanted.append(passage)
            if wanted:
                self._commit(wanted, embed(wanted))
            committed = sum(counts.values())
            progress.advance(len(block))
        damaged = [key for key, content in known.items() if content is None and key not in seen]
        if damaged:
            log.warning(
                "%s: %d rows of other files are damaged; add these files again, or build the"
                " index again",
                self.folder,
                len(damaged),
            )
        # A run that was killed before this point has deleted nothing: the same command, run again,
        # finds the passages to delete by the names of their files.
        deleted = self._delete_ids(self._rest_of_files(files, seen))
        deleted += self._delete_ids(self._rest_of_documents(documents, seen))
        return Added(counts["added"], counts["replaced"], counts["unchanged"], deleted)

    def delete(self, ids: Sequence[str] = (), where: str | None = None) -> int:
        """Remove passages and return their number.

        Args:
            ids: of passages, or of documents, whose chunks are all deleted; a warning gives the
                number of ids that were not found.
            where: a condition in SQL on ``id``, ``file``, ``document``, ``heading``, ``language``,
                ``title``, ``text``, ``metadata`` and the fields in it.

        Raises:
            ConfigError: the condition is not valid; nothing was deleted.
            DataError: the disk is full.
        """
        with self.writing():
            if where is not None:
                condition = self._condition(where)
                # Test only the condition first, so that it is never the cause of a later failure.
                with lance_reads(self.folder, where):
                    self._table.count_rows(condition)
            given = set(ids)
            unknown = given - self._names_of(given)
            deleted = 0
            for block in portions(given - unknown, COMMIT_PASSAGES):
                names = sql_strings(block)
                deleted += self._delete_where(f"id IN ({names}) OR document IN ({names})")
            if unknown:
                log.warning(
                    f"{len(unknown):,} of {count_of(len(given), 'ids')} were not found in"
                    f" {self.folder}; `interlingua index list {self.folder}` lists the ids, and"
                    " `--where \"file = 'NAME'\"` deletes all passages of a file"
                )
            if where is not None:
                deleted += self._delete_where(condition)
            return deleted

    def _delete_ids(self, ids: Iterable[str]) -> int:
        deleted = 0
        for block in portions(ids, COMMIT_PASSAGES):
            deleted += self._delete_where(f"id IN ({sql_strings(block)})")
        return deleted

    def _names_of(self, ids: Iterable[str]) -> set[str]:
        """Return the ids that belong to passages or documents in the index."""
        found: set[str] = set()
        for block in portions(ids, COMMIT_PASSAGES):
            names = sql_strings(block)
            query = self._table.search().where(f"id IN ({names}) OR document IN ({names})")
            with lance_reads(self.folder):
                for batch in query.select(["id", "document"]).to_batches():
                    found.update(batch.column("id").to_pylist())
                    found.update(batch.column("document").to_pylist())
        return found

    def _delete_where(self, condition: str) -> int:
        before = self.count()
        self._opened = None
        with lance_writes(self.folder):
            self._table.delete(condition)
        return before - self.count()

    def _rest_of_files(self, files: Collection[str], seen: Collection[int]) -> list[str]:
        """Return the ids of passages that belong to one of the files, except those just read."""
        if not files:
            return []
        rest: list[str] = []
        query = self._table.search().where(f"file IN ({sql_strings(files)})").select(["id"])
        with lance_reads(self.folder):
            for batch in query.to_batches():
                rest += [
                    name for name in batch.column("id").to_pylist() if text_digest(name) not in seen
                ]
        return rest

    def _rest_of_documents(self, documents: Collection[int], seen: Collection[int]) -> list[str]:
        """Return ids of chunks of documents that were added again and now have other chunks.

        Args:
            documents: digests of the ids of records without a file.
            seen: digests of the ids that were added.
        """
        if not documents:
            return []
        rest: list[str] = []
        query = self._table.search().where("file = ''").select(["id", "document"])
        with lance_reads(self.folder):
            for batch in query.to_batches():
                names = batch.column("id").to_pylist()
                for name, document in zip(names, batch.column("document").to_pylist(), strict=True):
                    if text_digest(document) in documents and text_digest(name) not in seen:
                        rest.append(name)
        return rest

    def finish(self, *, approximate: bool = False) -> None:
        """Update the indexes of words and of vectors and join the commits.

        Args:
            approximate: make an index of vectors (IVF-PQ), which makes ``nearest`` approximate and
                many times faster.

        Raises:
            ConfigError: there are too few passages for an index of vectors.
            DataError: the disk is full.
        """
        with self.writing():
            self._finish(approximate)

    def _finish(self, approximate: bool) -> None:
        from lancedb.index import FTS, IvfPq

        if approximate and self.count() < LEAST_APPROXIMATE:
            raise ConfigError(
                f"an approximate search requires at least {LEAST_APPROXIMATE:,} passages, the"
                f" index has {self.count():,}; use exact search"
            )
        with lance_writes(self.folder):
            indexed = self._indexed_columns()
            if self.count() and "words" not in indexed:
                words = FTS(
                    base_tokenizer="icu", stem=False, remove_stop_words=False, max_token_length=None
                )
                self._table.create_index("words", config=words)
            if approximate and "vector" not in indexed:
                self._table.create_index("vector", config=IvfPq(distance_type="dot"))
            self._table.optimize()
        if scan_version(self.folder) != self._table.version:
            self._write_scan()

    def _write_scan(self) -> None:
        """Write the vectors that exact searches map; remove those of another version."""
        self._opened = None
        place = self.folder / SCAN_FOLDER
        if 0 < self.count() <= MOST_SCANNED:
            with lance_reads(self.folder):
                write_scan(self.folder, self._table, self.settings.dim)
        elif place.is_dir():
            shutil.rmtree(place)

    @property
    def is_approximate(self) -> bool:
        """True if ``nearest`` reads an index of vectors."""
        return "vector" in self._indexed_columns()

    def _indexed_columns(self) -> set[str]:
        return {column for index in self._table.list_indices() for column in index.columns}

    def count(self) -> int:
        """Return the number of passages in the index."""
        with lance_reads(self.folder):
            return int(self._table.count_rows())

    def languages(self) -> dict[str, int]:
        """Return the number of passages by language, largest first."""
        counts: Counter[str] = Counter()
        with lance_reads(self.folder):
            for batch in self._table.search().select(["language"]).to_batches():
                counts.update(batch.column("language").to_pylist())
        return dict(counts.most_common())

    def nearest(
        self,
        vector: Float32[ndarray, " d"],
        top: int,
        *,
        languages: Sequence[str] = (),
        where: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """Return the passages of largest cosine.

        Without an index of vectors, the question is compared with all vectors: with the mapped ones
        if there is no condition, otherwise by LanceDB. With such an index, it is compared with the
        codes of the vectors in the nearest cells; the best of these are compared by exact cosines.

        Args:
            vector: of the question, of length 1.
            top: maximum number of hits.
            languages: codes to search in; () = all.
            where: a condition in SQL, see ``delete``.
            exact: compare with all vectors, even if there is an index of them.

        Raises:
            ConfigError: the condition is not valid.
        """
        if where is None:
            opened = self._open_scan()
            if opened.scan is not None and (exact or not opened.is_approximate):
                hits = self._scanned(opened.table, opened.scan, vector, top, languages)
                if hits is not None:
                    return hits
        query = self._table.search(vector).distance_type("dot").select([*ROW, "_distance"])
        refined = max(REFINED, math.ceil(LEAST_REFINED / top))
        query = (
            query.bypass_vector_index()
            if exact
            else query.nprobes(PROBED_CELLS).refine_factor(refined)
        )
        # LanceDB's "dot" distance is 1 - x'y.
        return self._hits(query, top, languages, where, lambda row: 1.0 - row["_distance"])

    def _open_scan(self) -> _Opened:
        """Return the table with its mapped vectors, which are verified when they are first used."""
        with self._opening:
            opened = self._opened
            # A table that was opened anew may be of another version.
            if opened is None or opened.table is not self._table:
                table = self._table
                scan = None
                try:
                    scan = open_scan(self.folder, table.version)
                except RecordError as error:
                    log.warning(f"{error}; until then, searches read the table and are slower")
                opened = _Opened(table, scan, self.is_approximate)
                self._opened = opened
        return opened

    def _scanned(
        self,
        table: Any,
        scan: VectorScan,
        vector: Float32[ndarray, " d"],
        top: int,
        languages: Sequence[str],
    ) -> list[Hit] | None:
        """Return the passages of largest cosine by mapped vectors.

        Return None if the table holds other vectors than the scan: this process has changed the
        table since, or a vector was changed on the disk.
        """
        found = scan.nearest(vector, top, languages)
        with lance_reads(self.folder):
            query = table.take_row_ids(found.rows.tolist()).select([*ROW])
            rows = query.to_arrow()
        self._refuse_damaged(rows)
        # LanceDB leaves out rows that were deleted, and orders the others by their ids.
        by_row = np.argsort(found.rows)
        stored = np.asarray(rows.column("vector").combine_chunks().flatten())
        mapped = scan.vectors[found.positions[by_row]].ravel()
        if not np.array_equal(stored, mapped):
            return None
        scores = found.scores[by_row].tolist()
        shown = rows.select(_SHOWN).to_pylist()
        hits = [Hit(score=score, **row) for score, row in zip(scores, shown, strict=True)]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    def matching(
        self, text: str, top: int, *, languages: Sequence[str] = (), where: str | None = None
    ) -> list[Hit]:
        """Return the passages of largest BM25 score for the words of a text; see ``nearest``.

        Raises:
            CheckpointError: the words are not indexed, because the build was killed before that.
        """
        if not self.count():
            return []
        found = self._matching_rows(text, top, languages, where)
        return _as_hits(found, found.column("_score").to_pylist())

    def matching_with_cosines(
        self,
        text: str,
        vector: Float32[ndarray, " d"],
        top: int,
        *,
        languages: Sequence[str] = (),
        where: str | None = None,
    ) -> tuple[list[Hit], dict[str, float]]:
        """Return the hits of ``matching``, and, by id, the cosine of each hit with a vector.

        Args:
            text: the question.
            vector: of the question, of length 1.
            top: maximum number of hits.
            languages: see ``nearest``.
            where: see ``nearest``.
        """
        if not self.count():
            return [], {}
        found = self._matching_rows(text, top, languages, where)
        flat = found.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        cosines = np.asarray(flat, np.float32).reshape(-1, len(vector)) @ vector
        names = found.column("id").to_pylist()
        hits = _as_hits(found, found.column("_score").to_pylist())
        return hits, dict(zip(names, cosines.tolist(), strict=True))

    def _matching_rows(
        self, text: str, top: int, languages: Sequence[str], where: str | None
    ) -> Any:
        """Return the rows of ``matching`` with their scores as Arrow's table."""
        if "words" not in self._indexed_columns():
            raise CheckpointError(
                f"{self.folder}: the words of the passages are not indexed, because the build was"
                " interrupted; run the same `interlingua index build` again"
            )
        query = self._table.search(word_forms(text), query_type="fts").select([*ROW, "_score"])
        return self._rows(query, top, languages, where)

    def vectors(self, ids: Sequence[str]) -> Float32[ndarray, "n d"]:
        """Return the vectors of passages that are in the index, in the order of their ids.

        Args:
            ids: of passages in the index.
        """
        query = self._table.search().where(f"id IN ({sql_strings(ids)})").select(["id", "vector"])
        with lance_reads(self.folder):
            found = {row["id"]: row["vector"] for row in query.limit(len(ids)).to_list()}
        return np.array([found[name] for name in ids], dtype=np.float32)

    def members_of(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the passages of each name, with their languages.

        Args:
            names: ids of passages, or of documents, whose chunks are passages.

        Returns:
            By name: the id and the language of the passage that has this name, and of the passages
            of the document that has it. Names that are not in the index are left out.
        """
        members: dict[str, dict[str, str]] = defaultdict(dict)
        for block in portions(names, COMMIT_PASSAGES):
            wanted = set(block)
            listed = sql_strings(block)
            query = self._table.search().where(f"id IN ({listed}) OR document IN ({listed})")
            with lance_reads(self.folder):
                for batch in query.select(["id", "document", "language"]).to_batches():
                    for row in batch.to_pylist():
                        for name in wanted.intersection((row["id"], row["document"])):
                            members[name][row["id"]] = row["language"]
        return dict(members)

    def digest(self) -> str:
        """Return a digest of settings and passages, which does not depend on their order."""
        total = 0
        with lance_reads(self.folder):
            for batch in self._table.search().select(["checksum"]).to_batches():
                total += sum(batch.column("checksum").to_pylist())
        facts = [*dataclasses.asdict(self.settings).values(), self.count(), total]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def _hits(
        self,
        query: Any,
        top: int,
        languages: Sequence[str],
        where: str | None,
        score: Callable[[Mapping[str, Any]], float],
    ) -> list[Hit]:
        found = self._rows(query, top, languages, where)
        scores = map(score, found.drop_columns(["vector"]).to_pylist())
        return _as_hits(found, [float(one) for one in scores])

    def _rows(self, query: Any, top: int, languages: Sequence[str], where: str | None) -> Any:
        """Return the rows that a query finds, after their checksums were compared."""
        conditions = [f"language IN ({sql_strings(languages)})"] if languages else []
        if where is not None:
            conditions.append(f"({self._condition(where)})")
        if conditions:
            query = query.where(" AND ".join(conditions), prefilter=True)
        with lance_reads(self.folder, where):
            found = query.limit(top).to_arrow()
            self._refuse_damaged(found)
        return found

    def passages(self, where: str | None = None) -> Iterator[Passage]:
        """Yield the stored passages of one state of the index, whatever is written meanwhile.

        Args:
            where: a condition in SQL, see ``delete``.

        Raises:
            ConfigError: the condition is not valid.
        """
        query = self._open_table().search().select([*PASSAGE_COLUMNS])
        if where is not None:
            query = query.where(self._condition(where))
        with lance_reads(self.folder, where):
            for batch in query.to_batches():
                yield from (Passage(**row) for row in batch.to_pylist())

    def compact(self) -> None:
        """Join the commits and remove deleted rows and older versions from the disk.

        A process that reads one of these versions has to read the index anew.

        Raises:
            DataError: the disk is full.
        """
        with self.writing(), lance_writes(self.folder), warnings.catch_warnings():
            # LanceDB warns about readers of older versions, as the docstring does.
            warnings.simplefilter("ignore", UserWarning)
            self._table.optimize(cleanup_older_than=datetime.timedelta(0))
            self._write_scan()

    def _condition(self, where: str) -> str:
        """Return a user's condition as LanceDB reads it.

        Raises:
            ConfigError: it is not one complete condition, or it names a field that no passage has.
        """
        refuse_fragment(where)
        return with_metadata(where, self._has_field)

    def _has_field(self, name: str) -> bool:
        """Return whether a passage has a field of metadata; always true of an empty index."""
        escaped = sql_strings([name])
        query = self._table.search().where(f"json_get(metadata, {escaped}) IS NOT NULL")
        with lance_reads(self.folder):
            return bool(query.select(["id"]).limit(1).to_list()) or not self.count()

    def _open_table(self) -> Any:
        """Open the newest version of the table."""
        if not self._has_table():
            raise CheckpointError(f"{self.folder}: the passages are missing; build the index again")
        with lance_reads(self.folder):
            return self._database().open_table(TABLE)

    def _database(self) -> Any:
        return import_extra("lancedb", extra="search").connect(self.folder)

    def _has_table(self) -> bool:
        # A run that was killed while it made the table has left a folder without a version, and so
        # without a row.
        return any((self.folder / f"{TABLE}.lance" / "_versions").glob("*.manifest"))

    def _create_table(self) -> None:
        with exclusive(self.folder, remedy=LOCK_REMEDY), lance_writes(self.folder):
            if not self._has_table():  # another process may have made it meanwhile
                shutil.rmtree(self.folder / f"{TABLE}.lance", ignore_errors=True)
                self._database().create_table(TABLE, schema=table_schema(self.settings.dim))

    def _commit(self, passages: Sequence[Passage], vectors: Float32[ndarray, "n d"]) -> None:
        rows = table_rows(passages, vectors)
        self._opened = None
        with lance_writes(self.folder):
            # Merge by the id, also for new passages: so the store keeps the ids unique.
            upsert = (
                self._table.merge_insert("id")
                .when_matched_update_all()
                .when_not_matched_insert_all()
            )
            upsert.execute(rows)

    def _contents(self, ids: Sequence[str] | None = None) -> dict[int, int | None]:
        """Map the digest of each passage's id to that of its content, for some ids or for all.

        Rows that have the id of a later row are deleted. The digest of a damaged row is None, so
        that its passage is embedded again if it is passed.
        """
        found: dict[int, int | None] = {}
        row_of: dict[int, int] = {}
        repeated: list[int] = []
        query = self._table.search().with_row_id(True).select([*ROW, "content"])
        if ids is not None:
            query = query.where(f"id IN ({sql_strings(ids)})")
        with lance_reads(self.folder):
            for batch in query.to_batches():
                keys = map(text_digest, batch.column("id").to_pylist())
                rows = batch.column("_rowid").to_pylist()
                contents = batch.column("content").to_pylist()
                for key, row, content, whole in zip(
                    keys, rows, contents, rows_are_whole(batch), strict=True
                ):
                    if key in row_of:
                        repeated.append(row_of[key])
                    row_of[key] = row
                    found[key] = content if whole else None
        for block in portions(repeated, COMMIT_PASSAGES):
            self._delete_where(f"_rowid IN ({', '.join(map(str, block))})")
        if repeated:
            log.warning(
                "%s: %d rows with a repeated id were removed",
                self.folder,
                len(repeated),
            )
        return found

    def _refuse_damaged(self, rows: Any) -> None:
        """Refuse rows that are not as they were written.

        Raises:
            CheckpointError: the checksum of a row differs; the message names the row.
        """
        whole = rows_are_whole(rows)
        if all(whole):
            return
        ids = rows.column("id").to_pylist()
        damaged = [name for name, is_whole in zip(ids, whole, strict=True) if not is_whole]
        raise CheckpointError(
            f"{self.folder}: the row with the id {damaged[0]!r} is damaged; add its file again, or"
            " delete the row by its id"
        )


def _as_hits(rows: Any, scores: Sequence[float]) -> list[Hit]:
    """Return rows of Arrow's table as hits, best first; equal scores by id."""
    shown = rows.select(_SHOWN).to_pylist()
    hits = [Hit(score=score, **row) for row, score in zip(shown, scores, strict=True)]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def _write_settings(folder: Path, settings: IndexSettings) -> None:
    write_record(folder / SETTINGS_FILE, PASSAGE_INDEX, dataclasses.asdict(settings))
