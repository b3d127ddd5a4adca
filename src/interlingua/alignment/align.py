"""Documents linked sentence by sentence with an encoder.

Sentences are read from files or lists (``DocumentPair``, ``read_document_sentences``). An
``Aligner`` embeds blocks (consecutive sentences) of up to ``max_sentences - 1`` sentences, links
them with ``align_blocks``, and puts each blank line back in its place, without a link.
``align_documents`` does this for two documents or for a list of them; a run that resumes skips the
documents that are done. Links are written in vecalign's format.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray

from interlingua.alignment.cue_times import CueSpans, TimeMap, fit_times
from interlingua.alignment.ladders import is_rung, is_text_rung, read_ladder
from interlingua.alignment.sentence_alignment import (
    AlignConfig,
    Alignment,
    BlockVectors,
    KnownBlocks,
    Link,
    LinkCounts,
    align_blocks,
    doubtful_blocks,
    sides_of,
)
from interlingua.corpus.documents.kinds import HTML_SUFFIXES, OFFICE_SUFFIXES, is_document
from interlingua.corpus.documents.reading import read_document_as_sentences
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    PairOfTable,
    PairWithFields,
    TextPair,
    guess_format,
    write_pairs,
)
from interlingua.corpus.formats.localization.subtitle_pairs import cue_time
from interlingua.corpus.formats.localization.subtitles import is_subtitle_name, read_cues
from interlingua.corpus.formats.monolingual import find_language, language_of
from interlingua.corpus.formats.sentence_table import (
    ColumnChoice,
    is_table,
    read_column,
    refuse_column,
)
from interlingua.corpus.segments.sentence_splitting import split_text
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.protocol import Encode
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.mining.pipeline import left_out_lines
from interlingua.mining.vectors import embed_texts
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import (
    PathLike,
    atomic_write,
    is_below,
    open_text,
    sha256_file,
    stem_and_suffix,
)
from interlingua.storage.journal import Journal
from interlingua.storage.locks import exclusive
from interlingua.storage.remote import keep_inputs

BITEXT_SUFFIXES = (".csv", ".xlsx", ".xlsm", ".tmx", ".jsonl", ".ndjson")
"""Suffixes of files that hold the linked sentences, and not the links."""
_OF_ONE_PAIR = ("tsv", "moses", "gettext", "xliff", "huggingface")
"""Formats of bitext with one language pair."""
FEWEST_LINKS = 3
"""Minimum number of links for a meaningful median."""
UNRELATED = 0.1
"""Median score of links below which two documents look unrelated. Links between 20 sentences and an
unrelated text have a median within 0.1 of 0, for different models and for language pairs from
English-German to English-Telugu; links between translations have a median of 0.29 to 0.95."""
_JOURNAL = "align.journal"
_NAMED_ERRORS = 3
"""Errors in the message of documents of which none can be aligned."""
LOCK = ".align.lock"
_LINK = re.compile(
    r"\s*\[([\d\s,]*)\]\s*:\s*\[([\d\s,]*)\]\s*(?::\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*)?"
)


class DocumentPair(NamedTuple):
    """Two files with one sentence per line, and their languages, output and gold links.

    Attributes:
        source: path of the source document.
        target: path of the target document.
        output: where their links go; None = standard output.
        gold: path of the file with the correct links, if there is one.
        label: names the pair in outputs of several pairs; empty for one pair.
        languages: of source and target, if the names of their folders indicate them.
    """

    source: str
    target: str
    output: str | None = None
    gold: str | None = None
    label: str = ""
    languages: tuple[str, str] | None = None


def read_document_sentences(
    path: PathLike,
    *,
    split_as: str | None = None,
    column: ColumnChoice = None,
    language: str | None = None,
) -> list[str]:
    """Read the sentences of a document: its lines, a table's column, or its text after splitting.

    Blank lines are included. With ``split_as``, text is split into sentences;
    documents of the kinds that ``is_document`` accepts are split unit by unit.

    Args:
        path: the file.
        split_as: the language by which text is split, empty if it is unknown; None = a sentence
            per line.
        column: of a table, see ``sentence_table.read_column``.
        language: a column of a table may be named after this language.

    Raises:
        DataError: the file is missing, is not UTF-8, or holds nothing but blank lines.
    """
    refuse_column(column, path)
    if split_as is None and stem_and_suffix(path)[1] in (*OFFICE_SUFFIXES, *HTML_SUFFIXES):
        raise DataError(
            "this is a document of paragraphs, expected one sentence per line; pass --split to"
            " split it into sentences",
            path=path,
        )
    if split_as is not None and is_document(path):
        return read_document_as_sentences(path, split_as)
    if is_table(path):
        sentences = list(read_column(path, column=column, language=language))
    else:
        with open_text(path) as lines:
            sentences = [line.rstrip("\r\n") for line in lines]
    if not any(map(str.strip, sentences)):
        raise DataError("the document contains no text; expected one sentence per line", path=path)
    if split_as is None:
        return sentences
    return split_text(sentences, split_as)


def sentence_files(links: PathLike) -> tuple[str, str]:
    """Return the paths for the sentences of two split documents, next to the file of links."""
    return f"{links}.source.txt", f"{links}.target.txt"


def write_sentences(links: PathLike, source: Sequence[str], target: Sequence[str]) -> None:
    """Write the sentences to which the sentence numbers in the links refer, one per line."""
    for path, sentences in zip(sentence_files(links), (source, target), strict=True):
        with atomic_write(path) as file:
            file.writelines(f"{sentence}\n" for sentence in sentences)


def pair_languages(
    source: PathLike, target: PathLike, given: tuple[str | None, str | None] = (None, None)
) -> tuple[str, str]:
    """Return the languages of two documents, as specified or as indicated by both names.

    A name indicates a language only if the other name indicates another one: ``to.txt`` need not be
    Tongan. An unknown language is empty; a known one is compared with the text.

    Args:
        source: path of the source.
        target: path of the target.
        given: the languages that the user specified, as any kind of code; None if unspecified.

    Raises:
        DataError: a specified language is unknown, or a text is in another script.
    """
    named = [find_language(Path(path)) or "" for path in (source, target)]
    if named[0] == named[1] or not all(named):
        named = ["", ""]
    codes = []
    for path, request, own, side in zip(
        (source, target), given, named, ("source", "target"), strict=True
    ):
        code = ""
        if request or own:
            code = language_of(Path(path), request, option=f"--{side}-language")
        codes.append(code)
    return codes[0], codes[1]


def document_languages(
    pair: DocumentPair, given: tuple[str | None, str | None] = (None, None)
) -> tuple[str, str]:
    """Return the languages of a pair: as given, else from its folders or ``pair_languages``."""
    if pair.languages is None:
        return pair_languages(pair.source, pair.target, given)
    # Languages from options take precedence over those from folders.
    named = (given[0] or pair.languages[0], given[1] or pair.languages[1])
    return pair_languages(pair.source, pair.target, named)


def list_document_pairs(
    source: PathLike | None,
    target: PathLike | None,
    list_file: PathLike | None = None,
    output: PathLike | None = None,
    gold: PathLike | None = None,
) -> list[DocumentPair]:
    """Return the pairs to align: two files, or those of a list.

    Args:
        source: path of the source document.
        target: path of the target document.
        list_file: see ``read_list``; replaces source and target.
        output: file for the links, standard output by default; with a list a folder.
        gold: file with the correct links; a list names such files in a column instead.

    Raises:
        ConfigError: neither two documents nor a list are specified, or both are; a list has no
            folder for the links; or the file of links has a suffix of a bitext.
    """
    if list_file is None:
        if source is None or target is None:
            raise ConfigError(
                "SOURCE and TARGET are missing; pass two documents, or a list of many document"
                " pairs with --list"
            )
        links, right = (None if name is None else str(name) for name in (output, gold))
        refuse_bitext_name(links)
        return [DocumentPair(str(source), str(target), links, right)]
    if source is not None or gold is not None:
        raise ConfigError(
            "--list cannot be combined with SOURCE, TARGET or --gold; remove them (the fourth"
            " column of the list names gold links)"
        )
    found = read_list(list_file, output)
    if any(pair.output is None for pair in found):
        raise ConfigError(
            "the links of several documents cannot be written to standard output; pass a folder"
            " with --output, or name files in the third column of the list"
        )
    return found


def check_bitext_languages(path: PathLike | None, languages: Iterable[tuple[str, str]]) -> None:
    """Refuse a bitext format that requires languages if some are unknown, before the work starts.

    Args:
        path: of the bitext; None if no bitext is written.
        languages: of each document pair, see ``pair_languages``.

    Raises:
        ConfigError: the languages are missing.
    """
    # The languages may differ from one document pair to the next.
    found = list(languages)
    known = all(source and target for source, target in found)
    if path is not None and len(set(found)) > 1 and guess_format(path) in _OF_ONE_PAIR:
        raise ConfigError(
            f"{path}: this format has one language pair, found {found[0]} and others; name a .jsonl"
            " or .tmx file, or pass --source-language and --target-language"
        )
    # A table has columns of languages, which may be empty.
    if path is not None and guess_format(path) not in ("tsv", "csv", "xlsx") and not known:
        raise ConfigError(
            f"{path}: this format requires languages; pass --source-language and"
            " --target-language, or use file names with languages, such as chapter.de.txt"
        )


def refuse_bitext_name(links: str | None) -> None:
    """Refuse a name for the links if it has a suffix that is for files of linked sentences.

    Raises:
        ConfigError: the name has such a suffix.
    """
    if not links:
        return
    suffix = stem_and_suffix(links)[1]
    if suffix in BITEXT_SUFFIXES:
        raise ConfigError(
            f"{links}: links are written as lines of text such as [0, 1]:[2]:0.12, not as"
            f" {suffix}; use another file name, or --texts {links} to write the linked sentences"
        )


def read_list(path: PathLike, folder: PathLike | None = None) -> list[DocumentPair]:
    """Read the documents of a list.

    Args:
        path: of the list. Each line is ``source TAB target``, optionally followed by TAB and the
            file for the links, and then by TAB and the file of gold links. Blank lines and lines
            that start with ``#`` are ignored.
        folder: for the links. If a line names no file for them, the file is named after the source,
            with ``.align`` appended.

    Raises:
        DataError: a line has a wrong number of columns, the links of two lines would be written to
            one file, a file for links is outside of the folder, or the list is empty.
    """
    found: list[DocumentPair] = []
    outputs: dict[str, int] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = [cell.strip() for cell in line.rstrip("\r\n").split("\t")]
            if len(cells) not in (2, 3, 4) or not all(cells[:2]):
                expected = "source TAB target, optionally followed by TAB links TAB gold"
                raise DataError(
                    f"expected {expected}, found {count_of(len(cells), 'columns')}; correct the"
                    " line",
                    path=path,
                    line=number,
                )
            # Columns that are left out are empty.
            source, target, output, gold = (*cells, "", "")[:4]
            if folder is not None:
                output = output or f"{Path(source).name}.align"
                # A list may come from elsewhere, and must not name files outside of the folder.
                if not is_below(Path(folder, output), Path(folder)):
                    raise DataError(
                        f"the links would be written to {output}, outside of {os.fspath(folder)};"
                        " name a file in this folder in the third column, or remove --output",
                        path=path,
                        line=number,
                    )
                output = str(Path(folder, output))
            # Two sources in different folders may have the same name, or a line may be repeated.
            if output and output in outputs:
                raise DataError(
                    f"the links would be written to {output}, the same file as those of line"
                    f" {outputs[output]}; name another file in the third column",
                    path=path,
                    line=number,
                )
            refuse_bitext_name(output)
            outputs[output] = number
            found.append(DocumentPair(source, target, output or None, gold or None))
    if not found:
        raise DataError("the list is empty; expected source TAB target in every line", path=path)
    return found


def link_line(link: Link, label: str = "") -> str:
    """Format a link as vecalign does: ``[0, 1]:[2]:0.120000``.

    Args:
        link: of two documents.
        label: of the documents, which a tab separates from the link.
    """
    begin = f"{label}\t" if label else ""
    return f"{begin}{list(link.source)}:{list(link.target)}:{link.cost:.6f}\n"


def read_links(path: PathLike, lengths: tuple[int, int] | None = None) -> list[Link]:
    """Read links in vecalign's format, with or without a cost.

    Args:
        path: of the file.
        lengths: number of sentences of both documents.

    Raises:
        DataError: a line is not a link, or names a sentence that does not exist.
    """
    found = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            match = _LINK.fullmatch(line.rstrip("\r\n"))
            if match is None:
                got = f"found {line.strip()[:60]!r}; correct the line"
                raise DataError(
                    f"expected [0, 1]:[2] or [0, 1]:[2]:0.12, {got}", path=path, line=number
                )
            source, target = (tuple(map(int, re.findall(r"\d+", match[side]))) for side in (1, 2))
            for side, length in zip((source, target), lengths or (), strict=False):
                if side and max(side) >= length:
                    raise DataError(
                        f"sentence {max(side)} (counted from 0) does not exist in a document of"
                        f" length {length}; check that the links belong to these files",
                        path=path,
                        line=number,
                    )
            found.append(Link(source, target, float(match[3] or 0)))
    return found


def read_right_links(path: PathLike, lengths: tuple[int, int]) -> list[Link]:
    """Read links made by hand, in vecalign's format or as a ladder of hunalign.

    The first line that is not blank determines which of the two formats is read.

    Args:
        path: of the file.
        lengths: number of sentences of both documents.

    Raises:
        DataError: the file has neither format, or does not fit the documents.
    """
    with open_text(path) as lines:
        first = next(((number, line) for number, line in enumerate(lines, 1) if line.strip()), None)
    if first is None:
        return []
    number = first[0]
    line = first[1].rstrip("\r\n")
    if is_rung(line):
        return read_ladder(path, lengths)
    if is_text_rung(line):
        raise DataError(
            "the file contains sentences, as hunalign -text writes them, expected sentence"
            " numbers; run hunalign without -text",
            path=path,
            line=number,
        )
    if _LINK.fullmatch(line) is None:
        raise DataError(
            "expected [0, 1]:[2] or [0, 1]:[2]:0.12, or a ladder of hunalign (0 TAB 0 TAB 0.5),"
            f" found {line.strip()[:60]!r}; correct the line",
            path=path,
            line=number,
        )
    return read_links(path, lengths)


@dataclass(slots=True)
class AlignReport:
    """Results of all documents of a run."""

    documents: int = 0
    shapes: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Links by the number of sentences on either side."""
    blank: Counter[str] = field(default_factory=Counter)
    """Blank lines of the sources and of the targets, which are not sentences."""
    failed: list[str] = field(default_factory=list)
    """Reasons for which documents were left out."""
    gold: LinkCounts = field(default_factory=LinkCounts)
    encoded: EncodeReport = field(default_factory=EncodeReport)
    links: list[Link] = field(default_factory=list)
    """Links of documents for which no file of links is written."""
    labels: list[str] = field(default_factory=list)
    """Label of the documents of each of ``links``; an empty string for one pair of files."""
    unpaired: list[str] = field(default_factory=list)
    """Files of folders that were skipped, with the reason: another format, or no partner."""
    times: list[TimeMap] = field(default_factory=list)
    """Time maps of the pairs of subtitle files for which times were used."""
    unlike: list[str] = field(default_factory=list)
    """Warnings about documents with links that score like unrelated texts."""

    def __str__(self) -> str:
        alone = self.shapes[1, 0], self.shapes[0, 1]
        linked = {shape: count for shape, count in sorted(self.shapes.items()) if all(shape)}
        kinds = ", ".join(f"{p}-{q}: {count:,}" for (p, q), count in linked.items())
        blank = ""
        if self.blank.total():
            blank = f"; {self.blank['source']:,} and {self.blank['target']:,} blank lines"
        return (
            f"{count_of(self.documents, 'document pairs')},"
            f" {count_of(sum(linked.values()), 'links')} ({kinds or 'none'}), {alone[0]:,} source"
            f" and {alone[1]:,} target sentences without a link{blank}"
        )

    def lines(self, *, quiet: bool = False) -> list[str]:
        """Return the lines of the report; ``quiet`` omits the summary."""
        lines = left_out_lines(self.unpaired)
        lines += [f"left out: {reason}" for reason in self.failed]
        lines += [f"warning: {one}" for one in self.unlike]
        if not quiet:
            lines += map(str, self.times)
            lines.append(str(self))
        if self.encoded.cut_rows:
            lines.append(self.encoded.cuts)
        return lines + self.gold_lines

    @property
    def gold_lines(self) -> list[str]:
        """Precision, recall and F1, if there are gold links."""
        if not self.gold.links:
            return []
        kinds = {"strict": self.gold.strict_scores, "lax": self.gold.lax_scores}
        return [
            f"{kind}: precision {p:.4f}, recall {r:.4f}, F1 {f:.4f}"
            for kind, (p, r, f) in kinds.items()
        ]


