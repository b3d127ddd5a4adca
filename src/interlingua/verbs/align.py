"""``interlingua.align`` and ``interlingua align``: the sentences of two documents, linked."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from interlingua.config.options import (
    INPUT,
    MODEL,
    OUTPUT,
    argument,
    filled,
    function_of,
    option,
)
from interlingua.errors import ConfigError, DataError, LanguageError
from interlingua.report.rows import RowList
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import (
    AlignmentOptions,
    ColumnOptions,
    FolderModelOptions,
    SplitOptions,
    as_path,
    is_folder_or_pattern,
    is_output_folder,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.alignment.align import AlignReport, DocumentPair
    from interlingua.alignment.sentence_alignment import Link
    from interlingua.encoder.protocol import Encode


class Links(RowList["Link"]):
    """The links between the sentences of documents; each sentence is in one link.

    The list is empty if the links were written to files. ``records`` also names the documents of
    each link if the documents are files of folders.

    Args:
        links: for each link the numbers of its source and target sentences, and its cost.
        report: outcomes of all documents.
        documents: number of documents to align.
        sentences: source sentences and target sentences, if both documents are lists.
    """

    columns_if_empty = ("source", "target", "cost")

    def __init__(
        self,
        links: Iterable[Link],
        report: AlignReport,
        documents: int = 1,
        sentences: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        super().__init__(links)
        self.report = report
        self.documents = documents
        self.sentences = sentences

    def records(self) -> list[dict[str, Any]]:
        """Return the links, with their sentences if both documents are lists."""
        if self.report.labels and len(self.report.labels) == len(self):
            names = self.report.labels
            return [
                {"file": name, **link._asdict()} for name, link in zip(names, self, strict=True)
            ]
        if self.sentences is None:
            return super().records()
        source, target = self.sentences
        return [
            {
                **link._asdict(),
                "source_text": " ".join(source[number] for number in link.source),
                "target_text": " ".join(target[number] for number in link.target),
            }
            for link in self
        ]


@dataclass(frozen=True)
class AlignOptions(FolderModelOptions, ColumnOptions, AlignmentOptions, SplitOptions):
    """Options of ``align``."""

    source: PathLike | Sequence[str] | None = argument(
        "A document: one sentence per line, a table (.csv, .xlsx), or any document with --split; or"
        " a folder or 'pattern' of many documents.",
        None,
        kind=str,
        reads="text or folder",
    )
    target: PathLike | Sequence[str] | None = argument(
        "The translation of the document, in the same formats; without it, SOURCE is a folder of"
        " both languages.",
        None,
        kind=str,
        reads="text or folder",
    )
    # In place of the two documents.
    documents: PathLike | None = option(
        None,
        "File with a pair of documents per line: source TAB target [TAB output for links [TAB"
        " right links]].",
        group=INPUT,
        kind=Path,
        flags=("--list",),
        reads="document list",
    )
    output: PathLike | None = output_option(
        "File for the links, by default standard output; with --list, a folder; with folders or"
        " patterns, a folder or one file for all links."
    )
    texts: PathLike | None = option(
        None,
        "File for the linked sentences as bitext, with score = 1 - cost: .tsv, .csv, .xlsx,"
        " .jsonl, .tmx or the prefix of two Moses files.",
        group=OUTPUT,
        kind=Path,
    )
    gold: PathLike | None = option(
        None,
        "File of right links, one per line in the form [0, 1]:[2], or a ladder of hunalign; prints"
        " precision, recall and F1.",
        group=OUTPUT,
        kind=Path,
        reads="file",
    )
    prompt: str | None = option(
        None,
        "Prompt before every block of sentences: the name of a prompt of the model, or a text.",
        group=MODEL,
    )

    @property
    def is_several(self) -> bool:
        """True if documents are in folders or match a pattern."""
        return any(map(is_folder_or_pattern, (self.source, self.target)))


def run_align(
    options: AlignOptions,
    progress: Progress = SILENT,
    stdout: TextIO | None = None,
) -> Links:
    """Align the sentences of a document with those of its translation.

    The method is Vecalign's (Thompson and Koehn 2019). The documents are files, or lists of
    sentences in their order. The files of folders and patterns are paired by their names.

    Args:
        options: of the verb.
        progress: receives the progress of the work.
        stdout: receives the links of documents that have no output.

    Returns:
        The links. If there is an output, they are written to it, and the list is empty.

    Raises:
        ConfigError: an option is wrong.
        DataError: a document has no sentence, or a file can't be read; of several pairs: no pair
            could be aligned.
    """
    # A string is the name of a file; None is allowed with a list of documents.
    sides = (options.source, options.target)
    are_lists = not all(isinstance(side, str | os.PathLike | None) for side in sides)
    if are_lists:
        _refuse_options_of_files(options)
    elif options.documents is None and None in sides and not is_folder_or_pattern(options.source):
        raise ConfigError(
            "expected two documents, or a list of document pairs; in Python:"
            " interlingua.align(model, source, target) or interlingua.align(model,"
            " documents=FILE, output=FOLDER); on the command line: interlingua align SOURCE"
            " TARGET or interlingua align --list FILE -o FOLDER"
        )
    check_inputs(options)
    from interlingua.verbs.parts.models import open_model

    if are_lists:
        return _align_lists(options)
    check_align(options)
    # A run over many documents can resume, but only with the same model.
    is_identified = options.documents is not None or options.is_several
    encode, identity = open_model(options, identified=is_identified)
    return align_files(options, encode, identity, stdout=stdout, progress=progress)


def align_files(
    options: AlignOptions,
    encode: Encode,
    model: str,
    *,
    stdout: TextIO | None = None,
    progress: Progress = SILENT,
) -> Links:
    """Link the sentences of documents in files; see ``run_align``.

    Args:
        options: of the verb.
        encode: function that returns vectors of length 1.
        model: identity of the model.
        stdout: receives the links of documents that have no output.
        progress: receives the progress of the work.
    """
    from interlingua.alignment.align import Aligner, align_documents, join_links
    from interlingua.alignment.sentence_alignment import AlignConfig

    documents, unpaired = check_align(options)
    # For many documents, a journal next to the links lets an interrupted run resume.
    folder = None
    output = as_path(options.output)
    joined = None
    if options.is_several and output is not None and not is_output_folder(output):
        joined = output
        folder = _links_folder(output)
    elif options.documents is not None or (options.is_several and output is not None):
        folder = output or Path(documents[0].output or "").parent
    aligner = Aligner(
        encode,
        filled(AlignConfig, options),
        source_language=options.source_language,
        target_language=options.target_language,
        split=options.split,
        columns=(
            options.column_choice(options.source_column),
            options.column_choice(options.target_column),
        ),
    )
    aligner.report.unpaired += unpaired
    report = align_documents(
        aligner,
        documents,
        journal_folder=folder,
        texts=as_path(options.texts),
        model=model,
        stdout=stdout or io.StringIO(),
        progress=progress,
    )
    if joined is not None:
        # After a failure the folder is kept, so that the same command skips finished documents.
        join_links(documents, joined, keep=bool(report.failed))
    return Links(report.links, report, len(documents))


def _links_folder(output: Path) -> Path:
    """Return the folder that holds the links of each pair until they are joined in one file."""
    return output.with_name(f"{output.name}.work")


def check_align(options: AlignOptions) -> tuple[list[DocumentPair], list[str]]:
    """Check inputs and outputs, and list the documents to align.

    Returns:
        The pairs of documents, and the reasons why files of folders are left out.

    Raises:
        ConfigError: an option has a wrong value, or does not go with another.
        DataError: files of folders can't be paired by their names.
    """
    from interlingua.alignment.align import check_alignment, list_document_pairs
    from interlingua.verbs.parts.text_sides import refuse_pairs

    source: Any = options.source
    target: Any = options.target
    list_file = as_path(options.documents)
    unpaired: list[str] = []
    if options.is_several and list_file is None:
        documents, unpaired = _pair_folders(options)
    else:
        documents = list_document_pairs(source, target, list_file, options.output, options.gold)
        for path in (source, target) if list_file is None else ():
            refuse_pairs(path, split=options.split)
    check_alignment(
        documents,
        (options.source_language, options.target_language),
        list_file=list_file,
        texts=as_path(options.texts),
        split=options.split,
    )
    return documents, unpaired


def _pair_folders(options: AlignOptions) -> tuple[list[DocumentPair], list[str]]:
    """List the pairs of documents of folders or patterns, by their names.

    Returns:
        The pairs, and the reasons why the other files are left out.

    Raises:
        ConfigError: an option is set that is only for two documents.
    """
    from interlingua.alignment.align import DocumentPair, document_languages, refuse_bitext_name
    from interlingua.corpus.documents.finding import LeftOut
    from interlingua.verbs.parts.text_sides import (
        left_out_reasons,
        list_sides_of_text,
        pair_files_by_name,
    )

    source: Any = options.source
    target: Any = options.target
    given = (options.source_language, options.target_language)
    if options.gold is not None:
        raise ConfigError(
            "--gold is for two documents, found folders; name the gold links in the fourth column"
            " of --list"
        )
    folder = as_path(options.output)
    if folder is not None and not is_output_folder(folder):
        refuse_bitext_name(str(folder))
        if options.split and options.texts is None:
            raise ConfigError(
                "--split: the links refer to sentences that no file contains; pass a folder as"
                " --output, or pass --texts"
            )
        folder = _links_folder(folder)
    one, others, left_out = list_sides_of_text(source, target, given, split=options.split)
    documents = []
    for pair in pair_files_by_name(one, others, left_out):
        output = None if folder is None else str(folder / f"{pair.label}.align")
        found = DocumentPair(
            pair.source, pair.target, output, label=pair.label, languages=pair.languages
        )
        try:
            document_languages(found, given)
        except LanguageError as error:
            left_out.append(LeftOut(pair.label, str(error)))
            continue
        documents.append(found)
    if not documents:
        reason = left_out[-1].reason
        raise DataError(f"no document can be aligned; reason for the last: {reason}", path=source)
    return documents, left_out_reasons(left_out)


def _refuse_options_of_files(options: AlignOptions) -> None:
    """Refuse options that require documents in files, because the sides are lists.

    Raises:
        ConfigError: such an option is set.
    """
    names = ("documents", "output", "texts", "gold", "split", "source_column", "target_column",
             "sheet", "header_row")  # fmt: skip
    for name in names:
        if getattr(options, name):
            raise ConfigError(f"{name} requires documents in files; remove it, or pass two files")


def _align_lists(options: AlignOptions) -> Links:
    """Link the sentences of two lists in memory; no file is written."""
    from interlingua.alignment.align import Aligner
    from interlingua.alignment.sentence_alignment import AlignConfig
    from interlingua.encoder.texts import checked_texts
    from interlingua.verbs.parts.models import open_model

    encode, _ = open_model(options, identified=False)
    aligner = Aligner(
        encode,
        filled(AlignConfig, options),
        source_language=options.source_language,
        target_language=options.target_language,
    )
    # Each text is checked when it is read; the error for an invalid text names its number.
    # A column of a table has no truth value, so `side or ()` would fail.
    sides: list[Any] = [() if side is None else side for side in (options.source, options.target)]
    source = list(checked_texts(sides[0], "source"))
    target = list(checked_texts(sides[1], "target"))
    links = aligner.links(source, target)
    aligner.count(links, None, source, target)
    return Links(links, aligner.report, sentences=(source, target))


align = function_of(AlignOptions, run_align, "align")
