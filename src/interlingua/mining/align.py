"""Documents linked sentence by sentence with an encoder: blocks of sentences, their vectors, what came of it."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TextIO

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.corpus.formats import TextPair
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.finite import check_finite
from interlingua.errors import DataError
from interlingua.files import atomic_write
from interlingua.mining.alignment import AlignConfig, Alignment, Link, align_blocks
from interlingua.mining.alignment_scores import LinkCounts
from interlingua.mining.links import (
    DocumentPair,
    link_line,
    pair_languages,
    read_links,
    read_sentences,
    write_sentences,
)

PORTION = 2048
"""Blocks embedded between two reports of progress."""
Encode = Callable[..., Float32[ndarray, "n d"]]
"""Texts -> vectors of length 1; takes ``language`` and ``report``, see ``interlingua.encoder.encode.encode``."""


class Journal(Protocol):
    """Remembers what documents are done."""

    def has(self, pair: DocumentPair) -> bool:
        """Whether their links are there."""
        ...

    def add(self, pair: DocumentPair) -> None:
        """Takes note of them."""
        ...


@dataclass(slots=True)
class AlignReport:
    """What came of all documents of a run."""

    documents: int = 0
    shapes: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Links by the number of sentences on either side."""
    blank: Counter[str] = field(default_factory=Counter)
    """Blank lines of the sources and of the targets, which are no sentences."""
    failed: list[str] = field(default_factory=list)
    """Why documents were left out."""
    gold: LinkCounts = field(default_factory=LinkCounts)
    encoded: EncodeReport = field(default_factory=EncodeReport)
    links: list[Link] = field(default_factory=list)
    """Of documents for which no file of links is written."""

    def __str__(self) -> str:
        alone = self.shapes[1, 0], self.shapes[0, 1]
        linked = {shape: count for shape, count in sorted(self.shapes.items()) if all(shape)}
        kinds = ", ".join(f"{p}-{q}: {count:,}" for (p, q), count in linked.items())
        blank = f"; {self.blank['source']:,} and {self.blank['target']:,} blank lines" if self.blank.total() else ""
        return (
            f"{self.documents:,} document pairs, {sum(linked.values()):,} links ({kinds or 'none'}),"
            f" {alone[0]:,} source and {alone[1]:,} target sentences left alone{blank}"
        )

    def lines(self, *, quiet: bool = False) -> list[str]:
        """What there is to tell; what went wrong in any case."""
        cut = [self.encoded.cuts] if self.encoded.cut_rows else []
        return [*(f"left out: {reason}" for reason in self.failed), *([] if quiet else [str(self)]), *cut,
                *self.gold_lines]  # fmt: skip

    @property
    def gold_lines(self) -> list[str]:
        """Precision, recall and F1, where there are gold links."""
        kinds = {"strict": self.gold.strict_scores, "lax": self.gold.lax_scores} if self.gold.links else {}
        return [f"{kind}: precision {p:.4f}, recall {r:.4f}, F1 {f:.4f}" for kind, (p, r, f) in kinds.items()]