class Aligner:
    """Alignment of documents with one encoder.

    Args:
        encode: see ``Encode``.
        config: how to search.
        source_language: any code of the source's language, for encoders that need it and for the
            pairs; default: the language in the file's name.
        target_language: code of the target's language, or None.
        split: the documents are plain text, to be split into sentences first.
        columns: the columns of tables (CSV, XLSX) that hold the sentences; default: those named
            after the languages, or ``text``.
    """

    def __init__(
        self,
        encode: Encode,
        config: AlignConfig | None = None,
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        split: bool = False,
        columns: tuple[ColumnChoice, ColumnChoice] = (None, None),
    ) -> None:
        self.columns = columns
        self.encode = encode
        self.config = config or AlignConfig()
        self.languages = source_language, target_language
        self.split = split
        self.report = AlignReport()

    @property
    def settings(self) -> str:
        """All that determines the links besides the model and the documents."""
        return f"{self.config} {self.languages} split={self.split} {self.columns}"

    def align(
        self,
        source: Sequence[str],
        target: Sequence[str],
        *,
        languages: tuple[str | None, str | None] | None = None,
        spans: tuple[CueSpans, CueSpans] | None = None,
        progress: Progress = SILENT,
    ) -> Alignment:
        """Find the links between two documents; a blank line is always left unlinked.

        Args:
            source: sentences.
            target: sentences of its translation.
            languages: of both documents; default: those of the aligner.
            spans: times of the sentences of subtitles.
            progress: counts the texts that are embedded.
        """
        # Blank lines are taken out here, and put back among the links in the end.
        filled = [_filled_lines(source), _filled_lines(target)]
        if not all(filled):
            raise DataError(
                "one of the two documents contains no sentence; pass documents with at least one"
                " sentence each"
            )
        blocks = []
        for side, lines, language, own_spans in zip(
            (source, target),
            filled,
            languages or self.languages,
            spans or (None, None),
            strict=True,
        ):
            encode = functools.partial(self.encode, language=language, report=self.report.encoded)
            sentences = [side[line] for line in lines]
            own = None if own_spans is None else own_spans[lines]
            blocks.append(SentenceBlocks(sentences, encode, spans=own))
        found = align_sentences(blocks[0], blocks[1], self.config, progress)
        return found._replace(
            links=with_blank_lines(found.links, filled, (len(source), len(target)))
        )

    def links(
        self,
        source: Sequence[str],
        target: Sequence[str],
        *,
        languages: tuple[str | None, str | None] | None = None,
        spans: tuple[CueSpans, CueSpans] | None = None,
        progress: Progress = SILENT,
    ) -> list[Link]:
        """Find the links between two documents, and round their costs as in a file of links.

        For the arguments, see ``align``.
        """
        found = self.align(source, target, languages=languages, spans=spans, progress=progress)
        if found.times is not None:
            self.report.times.append(found.times)
        return [link._replace(cost=round(link.cost, 6)) for link in found.links]

    def pairs(
        self,
        documents: Sequence[DocumentPair],
        *,
        stdout: TextIO,
        lenient: bool = False,
        journal: AlignJournal | None = None,
        progress: Progress = SILENT,
    ) -> Iterator[TextPair]:
        """Align documents one after the other, write their links, and yield the linked texts.

        The score of a pair is 1 - cost: 1 for equal vectors, about 0 for unrelated ones.

        Args:
            documents: to align.
            stdout: receives the links of pairs without an output file.
            lenient: record in the report which documents can't be aligned and why, and continue;
                if none can be, raise an error.
            journal: of finished documents; their links are read and not made.
            progress: counts the kilobytes of all documents.

        Raises:
            DataError: a file is missing, empty or not UTF-8, or gold links do not fit the texts;
                or, with ``lenient``, no pair of documents could be aligned.
        """
        errors: list[DataError] = []
        sizes = [(_size(pair.source) + _size(pair.target)) / 1000 for pair in documents]
        progress.start(sum(sizes), "kB", "aligning")
        for number, pair in enumerate(documents):
            progress.note(f"document {number + 1} of {len(documents)}")
            part = progress.within(sizes[number])
            languages = document_languages(pair, self.languages)
            try:
                source, target = (self._read(pair, languages, side) for side in (0, 1))
                spans = self._spans(pair)
                gold = None
                if pair.gold:
                    gold = read_right_links(pair.gold, (len(source), len(target)))
            except DataError as error:
                if not lenient:
                    raise
                errors.append(error)
                self.report.failed.append(str(error))
                continue
            if journal is not None and journal.has(pair):
                links: Sequence[Link] = read_links(pair.output or "")
            else:
                codes = (languages[0] or None, languages[1] or None)
                links = self.links(source, target, languages=codes, spans=spans, progress=part)
                # Write the sentences first, because ``_write`` records in the journal that the
                # pair is done.
                if self.split and pair.output is not None:
                    write_sentences(pair.output, source, target)
                self._write(links, pair, stdout, journal)
            name = f"document pair {number + 1} ({pair.source}, {pair.target})"
            self.count(links, gold, source, target, name)
            part.stop()
            times = functools.partial(_times_of, spans)
            for link in links:
                if link.source and link.target:
                    texts = join_sentences(source, link.source), join_sentences(target, link.target)
                    found = TextPair(*texts, *languages, score=1 - link.cost)
                    yield _with_fields(found, pair.label, times(link), is_one=len(documents) == 1)
        if errors and len(errors) == len(documents):
            _refuse_all(errors, journal)

    def _spans(self, pair: DocumentPair) -> tuple[CueSpans, CueSpans] | None:
        """Return the times of the sentences of two subtitle files; None for other documents.

        Sentences that are split anew have no times.
        """
        if self.split or not (is_subtitle_name(pair.source) and is_subtitle_name(pair.target)):
            return None
        return read_spans(pair.source), read_spans(pair.target)

    def _read(self, pair: DocumentPair, languages: tuple[str, str], side: int) -> list[str]:
        """Read the sentences of the source (0) or the target (1)."""
        language = languages[side]
        # An empty language uses the rules that all languages share.
        split_as = None
        if self.split:
            split_as = language
        return read_document_sentences(
            (pair.source, pair.target)[side],
            split_as=split_as,
            column=self.columns[side],
            language=language or None,
        )

    def _write(
        self,
        links: Sequence[Link],
        pair: DocumentPair,
        stdout: TextIO,
        journal: AlignJournal | None,
    ) -> None:
        """Write the links of two documents, and record that they are there."""
        if pair.output is None:
            self.report.links += links
            self.report.labels += [pair.label] * len(links)
            stdout.writelines(link_line(link, pair.label) for link in links)
            stdout.flush()
            return
        with atomic_write(pair.output) as file:
            file.writelines(map(link_line, links))
        if journal is not None:
            journal.add(pair)

    def count(
        self,
        links: Sequence[Link],
        gold: Sequence[Link] | None,
        source: Sequence[str],
        target: Sequence[str],
        name: str = "the documents",
    ) -> None:
        """Add the links of two documents to the report.

        Args:
            links: of the documents.
            gold: the right links, if they are known.
            source: sentences.
            target: sentences.
            name: of the documents in a warning.
        """
        self.report.documents += 1
        self._warn_of_unrelated(links, name)
        shapes = Counter((len(link.source), len(link.target)) for link in links)
        blank = Counter(
            source=len(source) - len(_filled_lines(source)),
            target=len(target) - len(_filled_lines(target)),
        )
        # Each blank line is a link with an empty side, but not an unaligned sentence.
        shapes -= Counter({(1, 0): blank["source"], (0, 1): blank["target"]})
        self.report.shapes += shapes
        self.report.blank += blank
        if gold is not None:
            self.report.gold += LinkCounts.of(links, gold)

    def _warn_of_unrelated(self, links: Sequence[Link], name: str) -> None:
        """Add a warning to the report if the scores of the links are typical of unrelated texts."""
        # Without a link there is no score. Then every sentence is unaligned.
        scores = [1 - link.cost for link in links if link.source and link.target]
        if 0 < len(scores) < FEWEST_LINKS:
            return
        middle = float(np.median(scores)) if scores else 0.0
        if middle < UNRELATED:
            self.report.unlike.append(
                f"{name}: the median score of the links is {middle:.2f}, a value typical of"
                " unrelated texts; check that the documents are translations of each other"
            )


