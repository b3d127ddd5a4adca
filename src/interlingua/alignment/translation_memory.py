"""From two folders of documents to a translation memory, in a work folder.

The steps of ``make_memory`` are: read the documents (``document_files``), number their sentences
(``document_store``), embed them (``mining.vectors``), pair the documents (``document_pairing``),
align the sentences of each pair (``document_links``), and write the linked sentences. A killed run
resumes: reading, numbering and pairing are steps of the workspace, vectors and links have journals.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from interlingua.alignment.align import UNRELATED
from interlingua.alignment.document_files import (
    DocumentFile,
    SideLanguages,
    assign_sides,
    read_documents,
    stored_documents,
)
from interlingua.alignment.document_links import (
    DocumentLinks,
    estimate_probabilities,
    link_documents,
    linked_pairs,
)
from interlingua.alignment.document_pairing import (
    BestCandidate,
    DocumentPairing,
    PairedDocuments,
    pair_documents,
)
from interlingua.alignment.document_store import DocumentSide, load_documents, write_documents
from interlingua.alignment.sentence_alignment import AlignConfig, Link
from interlingua.config.languages import resolve_language
from interlingua.corpus.documents import LeftOut
from interlingua.corpus.formats.bitext import TextPair
from interlingua.encoder.protocol import Encode
from interlingua.errors import DataError, count_of
from interlingua.mining.calibration.calibration import Calibration, load_calibration
from interlingua.mining.score import BitextScorer, ScoreConfig
from interlingua.mining.vectors import (
    VECTOR_FILES,
    check_identity,
    drop_damaged,
    embed_side,
    load_vectors,
)
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike, tab_rows
from interlingua.storage.journal import Journal
from interlingua.storage.json_text import parse_json
from interlingua.storage.workspace import Workspace

MEMORY_PARTS = {
    r"units|[xy]|pairs": r"",
    r"vectors-[xy]": VECTOR_FILES,
    r"aligned": r"aligned\.journal",
}
"""Folders of the work folder; see ``open_workspace``."""
_SHOWN = 10
"""Lines of each kind in a report on the terminal."""
_REMEDY = "choose another --work folder"
_SIDES = ("x", "y")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryConfig:
    """Settings that determine a translation memory, besides the documents and the model.

    Attributes:
        languages: of source and target from the options, resolved codes or None.
        match: how documents are paired: ``auto``, ``names`` or ``texts``.
        pairs: file of pairs, source TAB target in every line.
        threshold: margin from which documents are paired by their texts; default: from the data.
        align: how sentences are aligned.
        calibration: file from ``interlingua score --learn``; default: probabilities are estimated.
        probability: minimum probability of a link that is written.
        device: device of the search for document pairs.
    """

    languages: tuple[str | None, str | None] = (None, None)
    match: str = "auto"
    pairs: Path | None = None
    threshold: float | None = None
    align: AlignConfig = field(default_factory=AlignConfig)
    calibration: Path | None = None
    probability: float | None = None
    device: str | None = None


class PairCoverage(NamedTuple):
    """Outcome of a pair of documents.

    Attributes:
        pairing: the documents.
        paths: of both.
        sentences: number of sentences of both.
        linked: number of linked sentences of both.
        links: number of links.
        median: median score of the links; 0 without links.
        worst: the links of lowest score, lowest first.
    """

    pairing: DocumentPairing
    paths: tuple[str, str]
    sentences: tuple[int, int]
    linked: tuple[int, int]
    links: int
    median: float
    worst: list[TextPair]

    @property
    def coverage(self) -> float:
        """Share of the sentences of both documents that are linked."""
        return sum(self.linked) / max(1, sum(self.sentences))


@dataclass(slots=True)
class MemoryReport:
    """Results of a run."""

    languages: tuple[str, str] = ("", "")
    documents: tuple[int, int] = (0, 0)
    threshold: float = 0.0
    paired: list[PairCoverage] = field(default_factory=list)
    doubtful: list[tuple[str, str, float]] = field(default_factory=list)
    """Documents paired by the user's list or by names, with texts that look unrelated."""
    unpaired: list[tuple[str, str, float]] = field(default_factory=list)
    """Paths of each document without a partner and of its best candidate, and their score."""
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Doubts about how documents were read."""
    links: int = 0
    written: int = 0

    def lines(self, output: PathLike | None = None) -> list[str]:
        """Return the report as lines of text."""
        names = [resolve_language(code).name for code in self.languages]
        how = Counter(one.pairing.by for one in self.paired)
        ways = ", ".join(f"{count:,} by {by}" for by, count in sorted(how.items()))
        lines = [
            f"{self.documents[0]:,} documents in {names[0]}, {self.documents[1]:,} in {names[1]}:"
            f" {count_of(len(self.paired), 'pairs')}{f' ({ways})' if ways else ''}"
        ]
        if how["texts"]:
            lines[0] += f", threshold {self.threshold:.3f}"
        left = [f"left out: {path}: {reason}" for path, reason in self.left_out]
        lines += _shortened(left, "files left out")
        lines += _shortened([f"note: {note}" for note in self.notes], "notes")
        alone = [_candidate_line(*one) for one in self.unpaired]
        lines += _shortened(alone, "documents without a partner")
        paths = {one.paths for one in self.paired}
        doubts = [_doubt_line(*one, one[:2] in paths) for one in self.doubtful]
        lines += _shortened(doubts, "doubtful pairs")
        sentences = sum(sum(one.sentences) for one in self.paired)
        linked = sum(sum(one.linked) for one in self.paired)
        lines.append(
            f"{self.written:,} of {count_of(self.links, 'links')} written, {linked:,} of"
            f" {sentences:,} sentences linked ({linked / max(1, sentences):.1%})"
        )
        if output is not None:
            lines[-1] += f": {output}"
        return lines


def _candidate_line(path: str, candidate: str, score: float) -> str:
    best = f" (best candidate {candidate}, score {score:.3f})" if candidate else ""
    return f"no partner: {path}{best}"


def _doubt_line(source: str, target: str, score: float, is_paired: bool) -> str:
    if is_paired:
        return (
            f"warning: {source} and {target} are paired, but the score of their texts is"
            f" {score:.3f}, a value typical of wrong pairs; check them"
        )
    return (
        f"warning: {source} and {target} have the same name, but the score of their texts is"
        f" {score:.3f}, a value typical of wrong pairs; they are not paired (pass --match names to"
        " pair them)"
    )


def _shortened(lines: list[str], what: str) -> list[str]:
    """Return the first lines, and how many more there are."""
    if len(lines) <= _SHOWN:
        return lines
    return [*lines[:_SHOWN], f"... {len(lines) - _SHOWN:,} more {what}; pass --report to list all"]


class TranslationMemory:
    """A run in an open work folder; its methods are the steps.

    Args:
        work: the workspace.
        config: of the memory.
        encode: computes vectors of length 1.
        model: identity of the model and its settings.
        progress: receives the progress of the work.
    """

    def __init__(
        self,
        work: Workspace,
        config: MemoryConfig,
        encode: Encode,
        model: str,
        progress: Progress = SILENT,
    ) -> None:
        self.work = work
        self.config = config
        self.encode = encode
        self.model = model
        self.progress = progress
        self.report = MemoryReport()
        self.curve: Calibration | None = None

    def read(
        self, files: Sequence[DocumentFile], left_out: Sequence[LeftOut]
    ) -> tuple[DocumentSide, DocumentSide]:
        """Read all documents, and number the sentences of both sides."""
        work = self.work
        key = [[str(file.path), file.side] for file in files]
        whole_key = [_digest(key), list(self.config.languages)]
        if not work.is_done("units", whole_key):
            with work.step("units", whole_key) as folder:
                left = read_documents(
                    files, self.config.languages, folder / "units.jsonl", self.progress
                )
                # The files that are left out, and the doubts.
                text = json.dumps(left, ensure_ascii=False)
                (folder / "left-out.json").write_text(text, encoding="utf-8")
                # If a side is empty, the step is not finished, because other documents or languages
                # need another one. So the error leaves no work folder.
                self._assign(folder, left_out)
        chosen, unreadable, self.report.notes = self._assign(work.path / "units", left_out)
        self.report.left_out = [*unreadable, *chosen.left_out]
        self.report.languages = chosen.codes
        # Refuse a calibration of other languages or of another model before the long work starts.
        if self.config.calibration is not None:
            self.curve = load_calibration(self.config.calibration, *chosen.codes, model=self.model)
        sides = []
        for side, name in enumerate(_SIDES):
            sides.append(self._number(side, name, chosen.codes[side], chosen.sides))
        self.report.documents = (len(sides[0].entries), len(sides[1].entries))
        return sides[0], sides[1]

    def _assign(
        self, folder: Path, left_out: Sequence[LeftOut]
    ) -> tuple[SideLanguages, list[LeftOut], list[str]]:
        """Return the side of each document that was read.

        Args:
            folder: of the step that reads the documents.
            left_out: files that were left out before they were read.

        Returns:
            The sides, all files that were not read, and the doubts about the others.

        Raises:
            DataError: a side has no document, or a language can't be found.
        """
        left, notes = parse_json((folder / "left-out.json").read_text(encoding="utf-8"))
        unreadable = [*left_out, *(LeftOut(*one) for one in left)]
        documents = stored_documents(folder / "units.jsonl")
        return assign_sides(documents, self.config.languages, unreadable), unreadable, notes

    def _number(self, side: int, name: str, code: str, places: Sequence[int]) -> DocumentSide:
        """Split the documents of a side into numbered sentences, in a separate workspace step."""
        called = ("source", "target")[side]
        key = [self.work.digest("units"), code]
        if not self.work.is_done(name, key):
            documents = stored_documents(self.work.path / "units" / "units.jsonl")
            own = (one for one, place in zip(documents, places, strict=True) if place == side)
            with self.work.step(name, key) as folder:
                write_documents(own, code, folder, name=called, progress=self.progress)
        return load_documents(self.work.path / name, code)

    def embed(
        self, sides: tuple[DocumentSide, DocumentSide]
    ) -> tuple[Float32[ndarray, "n d"], Float32[ndarray, "m d"]]:
        """Embed the distinct sentences of both sides."""
        found = []
        for name, side in zip(_SIDES, sides, strict=True):
            folder = self.work.path / f"vectors-{name}"
            identity = {
                "model": self.model,
                "texts": self.work.digest(name),
                "language": side.language,
            }
            check_identity(folder, identity)
            drop_damaged(folder, len(side.numbered))
            embed_side(
                side.numbered,
                lambda texts, code=side.language: self.encode(texts, language=code),
                folder,
                identity=identity,
                label=f"embedding {resolve_language(side.language).name}",
                progress=self.progress,
            )
            found.append(load_vectors(folder))
        return found[0], found[1]

    def pair(
        self,
        sides: tuple[DocumentSide, DocumentSide],
        vectors: tuple[Float32[ndarray, "n d"], Float32[ndarray, "m d"]],
    ) -> PairedDocuments:
        """Pair the documents in a separate workspace step."""
        config = self.config
        given = None
        if config.pairs is not None:
            given = read_pairs_file(config.pairs, sides)
        key = [
            *(self.work.digest(name) for name in _SIDES),
            *(self.model, config.match, config.threshold, given and _digest(given)),
        ]
        if not self.work.is_done("pairs", key):
            found = pair_documents(
                sides,
                vectors,
                match=config.match,
                given=given,
                threshold=config.threshold,
                device=config.device,
                progress=self.progress,
            )
            with self.work.step("pairs", key) as folder:
                (folder / "pairs.json").write_text(json.dumps(found), encoding="utf-8")
        content = (self.work.path / "pairs" / "pairs.json").read_text(encoding="utf-8")
        pairs, threshold, sources, targets, doubtful = parse_json(content)
        paired = PairedDocuments(
            [DocumentPairing(*one) for one in pairs],
            threshold,
            [BestCandidate(*one) for one in sources],
            [BestCandidate(*one) for one in targets],
            [DocumentPairing(*one) for one in doubtful],
        )
        self._report_pairs(paired, sides)
        return paired

    def _report_pairs(
        self, paired: PairedDocuments, sides: tuple[DocumentSide, DocumentSide]
    ) -> None:
        """Note documents without a partner and doubtful pairs in the report."""
        self.report.threshold = paired.threshold
        entries = [side.entries for side in sides]
        for own, alone in ((0, paired.sources), (1, paired.targets)):
            for document, candidate, score in alone:
                other = entries[1 - own][candidate].path if candidate >= 0 else ""
                self.report.unpaired.append((entries[own][document].path, other, score))
        for pairing in paired.doubtful:
            source, target = entries[0][pairing.source], entries[1][pairing.target]
            self.report.doubtful.append((source.path, target.path, pairing.score))

    def align(
        self,
        sides: tuple[DocumentSide, DocumentSide],
        vectors: tuple[Float32[ndarray, "n d"], Float32[ndarray, "m d"]],
        paired: PairedDocuments,
    ) -> list[DocumentLinks]:
        """Align the sentences of each pair of documents; finished pairs are in a journal."""
        folder = self.work.path / "aligned"
        folder.mkdir(exist_ok=True)
        journal = Journal(folder / "aligned.journal")
        head = {
            "pairs": self.work.digest("pairs"),
            "model": self.model,
            "align": str(self.config.align),
        }
        # Links of other settings are made anew.
        if journal.head() not in (None, head) and not journal.is_foreign():
            journal.write([head])
        done = {}
        for value in journal.resume(head, remedy=_REMEDY):
            kept = _parse_links(value)
            done[kept.pair] = kept
        self.progress.start(len(paired.pairs), "documents", "aligning", done=len(done))
        found = []
        for number, pairing in enumerate(paired.pairs):
            links = done.get(number)
            if links is None:
                links = link_documents(
                    number,
                    (pairing.source, pairing.target),
                    sides,
                    vectors,
                    self.encode,
                    self.config.align,
                )
                journal.add(links)
                self.progress.advance()
            found.append(links)
        return found

    def probabilities(
        self,
        sides: tuple[DocumentSide, DocumentSide],
        paired: PairedDocuments,
        found: Sequence[DocumentLinks],
    ) -> list[Float64[ndarray, " n"]]:
        """Return for each document pair the probabilities of links with sentences on both sides."""
        if not found:
            return []
        scores = [_scores_of(one) for one in found]
        # Estimate the probabilities of all documents together, then split them by document pair.
        sizes = np.cumsum([len(own) for own in scores])[:-1]
        if self.curve is not None:
            values = self._calibrated(self.curve, sides, paired, found)
        else:
            wrong = np.array([score for one in found for score in one.wrong])
            values = estimate_probabilities(np.concatenate([np.zeros(0), *scores]), wrong)
        return np.split(values, sizes)

    def _calibrated(
        self,
        curve: Calibration,
        sides: tuple[DocumentSide, DocumentSide],
        paired: PairedDocuments,
        found: Sequence[DocumentLinks],
    ) -> Float64[ndarray, " n"]:
        """Score the links as ``score`` does, and return their probabilities by its calibration."""
        config = ScoreConfig.of_scoring(curve.scoring)
        pairs = _texts_of_links(sides, paired, found)
        scorer = BitextScorer(self.encode, config)
        # The empty array makes the result float64, and is the result if there is no block.
        scores = np.concatenate([np.zeros(0), *(block.scores for block in scorer.score(pairs))])
        if not len(scores):
            return scores
        return curve.probability(scores, prior=curve.estimate_share(scores))

    def pairs(
        self,
        sides: tuple[DocumentSide, DocumentSide],
        paired: PairedDocuments,
        found: Sequence[DocumentLinks],
        worst: int = 5,
    ) -> Iterator[TextPair]:
        """Yield the linked sentences of all documents, and note the coverage of each pair.

        Args:
            sides: all documents.
            paired: which belong together.
            found: their links.
            worst: number of links with the lowest scores to keep per pair of documents.
        """
        probabilities = self.probabilities(sides, paired, found)
        for pairing, links, own in zip(paired.pairs, found, probabilities, strict=True):
            numbers = (pairing.source, pairing.target)
            rows = linked_pairs(links, numbers, sides, own.tolist())
            self.report.links += len(rows)
            self.report.paired.append(_coverage(pairing, links.links, sides, rows, worst))
            for row, probability in zip(rows, own.tolist(), strict=True):
                least = self.config.probability
                if least is None or probability >= least:
                    self.report.written += 1
                    yield row
        self._doubt_unrelated()

    def _doubt_unrelated(self) -> None:
        """Report document pairs with links that score like unrelated texts."""
        known = {(source, target) for source, target, _ in self.report.doubtful}
        for one in self.report.paired:
            is_few = one.links < 3 and one.pairing.by == "texts"
            if one.median < UNRELATED and one.paths not in known and not is_few:
                self.report.doubtful.append((*one.paths, one.pairing.score))


def _coverage(
    pairing: DocumentPairing,
    links: Sequence[Link],
    sides: tuple[DocumentSide, DocumentSide],
    rows: Sequence[TextPair],
    worst: int,
) -> PairCoverage:
    joining = [link for link in links if link.source and link.target]
    scores = [float(row.score or 0) for row in rows]
    order = sorted(range(len(scores)), key=lambda place: scores[place])[:worst]
    return PairCoverage(
        pairing,
        (sides[0].entries[pairing.source].path, sides[1].entries[pairing.target].path),
        (len(sides[0].rows(pairing.source)), len(sides[1].rows(pairing.target))),
        (sum(len(link.source) for link in joining), sum(len(link.target) for link in joining)),
        len(rows),
        float(np.median(scores)) if scores else 0.0,
        [rows[place] for place in order],
    )


def read_pairs_file(
    path: PathLike, sides: tuple[DocumentSide, DocumentSide]
) -> list[tuple[int, int]]:
    """Return the pairs of documents that a file names, source TAB target in every line.

    Raises:
        DataError: a line names an unknown document, or one that is already in a pair.
    """
    places = [_places(side) for side in sides]
    found = []
    seen: tuple[set[int], set[int]] = (set(), set())
    for line, cells in tab_rows(path):
        if not any(cells) or cells[0].startswith("#"):
            continue
        if len(cells) < 2:
            raise DataError(
                "expected source TAB target, found 1 column; correct the line", path=path, line=line
            )
        numbers = []
        # Further columns, such as a score, are ignored.
        for side, cell in enumerate(cells[:2]):
            name = cell.strip()
            number = places[side].get(name)
            if number is None:
                called = ("source", "target")[side]
                raise DataError(
                    f"{name} is not one of the {len(sides[side].entries):,} {called} documents;"
                    " use its path, or its path relative to the folder",
                    path=path,
                    line=line,
                )
            if number in seen[side]:
                raise DataError(f"{name} is in two pairs; remove one of them", path=path, line=line)
            seen[side].add(number)
            numbers.append(number)
        found.append((numbers[0], numbers[1]))
    if not found:
        raise DataError(
            "the file contains no pair; expected source TAB target in every line", path=path
        )
    return found


def _places(side: DocumentSide) -> dict[str, int]:
    """Return the number of each document by its path, and by its name if that is unique."""
    names = Counter(entry.name for entry in side.entries)
    found = {
        entry.name: number for number, entry in enumerate(side.entries) if names[entry.name] == 1
    }
    return found | {entry.path: number for number, entry in enumerate(side.entries)}


def _parse_links(value: Any) -> DocumentLinks:
    pair, links, wrong = value
    return DocumentLinks(
        pair, [Link(tuple(source), tuple(target), cost) for source, target, cost in links], wrong
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _scores_of(links: DocumentLinks) -> Float64[ndarray, " n"]:
    """Return 1 - cost of the links that join sentences of both documents."""
    return np.array([1 - link.cost for link in links.links if link.source and link.target])


def _texts_of_links(
    sides: tuple[DocumentSide, DocumentSide],
    paired: PairedDocuments,
    found: Sequence[DocumentLinks],
) -> Iterator[TextPair]:
    """Yield the linked texts of all documents, without probabilities."""
    for pairing, links in zip(paired.pairs, found, strict=True):
        documents = (pairing.source, pairing.target)
        unknown = [np.nan] * len(_scores_of(links))
        for pair in linked_pairs(links, documents, sides, unknown):
            yield TextPair(*pair[:4])