class Aligner:
    """Aligns documents with one encoder.

    Args:
        encode: see ``Encode``.
        config: how to search.
        source_language: in any code, for encoders that need it and for the pairs; default: that of the file's name.
        target_language: code of the target's language, or None.
        split: the documents are plain text, to be split into sentences first.
        columns: with the sentences, of tables (CSV, XLSX); default: those called by the languages, or ``text``.
    """

    def __init__(
        self,
        encode: Encode,
        config: AlignConfig | None = None,
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        split: bool = False,
        columns: tuple[str | None, str | None] = (None, None),
    ) -> None:
        self.columns = columns
        self.encode, self.config = encode, config or AlignConfig()
        self.languages = source_language, target_language
        self.split = split
        self.report = AlignReport()

    def align(
        self,
        source: Sequence[str],
        target: Sequence[str],
        *,
        languages: tuple[str | None, str | None] | None = None,
        progress: Callable[[float], None] = lambda share: None,
    ) -> Alignment:
        """The links between two documents; a blank line is left alone, whatever stands around it.

        Args:
            source: a sentence each.
            target: a sentence each, its translation.
            languages: of both documents; default: those of the aligner.
            progress: is called with the share of the texts that is embedded.
        """
        filled = [_filled_lines(source), _filled_lines(target)]
        if not all(filled):
            raise DataError("one of two documents holds no sentence; there is nothing to align")
        plans = []
        for side, lines in zip((source, target), filled, strict=True):
            sentences = [side[line] for line in lines]
            plans.append(block_texts(sentences, self.config.max_sentences - 1))
        total = sum(len(plan.texts) for plan in plans)
        done = 0
        blocks = []
        for plan, language in zip(plans, languages or self.languages, strict=True):
            made = []
            for start in range(0, len(plan.texts), PORTION):
                portion = plan.texts[start : start + PORTION]
                made.append(self.encode(portion, language=language, report=self.report.encoded))
                check_finite(made[-1], lambda row, portion=portion: repr(portion[row][:60]))  # type: ignore[misc]
                done += len(portion)
                progress(done / total)
            blocks.append(np.concatenate(made)[plan.places])
        found = align_blocks(blocks[0], blocks[1], self.config)
        return found._replace(links=with_blank_lines(found.links, filled, (len(source), len(target))))

    def links(
        self,
        source: Sequence[str],
        target: Sequence[str],
        *,
        languages: tuple[str | None, str | None] | None = None,
        progress: Callable[[float], None] = lambda share: None,
    ) -> list[Link]:
        """The links between two documents with their costs rounded as they are written; see ``align``."""
        found = self.align(source, target, languages=languages, progress=progress).links
        return [link._replace(cost=round(link.cost, 6)) for link in found]

    def pairs(
        self,
        documents: Sequence[DocumentPair],
        *,
        stdout: TextIO,
        lenient: bool = False,
        journal: Journal | None = None,
        progress: Callable[[str, float, float], None] = lambda what, done, total: None,
    ) -> Iterator[TextPair]:
        """Aligns documents one after the other, writes their links, and gives the linked texts.

        The score of a pair is 1 - cost: 1 for equal vectors, about 0 for unrelated ones.

        Args:
            documents: what to align.
            stdout: for links without an output.
            lenient: note in the report what documents can't be aligned and why, and go on.
            journal: of finished documents; their links are read and not made.
            progress: called with the document, and the kilobytes of all texts that are done, and all.

        Raises:
            DataError: a file is missing, empty, not UTF-8, or its gold does not fit.
        """
        sizes = [(_size(pair.source) + _size(pair.target)) / 1000 for pair in documents]
        for number, pair in enumerate(documents):
            report = _part_of(sizes, number, progress)
            languages = pair_languages(pair.source, pair.target, self.languages)
            try:
                source, target = (self._read(pair, languages, side) for side in (0, 1))
                gold = read_links(pair.gold, (len(source), len(target))) if pair.gold else None
            except DataError as error:
                if not lenient:
                    raise
                self.report.failed.append(str(error))
                continue
            if journal is not None and journal.has(pair):
                links: Sequence[Link] = read_links(pair.output or "")
            else:
                given = (languages[0] or None, languages[1] or None)
                links = self.links(source, target, languages=given, progress=report)
                if self.split and pair.output is not None:
                    write_sentences(pair.output, source, target)
                self._write(links, pair, stdout, journal)
            self.count(links, gold, source, target)
            report(1)
            for link in links:
                if link.source and link.target:
                    texts = joined(source, link.source), joined(target, link.target)
                    yield TextPair(texts[0], texts[1], languages[0], languages[1], score=1 - link.cost)

    def _read(self, pair: DocumentPair, languages: tuple[str, str], side: int) -> list[str]:
        """The sentences of the source (0) or the target (1)."""
        language = languages[side]
        split_as = language if self.split else None
        return read_sentences(pair[side] or "", split_as=split_as, column=self.columns[side], language=language or None)

    def _write(self, links: Sequence[Link], pair: DocumentPair, stdout: TextIO, journal: Journal | None) -> None:
        if pair.output is None:
            self.report.links += links
            stdout.writelines(map(link_line, links))
            stdout.flush()
            return
        with atomic_write(pair.output) as file:
            file.writelines(map(link_line, links))
        if journal is not None:
            journal.add(pair)

    def count(
        self, links: Sequence[Link], gold: Sequence[Link] | None, source: Sequence[str], target: Sequence[str]
    ) -> None:
        """Adds the links of two documents to the report."""
        self.report.documents += 1
        shapes = Counter((len(link.source), len(link.target)) for link in links)
        blank = Counter(source=_blank_lines(source), target=_blank_lines(target))
        # each of them is a link with an empty side, but none is a sentence that was left alone
        shapes -= Counter({(1, 0): blank["source"], (0, 1): blank["target"]})
        self.report.shapes += shapes
        self.report.blank += blank
        if gold is not None:
            self.report.gold += LinkCounts.of(links, gold)