def read_spans(path: PathLike) -> CueSpans:
    """Return the start and the end, in seconds, of each sentence of subtitles.

    The time of a cue is divided among its speakers in proportion to the lengths of their texts.
    Cues that can't be read are left out here, and also when the sentences are read.
    """
    spans: list[tuple[float, float]] = []
    for cue in read_cues(path, bad=BadLines("skip")):
        lengths = [len(speech) for speech in cue.speeches]
        borders = np.cumsum([0, *lengths]) / max(sum(lengths), 1)
        times = (cue.start + borders * (cue.end - cue.start)) / 1000
        spans += zip(times[:-1].tolist(), times[1:].tolist(), strict=True)
    return np.array(spans, np.float64).reshape(-1, 2)


def _with_fields(pair: TextPair, label: str, times: Mapping[str, str], *, is_one: bool) -> TextPair:
    """Return a pair with the label of its documents and its times, if there are any.

    Args:
        pair: of a link.
        label: of the documents; empty for two documents.
        times: of the link; empty unless both documents are subtitles.
        is_one: whether all pairs are from the same two documents, and thus have the same fields.
    """
    fields = {"file": label, **times} if label else times
    if not fields:
        return pair
    return (PairOfTable if is_one else PairWithFields).of(pair, fields)


def _times_of(spans: tuple[CueSpans, CueSpans] | None, link: Link) -> dict[str, str]:
    """Return the times of the sentences of a link in the notation of subtitles."""
    times: dict[str, str] = {}
    if spans is None:
        return times
    for begin, side, numbers in zip(("", "target_"), spans, link[:2], strict=True):
        times[f"{begin}start"] = cue_time(round(1000 * side[numbers[0], 0]))
        times[f"{begin}end"] = cue_time(round(1000 * side[numbers[-1], 1]))
    return times


