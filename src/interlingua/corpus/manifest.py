"""The manifest next to a prepared corpus.

It records the origin of every pair, its license, and its outcome.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from interlingua.config import from_mapping, to_mapping
from interlingua.errors import DataError
from interlingua.storage.files import PathLike
from interlingua.storage.formats import CORPUS
from interlingua.storage.record import RecordError, holds_record, read_record, write_record

MANIFEST_FILE = "manifest.json"
TRIMMED_FOLDER = "backbone"
"""Subfolder of a corpus with the model that goes with its trimmed vocabulary."""


_LANGUAGE = r"[a-z]{3}(_[A-Z][a-z]{3})?"
CORPUS_ENTRIES = (
    r"manifest\.json|rejected_lines\.tsv|(train|valid)/(tokens\.bin|offsets\.bin|header\.json)"
    rf"|(valid_text|heldout)/{_LANGUAGE}-{_LANGUAGE}\.tsv"
    r"|(vocabulary|backbone)/([\w-]+/)?(\w+\.json|model\.safetensors|sentencepiece\.model)"
    r"|backbone/README\.md"
)
"""Paths of files in a prepared corpus."""


def is_corpus(folder: Path) -> bool:
    """Return whether a folder holds a prepared corpus, so that another may take its place."""
    return holds_record(folder / MANIFEST_FILE, CORPUS)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """One file that was read."""

    path: str
    bytes: int
    sha256: str
    """Hash of the file as it is on disk; for a Moses pair, of its two files in sequence."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SourceRecord:
    """One source; ``read`` is the sum of ``dropped``, ``train``, ``valid`` and ``heldout``."""

    name: str
    license: str
    files: tuple[SourceFile, ...]
    read: int
    """Pairs the reader gave."""
    skipped: dict[str, int]
    """Entries that are not pairs (untranslated, fuzzy, blank), by reason; not part of ``read``."""
    dropped: dict[str, int]
    """Pairs dropped, by rule."""
    train: int
    valid: int
    heldout: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LanguagePairRecord:
    """Final counts of a language pair."""

    source: str
    target: str
    train: int
    valid: int
    heldout: int
    dropped: dict[str, int]
    """Pairs dropped, by rule."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """Everything that is known about a prepared corpus."""

    created: str
    """UTC, ISO 8601."""
    versions: dict[str, str]
    config: dict[str, Any]
    """The resolved configuration it was prepared with."""
    sources: tuple[SourceRecord, ...]
    language_pairs: tuple[LanguagePairRecord, ...]
    dropped: dict[str, int]
    """Pairs dropped, by rule, over all sources."""
    decontaminated: dict[str, int]
    """Pairs that touch an evaluation set, by set; one may touch several."""
    skipped_evaluation_files: tuple[str, ...] = ()
    """Files below the evaluation sets' folders that hold no text and were not compared."""
    vocabulary: dict[str, Any]
    """Size and digest."""
    tokens: dict[str, int]
    """Tokens in the training store, by language."""
    seconds: dict[str, float]
    """Wall time of every stage."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of all languages, sorted."""
        codes = {pair.source for pair in self.language_pairs}
        codes |= {pair.target for pair in self.language_pairs}
        return tuple(sorted(codes))

    @property
    def train(self) -> int:
        """Training pairs."""
        return sum(pair.train for pair in self.language_pairs)

    def save(self, folder: PathLike) -> None:
        """Write ``manifest.json``."""
        write_record(Path(folder) / MANIFEST_FILE, CORPUS, to_mapping(self))

    @classmethod
    def load(cls, folder: PathLike) -> Manifest:
        """Read ``manifest.json``.

        Raises:
            DataError: it is missing, damaged, or of another format.
        """
        path = Path(folder) / MANIFEST_FILE
        content = read_record(path, CORPUS)
        # The checksum does not prove who wrote it.
        try:
            return from_mapping(cls, content, where="manifest")
        except (ValueError, AttributeError) as error:
            raise DataError(f"is not a manifest ({error}); {CORPUS.remedy}", path=path) from error


def prompt_of(folder: PathLike) -> str | None:
    """Return the prompt in front of every text of a prepared corpus.

    Return None if there is no prompt, or no manifest records one.

    Args:
        folder: of the corpus.
    """
    try:
        content = read_record(Path(folder) / MANIFEST_FILE, CORPUS)
    except RecordError as error:
        # A damaged manifest, or one of another version, may have named a prompt.
        if not error.is_missing:
            raise
        return None
    config = content.get("config") or {}
    return config.get("prompt") or None