def _blank_lines(document: Sequence[str]) -> int:
    return sum(not text.strip() for text in document)


def _part_of(
    sizes: Sequence[float], number: int, progress: Callable[[str, float, float], None]
) -> Callable[[float], None]:
    """Reports the share that is done of one of several documents."""
    what = f"document {number + 1} of {len(sizes)}, kB"
    before = sum(sizes[:number])
    return lambda share: progress(what, round(before + share * sizes[number]), round(sum(sizes)))


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.isfile(path) else 0


class BlockTexts(NamedTuple):
    """The texts of all blocks of a document.

    Attributes:
        texts: each distinct text once.
        places: which text each block is, by size and last sentence; 0 where there is no such block.
    """

    texts: list[str]
    places: Int64[ndarray, "k n"]


def block_texts(sentences: Sequence[str], most: int) -> BlockTexts:
    """Up to so many sentences in a row, as one text."""
    numbers: dict[str, int] = {}
    places = np.zeros((most, len(sentences)), np.int64)
    for size in range(1, most + 1):
        for last in range(size - 1, len(sentences)):
            text = joined(sentences, range(last - size + 1, last + 1))
            places[size - 1, last] = numbers.setdefault(text, len(numbers))
    return BlockTexts(list(numbers), places)


def joined(sentences: Sequence[str], numbers: Iterable[int]) -> str:
    """Sentences in a row as one text."""
    return " ".join(sentences[number].strip() for number in numbers)


def _filled_lines(document: Sequence[str]) -> list[int]:
    """Numbers of the lines that are not blank."""
    return [number for number, text in enumerate(document) if text.strip()]


def with_blank_lines(
    links: Iterable[Link], filled: Sequence[Sequence[int]], lengths: tuple[int, int]
) -> tuple[Link, ...]:
    """Links with the numbers of lines in place of those of sentences, and every blank line alone in its place.

    Args:
        links: between sentences.
        filled: the line of each sentence, of either side.
        lengths: lines of either side.
    """
    blank = [deque(sorted(set(range(length)) - set(lines))) for length, lines in zip(lengths, filled, strict=True)]
    found: list[Link] = []

    def leave_alone(before: tuple[int, int]) -> None:
        for side in (0, 1):
            while blank[side] and blank[side][0] < before[side]:
                line = (blank[side].popleft(),)
                found.append(Link((), line, 0.0) if side else Link(line, (), 0.0))

    for link in links:
        source = tuple(filled[0][number] for number in link.source)
        target = tuple(filled[1][number] for number in link.target)
        leave_alone((source[-1] if source else 0, target[-1] if target else 0))
        found.append(Link(source, target, link.cost))
    leave_alone(lengths)
    return tuple(found)