def _size(path: str) -> int:
    """Return the size of a file in bytes.

    The size is 0 for a pipe and for a missing file. A missing file causes an error only when it is
    read.
    """
    if not os.path.isfile(path):
        return 0
    return os.path.getsize(path)


class SentenceBlocks:
    """Vectors of the blocks of a document, embedded on request; each distinct text once.

    Args:
        sentences: of the document, at least one.
        encode: returns the vectors of texts.
        borders: True for each sentence that must not be joined with the previous one; default: any
            two neighbors may be joined.
        headings: whether each sentence is a heading; default: none is.
        spans: times of the sentences; default: they have none.

    Attributes:
        vectors: the blocks, of all sizes that were requested.
        known: which of them are embedded.
        headings: whether each sentence is a heading.
        has_headings: whether there is a heading.
    """

    def __init__(
        self,
        sentences: Sequence[str],
        encode: Callable[[Sequence[str]], Float32[ndarray, "n d"]],
        borders: Bool[ndarray, " n"] | None = None,
        headings: Bool[ndarray, " n"] | None = None,
        spans: CueSpans | None = None,
    ) -> None:
        self.sentences = sentences
        self.spans = spans
        self.encode = encode
        self.has_headings = headings is not None and bool(headings.any())
        self.headings = np.zeros(len(sentences), bool) if headings is None else headings
        # For each sentence the number of its run: only sentences of the same run may be joined.
        self._runs = np.zeros(len(sentences), np.int64)
        if borders is not None:
            self._runs = np.cumsum(borders)
        self.known: KnownBlocks = np.zeros((0, len(sentences)), bool)
        self.vectors: BlockVectors = np.zeros((0, len(sentences), 0), np.float32)
        # For each text, the place of its vector in ``vectors``: size - 1 and last sentence.
        self._places: dict[str, tuple[int, int]] = {}

    def texts(self, size: int, needed: Bool[ndarray, " n"]) -> dict[int, str]:
        """Return the texts of needed blocks by their last sentences."""
        lasts = [last for last in np.flatnonzero(needed).tolist() if last >= size - 1]
        runs = self._runs
        lasts = [last for last in lasts if runs[last - size + 1] == runs[last]]
        return {
            last: join_sentences(self.sentences, range(last - size + 1, last + 1)) for last in lasts
        }

    def embed(self, size: int, texts: Mapping[int, str], progress: Progress = SILENT) -> None:
        """Embed the blocks of the next size, and count all of their texts as done.

        Args:
            size: number of sentences in each.
            texts: see ``texts``.
            progress: counts the texts.
        """
        new = [text for text in dict.fromkeys(texts.values()) if text not in self._places]
        made = np.zeros((0, self.vectors.shape[2]), np.float32)
        if new:
            made = embed_texts(self.encode, new, progress)
        progress.advance(len(texts) - len(new))
        level = np.zeros((1, len(self.sentences), made.shape[1]), np.float32)
        self.vectors = np.concatenate([self.vectors.reshape(-1, *level.shape[1:]), level])
        self.known = np.concatenate([self.known, np.zeros((1, len(self.sentences)), bool)])
        rows = {text: row for row, text in enumerate(new)}
        for last, text in texts.items():
            if text in rows:
                self.vectors[-1, last] = made[rows[text]]
            else:
                self.vectors[-1, last] = self.vectors[self._places[text]]
            self._places.setdefault(text, (size - 1, last))
            self.known[-1, last] = True


