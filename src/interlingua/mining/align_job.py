"""The whole of ``interlingua align``: two documents, or those of a list, of which a killed run's are not done again."""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TextIO

from interlingua.corpus.formats import write_pairs
from interlingua.errors import ConfigError
from interlingua.files import PathLike, atomic_write, sha256_file
from interlingua.locks import exclusive
from interlingua.mining.align import Aligner, AlignReport, Encode
from interlingua.mining.alignment import AlignConfig
from interlingua.mining.links import DocumentPair, check_texts, document_pairs, pair_languages, sentence_files
from interlingua.remote import keep_inputs

JOURNAL = "align.journal"
LOCK = ".align.lock"


@dataclass(frozen=True, kw_only=True)
class AlignJob:
    """What ``interlingua align --help`` says of the options of these names."""

    source: PathLike | None = None
    target: PathLike | None = None
    list: PathLike | None = None
    output: PathLike | None = None
    texts: PathLike | None = None
    gold: PathLike | None = None
    source_language: str | None = None
    target_language: str | None = None
    split: bool = False
    source_column: str | None = None
    target_column: str | None = None
    config: AlignConfig = field(default_factory=AlignConfig)

    def __post_init__(self) -> None:
        given = (self.source_language, self.target_language)
        check_texts(self.texts, [pair_languages(pair.source, pair.target, given) for pair in self.documents])
        if self.split and self.texts is None and any(pair.output is None for pair in self.documents):
            raise ConfigError(
                "--split: links number the sentences that are made, so these must be written too; give --output or"
                " --texts"
            )
        read = [path for pair in self.documents for path in (pair.source, pair.target, pair.gold)]
        links = [pair.output for pair in self.documents]
        sentences = [name for path in links if path and self.split for name in sentence_files(path)]
        keep_inputs((*links, *sentences, self.texts), (*read, self.list))

    @cached_property
    def documents(self) -> tuple[DocumentPair, ...]:
        """What is to be aligned."""
        return tuple(document_pairs(self.source, self.target, self.list, self.output, self.gold))

    def run(
        self,
        encode: Encode,
        *,
        model: str,
        stdout: TextIO,
        progress: Callable[[str, float, float], None] = lambda what, done, total: None,
    ) -> AlignReport:
        """Does it.

        Args:
            encode: see ``Encode``.
            model: what tells the model and its settings from others.
            stdout: for links without an output.
            progress: called with the document, and the kilobytes that are done, and all.

        Raises:
            DataError: one of two documents can't be aligned; those of a list are in the report.
        """
        if self.list is None:
            return self._align(encode, model, stdout, progress)
        with exclusive(self._journal.parent, remedy="choose another --output folder", name=LOCK):
            return self._align(encode, model, stdout, progress)

    @property
    def _journal(self) -> Path:
        """Of a list."""
        return Path(self.output or Path(self.documents[0].output or "").parent) / JOURNAL

    def _align(
        self, encode: Encode, model: str, stdout: TextIO, progress: Callable[[str, float, float], None]
    ) -> AlignReport:
        languages = {"source_language": self.source_language, "target_language": self.target_language}
        columns = (self.source_column, self.target_column)
        aligner = Aligner(encode, self.config, split=self.split, columns=columns, **languages)
        journal = None
        if self.list is not None:
            journal = AlignJournal(self._journal, f"{model} {self.config} {languages} split={self.split} {columns}")
        found = aligner.pairs(self.documents, stdout=stdout, lenient=journal is not None, journal=journal,
                              progress=progress)  # fmt: skip
        if self.texts is None:
            deque(found, maxlen=0)
        else:
            write_pairs(found, self.texts)
        if journal is not None and not aligner.report.failed:
            journal.path.unlink(missing_ok=True)
        return aligner.report


class AlignJournal:
    """Which documents of a list are done, a line each behind that of the settings; one of other settings is begun anew.

    Args:
        path: of the journal, which goes when all documents are done.
        settings: what decides the links, together with the documents.

    Raises:
        ConfigError: a file of that name is there that is no such journal.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self.path, head = path, json.dumps({"settings": settings})
        content = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        lines = content.split("\n")[:-1]  # a line that was cut is not done
        if content and not content.startswith('{"settings": '):
            raise ConfigError(f"{path} is damaged, or a file of another program; remove it or choose another folder")
        self.done = set(lines[1:]) if lines[:1] == [head] else set()
        with atomic_write(path) as file:
            file.writelines(f"{line}\n" for line in [head, *sorted(self.done)])

    def has(self, pair: DocumentPair) -> bool:
        """Whether these documents were aligned and the links are there, none of them changed since."""
        return bool(self.done) and os.path.isfile(pair.output or "") and self._line(pair) in self.done

    def add(self, pair: DocumentPair) -> None:
        """Takes note of documents after their links are on the disk."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{self._line(pair)}\n")
            file.flush()
            os.fsync(file.fileno())

    def _line(self, pair: DocumentPair) -> str:
        files = (pair.source, pair.target, pair.output or "")
        digest = hashlib.sha256("".join(map(sha256_file, files)).encode()).hexdigest()
        return json.dumps([*files, digest])
