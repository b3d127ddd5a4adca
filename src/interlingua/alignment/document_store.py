"""One side's documents as a work folder holds them: sentences, their units, and their vectors.

Each distinct sentence is numbered and embedded once (``mining.texts``). Arrays hold the sentences
of each document, and for each sentence its unit and the kind of this unit. All files are mapped
into memory, so that memory does not grow with the documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int8, Int32, Int64
from numpy import ndarray

from interlingua.alignment.document_files import StoredDocument
from interlingua.corpus.documents import Unit
from interlingua.corpus.segments.sentence_splitting import split_paragraph
from interlingua.mining.texts import Line, NumberedTexts, build_side, mapped, number_texts
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.json_text import parse_json

KINDS = ("paragraph", "heading", "item", "cell", "cue", "code")
"""Kinds of units, by the numbers that are stored."""
HEADING_NUMBER = KINDS.index("heading")
JOINED_KINDS = frozenset(map(KINDS.index, ("paragraph", "cue")))
"""Kinds of units whose sentences may be joined in a link with those of the next unit."""
_WHOLE_KINDS = frozenset(("heading", "code"))
"""Kinds of units that are one sentence, whatever punctuation they contain."""


class DocumentEntry(NamedTuple):
    """Metadata of a document.

    Attributes:
        path: of its file.
        name: path below the folder that the user specified.
        title: may be empty.
    """

    path: str
    name: str
    title: str


class DocumentSide(NamedTuple):
    """All documents of one side.

    Attributes:
        language: code of the language of all documents.
        entries: of the documents, in their order.
        starts: number of the first sentence of each document, then the number of all sentences.
        units: number of the unit of each sentence, from 0 in each document.
        kinds: of the unit of each sentence, see ``KINDS``.
        numbered: the distinct sentences; ``text_of_line`` has the number of each sentence.
    """

    language: str
    entries: list[DocumentEntry]
    starts: Int64[ndarray, " d+1"]
    units: Int32[ndarray, " s"]
    kinds: Int8[ndarray, " s"]
    numbered: NumberedTexts

    def rows(self, document: int) -> Int64[ndarray, " n"]:
        """Return the numbers of the distinct sentences of a document, in its order."""
        return np.asarray(self.numbered.text_of_line[self.span(document)])

    def span(self, document: int) -> slice:
        """Return the place of a document among all sentences."""
        return slice(int(self.starts[document]), int(self.starts[document + 1]))

    def sentences(self, document: int) -> list[str]:
        """Return the sentences of a document."""
        return [self.numbered.texts[int(row)] for row in self.rows(document)]

    def heading_flags(self, document: int) -> Bool[ndarray, " n"]:
        """Mark the sentences of a document that are headings."""
        return np.asarray(self.kinds[self.span(document)] == HEADING_NUMBER)

    def border_flags(self, document: int) -> Bool[ndarray, " n"]:
        """Mark the sentences of a document that can't be joined with the one before.

        Sentences are joined within a unit, and across the border of two paragraphs or two cues.
        """
        kinds = self.kinds[self.span(document)]
        units = self.units[self.span(document)]
        is_joined = np.isin(kinds, list(JOINED_KINDS))
        # The first sentence has no previous one with which it could be joined.
        borders = np.ones(len(kinds), bool)
        same_unit = units[1:] == units[:-1]
        same_kind = (kinds[1:] == kinds[:-1]) & is_joined[1:]
        borders[1:] = ~(same_unit | same_kind)
        return borders


def split_units(units: Iterable[Unit], language: str) -> Iterator[tuple[str, int, str]]:
    """Yield the sentences of units, each with the number and the kind of its unit.

    Args:
        units: of a document.
        language: code by which a unit is split.
    """
    for number, unit in enumerate(units):
        sentences = [unit.text]
        if unit.kind not in _WHOLE_KINDS:
            sentences = split_paragraph(unit.text, language)
        for sentence in filter(str.strip, sentences):
            yield sentence.strip(), number, unit.kind


def write_documents(
    documents: Iterable[StoredDocument],
    language: str,
    folder: Path,
    *,
    name: str,
    progress: Progress = SILENT,
) -> DocumentSide:
    """Split the documents of a side into sentences, and write them to a folder.

    Args:
        documents: of the side, in their order.
        language: code of the language of all documents.
        folder: to which the side is written.
        name: of the side, for progress.
        progress: counts the sentences.

    Raises:
        DataError: there is no text.
    """
    starts = [0]
    with (
        open(folder / "sentences.jsonl", "w", encoding="utf-8") as lines,
        open(folder / "entries.jsonl", "w", encoding="utf-8") as entries,
        open(folder / "units.i32", "wb") as units,
        open(folder / "kinds.i8", "wb") as kinds,
    ):
        for document in documents:
            found = list(split_units(document.units, language))
            for sentence, _, _ in found:
                lines.write(json.dumps(sentence, ensure_ascii=False) + "\n")
            units.write(np.array([number for _, number, _ in found], np.int32).tobytes())
            numbers = [KINDS.index(kind) if kind in KINDS else 0 for _, _, kind in found]
            kinds.write(np.array(numbers, np.int8).tobytes())
            entry = (document.path, document.name, document.title)
            entries.write(json.dumps(entry, ensure_ascii=False) + "\n")
            starts.append(starts[-1] + len(found))
    np.array(starts, np.int64).tofile(folder / "starts-of-documents.i64")
    build_side(
        folder,
        lambda: _lines(folder),
        path=f"the {name} documents",
        label=f"numbering {name}",
        progress=progress,
    )
    (folder / "sentences.jsonl").unlink()
    return load_documents(folder, language)


def _lines(folder: Path) -> Iterator[Line]:
    with open(folder / "sentences.jsonl", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            yield Line(parse_json(line), str(number))


def load_documents(folder: Path, language: str) -> DocumentSide:
    """Load the side that ``write_documents`` wrote."""
    with open(folder / "entries.jsonl", encoding="utf-8") as lines:
        entries = [DocumentEntry(*parse_json(line)) for line in lines]
    return DocumentSide(
        language,
        entries,
        np.fromfile(folder / "starts-of-documents.i64", np.int64),
        mapped(folder / "units.i32", np.dtype(np.int32)),
        mapped(folder / "kinds.i8", np.dtype(np.int8)),
        NumberedTexts.load(folder),
    )


def number_documents(documents: Iterable[StoredDocument], language: str) -> DocumentSide:
    """Return a side in memory; no file is written."""
    entries = []
    starts = [0]
    found: list[tuple[str, int, str]] = []
    for document in documents:
        found += split_units(document.units, language)
        entries.append(DocumentEntry(document.path, document.name, document.title))
        starts.append(len(found))
    lines = [Line(sentence, str(number)) for number, (sentence, _, _) in enumerate(found)]
    return DocumentSide(
        language,
        entries,
        np.array(starts, np.int64),
        np.array([unit for _, unit, _ in found], np.int32),
        np.array([KINDS.index(kind) for _, _, kind in found], np.int8),
        number_texts(lines, path="the documents"),
    )