def align_sentences(
    source: SentenceBlocks,
    target: SentenceBlocks,
    config: AlignConfig,
    progress: Progress = SILENT,
) -> Alignment:
    """Align two documents, embedding only those blocks of several sentences that may be needed.

    Single sentences are aligned first. If a one-to-one link is in doubt, the blocks of two
    sentences are embedded, and the documents are aligned again. The same is then done with blocks
    of three sentences, and so on. If both documents have known headings, headings are linked with
    headings only. If the times of both documents are known, the links of single sentences by
    meaning determine how these times differ, and then all links are found by meaning and times.

    Args:
        source: one document.
        target: the other one.
        config: how to search.
        progress: counts the texts that are embedded.
    """
    sides = (source, target)
    needed = tuple(np.ones(len(side.sentences), bool) for side in sides)
    # A document without headings may have lost them in its format.
    kinds = None
    if source.has_headings and target.has_headings:
        kinds = (source.headings, target.headings)
    total = 0
    times: TimeMap | None = None
    spans: tuple[CueSpans, CueSpans] | None = None
    # A link has at least one sentence per side, so no block exceeds ``max_sentences - 1``.
    for size in range(1, config.max_sentences):
        texts = [side.texts(size, flags) for side, flags in zip(sides, needed, strict=True)]
        done = total
        total += sum(map(len, texts))
        progress.start(total, "texts", done=done)
        for side, wanted in zip(sides, texts, strict=True):
            side.embed(size, wanted, progress)
        known = (source.known, target.known)
        # A link has at most ``size`` sentences on a side, because larger blocks are not known yet.
        reached = replace(config, max_sentences=size + 1)
        search = functools.partial(
            align_blocks, source.vectors, target.vectors, reached, known=known, kinds=kinds
        )
        found = search(spans=spans)
        if size == 1 and source.spans is not None and target.spans is not None:
            linked = [link[:2] for link in found.links]
            times = fit_times(linked, source.spans, target.spans, seed=config.seed)
            if times is not None:
                spans = (times.spans, target.spans)
                found = search(spans=spans)
        levels = sides_of(source.vectors, target.vectors, known)
        needed = doubtful_blocks(found.links, *levels, size + 1, config.clear)
    return found._replace(times=times)


def join_sentences(sentences: Sequence[str], numbers: Iterable[int]) -> str:
    """Join consecutive sentences into one text."""
    return " ".join(sentences[number].strip() for number in numbers)


def _filled_lines(document: Sequence[str]) -> list[int]:
    """Return the numbers of the lines that are not blank."""
    return [number for number, text in enumerate(document) if text.strip()]


def with_blank_lines(
    links: Iterable[Link], filled: Sequence[Sequence[int]], lengths: tuple[int, int]
) -> tuple[Link, ...]:
    """Return links between lines instead of sentences, with every blank line unlinked in its place.

    Args:
        links: between sentences.
        filled: the line of each sentence, of either side.
        lengths: number of lines of either side.
    """
    blank = [
        deque(sorted(set(range(length)) - set(lines)))
        for length, lines in zip(lengths, filled, strict=True)
    ]
    found: list[Link] = []

    def leave_alone(source_end: int, target_end: int) -> None:
        """Add the blank lines that precede these lines and were not added yet."""
        while blank[0] and blank[0][0] < source_end:
            found.append(Link((blank[0].popleft(),), (), 0.0))
        while blank[1] and blank[1][0] < target_end:
            found.append(Link((), (blank[1].popleft(),), 0.0))

    for link in links:
        source = tuple(filled[0][number] for number in link.source)
        target = tuple(filled[1][number] for number in link.target)
        # A blank line between two sentences of one link comes before the link. If a link has no
        # sentence on a side, no blank line of this side is added: no line is before line 0.
        leave_alone(max(source, default=0), max(target, default=0))
        found.append(Link(source, target, link.cost))
    leave_alone(*lengths)
    return tuple(found)


def check_alignment(
    documents: Sequence[DocumentPair],
    languages: tuple[str | None, str | None] = (None, None),
    *,
    list_file: PathLike | None = None,
    texts: PathLike | None = None,
    split: bool = False,
) -> None:
    """Check the inputs and outputs of ``align_documents`` before a model is loaded.

    Args:
        documents: to be aligned.
        languages: of both sides, in any code.
        list_file: that names the documents.
        texts: file for the linked sentences.
        split: the documents are plain text.

    Raises:
        ConfigError: an output would replace a file that is read, or no output is named for the
            sentences that splitting makes.
        DataError: a language is unknown.
    """
    codes = [document_languages(pair, languages) for pair in documents]
    check_bitext_languages(texts, codes)
    if split and texts is None and any(pair.output is None for pair in documents):
        raise ConfigError(
            "--split requires --output or --texts, because the links refer to the numbers of the"
            " new sentences"
        )
    read = [path for pair in documents for path in (pair.source, pair.target, pair.gold)]
    links = [pair.output for pair in documents]
    sentences = [name for path in links if path and split for name in sentence_files(path)]
    keep_inputs((*links, *sentences, texts), (*read, list_file))


def _refuse_all(errors: Sequence[DataError], journal: AlignJournal | None) -> NoReturn:
    """Raise the errors of documents of which none was aligned.

    Otherwise an empty file of links would replace that of an earlier run. A journal without a
    finished document is removed.

    Raises:
        DataError: the only error, or the first ones.
    """
    if journal is not None and not journal.done:
        journal.path.unlink(missing_ok=True)
    if len(errors) == 1:
        raise errors[0]
    named = "; ".join(map(str, errors[:_NAMED_ERRORS]))
    raise DataError(
        f"none of the {len(errors):,} document pairs could be aligned; the first errors: {named}"
    )


def align_documents(
    aligner: Aligner,
    documents: Sequence[DocumentPair],
    *,
    journal_folder: Path | None = None,
    texts: PathLike | None = None,
    model: str,
    stdout: TextIO,
    progress: Progress = SILENT,
) -> AlignReport:
    """Align documents, and write their links and the linked sentences.

    Args:
        aligner: with the model, the languages and all other settings.
        documents: see ``list_document_pairs``.
        journal_folder: folder of the journal, from which a run of a list of documents resumes;
            None for two documents, which are aligned without a journal.
        texts: file for the linked sentences.
        model: identity of the model and its settings.
        stdout: receives the links of pairs without an output file.
        progress: receives the progress of the work.

    Raises:
        DataError: one of two documents can't be aligned, or no pair of several. If others can be
            aligned, the report has the error.
    """
    with contextlib.ExitStack() as stack:
        journal = None
        if journal_folder is not None:
            remedy = "choose another --output folder"
            stack.enter_context(exclusive(journal_folder, remedy=remedy, name=LOCK))
            journal = AlignJournal(journal_folder / _JOURNAL, f"{model} {aligner.settings}")
        found = aligner.pairs(
            documents,
            stdout=stdout,
            lenient=len(documents) > 1 or journal is not None,
            journal=journal,
            progress=progress,
        )
        # Documents are aligned while this iterator is consumed, so consume it even without a file.
        if texts is None:
            deque(found, maxlen=0)
        else:
            first = documents[0]
            write_pairs(
                found,
                texts,
                languages=document_languages(first, aligner.languages),
            )
        # If documents failed, the journal is kept, so that a later run aligns only these.
        if journal is not None and not aligner.report.failed:
            journal.path.unlink(missing_ok=True)
    return aligner.report


def join_links(documents: Sequence[DocumentPair], output: PathLike, *, keep: bool) -> None:
    """Write the links of all documents to one file, each line with the label of its documents.

    Args:
        documents: with a file of links each; a document that failed has none.
        output: the file of all links.
        keep: keep the files of each pair; otherwise they and their empty folders are removed.
    """
    made = [Path(pair.output) for pair in documents if pair.output is not None]
    with atomic_write(output) as file:
        for pair, path in zip(documents, made, strict=True):
            # A document that failed is named in the report.
            if path.is_file():
                file.writelines(link_line(link, pair.label) for link in read_links(path))
    if keep:
        return
    for path in made:
        for name in (path, *sentence_files(path)):
            Path(name).unlink(missing_ok=True)
        # A folder that holds anything else stays.
        with contextlib.suppress(OSError):
            os.removedirs(path.parent)


class AlignJournal:
    """Finished documents of a list: first a line of settings, then one line per document pair.

    A journal of other settings is started anew.

    Args:
        path: of the journal, which is removed when all documents are done.
        settings: determine the links, together with the documents.

    Raises:
        ConfigError: a file of that name exists and is not such a journal.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self.path = path
        self.journal = Journal(path)
        head = {"settings": settings}
        # A list is aligned anew after a change of settings: its links are simply written over.
        if self.journal.head() not in (None, head) and not self.journal.is_foreign():
            self.journal.write([head])
        done = self.journal.resume(head, remedy="remove it or choose another folder")
        self.done: set[tuple[str, ...]] = set(map(tuple, done))

    def has(self, pair: DocumentPair) -> bool:
        """Return whether these documents were aligned, and they and their links are unchanged."""
        # The digest of three files comes last, because it takes the most time.
        return (
            bool(self.done) and os.path.isfile(pair.output or "") and self._line(pair) in self.done
        )

    def add(self, pair: DocumentPair) -> None:
        """Record documents after their links are on disk."""
        self.journal.add(self._line(pair))

    def _line(self, pair: DocumentPair) -> tuple[str, ...]:
        """Return the names of the three files of finished documents, and a digest of all."""
        files = (pair.source, pair.target, pair.output or "")
        digest = hashlib.sha256("".join(map(sha256_file, files)).encode()).hexdigest()
        return (*files, *(pair.languages or ()), digest)
