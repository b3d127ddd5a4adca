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
from interlingua.errors import ConfigError
from interlingua.report.rows import RowList
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import (
    AlignmentOptions,
    ColumnOptions,
    ModelOptions,
    SplitOptions,
    as_path,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.alignment.align import AlignReport, DocumentPair
    from interlingua.alignment.sentence_alignment import Link
    from interlingua.encoder.protocol import Encode


class Links(RowList["Link"]):
    """The links of two documents, every sentence in one of them.

    It is empty where they were written to a file.

    Args:
        links: numbers of source sentences, of target sentences and the cost of each link.
        report: outcomes of all documents.
        documents: number of documents to align.
        sentences: of the source and of the target, if both are lists.
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
class AlignOptions(ModelOptions, ColumnOptions, AlignmentOptions, SplitOptions):
    """Options of ``align``."""

    source: PathLike | Sequence[str] | None = argument(
        "A document: a sentence per line, a table (.csv, .xlsx), or any document with --split.",
        None,
        kind=Path,
        reads="text",
    )
    target: PathLike | Sequence[str] | None = argument(
        "Its translation, in the same formats.", None, kind=Path, reads="text"
    )
    # In place of the two documents.
    documents: PathLike | None = option(
        None,
        "Many documents: source TAB target [TAB links [TAB gold]] in every line.",
        group=INPUT,
        kind=Path,
        flags=("--list",),
        reads="document list",
    )
    output: PathLike | None = output_option(
        "File for the links, standard output by default; a folder with --list."
    )
    texts: PathLike | None = option(
        None,
        "Linked sentences as bitext, score = 1 - cost: .tsv, .csv, .xlsx, .jsonl, .tmx or the"
        " prefix of two files.",
        group=OUTPUT,
        kind=Path,
    )
    gold: PathLike | None = option(
        None,
        "Right links, [0, 1]:[2] in every line, or a ladder of hunalign; prints precision, recall"
        " and F1.",
        group=OUTPUT,
        kind=Path,
        reads="file",
    )
    prompt: str | None = option(
        None, "Name of a prompt of the model, or text put before every block.", group=MODEL
    )


def run_align(
    options: AlignOptions,
    progress: Progress = SILENT,
    stdout: TextIO | None = None,
) -> Links:
    """Link the sentences of two documents that are translations of each other.

    The method is Vecalign's (Thompson and Koehn 2019). The documents are files, or lists of
    sentences in their order.

    Args:
        options: of the verb.
        progress: receives the progress of the work.
        stdout: where links are written that have no output.

    Returns:
        The links; with an output they are written there, and the list is empty.

    Raises:
        ConfigError: an option is wrong.
        DataError: a document has no sentence, or a file can't be read.
    """
    # A string is a file's name; None goes with a list of documents.
    sides = (options.source, options.target)
    are_lists = not all(isinstance(side, str | os.PathLike | None) for side in sides)
    if are_lists:
        _refuse_options_of_files(options)
    elif options.documents is None and None in sides:
        raise ConfigError(
            "expected two documents, or a list of document pairs; in Python:"
            " interlingua.align(model, source, target) or interlingua.align(model,"
            " documents=FILE, output=FOLDER); on the command line: interlingua align SOURCE"
            " TARGET or interlingua align --list FILE -o FOLDER"
        )
    check_inputs(options)
    from interlingua.verbs.parts.sources import open_model

    if are_lists:
        return _align_lists(options)
    check_align(options)
    # Of many documents a run resumes, if the model is still the same.
    encode, identity = open_model(options, identified=options.documents is not None)
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
        encode: gives vectors of length 1.
        model: its identity.
        stdout: for links without an output.
        progress: receives the progress of the work.
    """
    from interlingua.alignment.align import Aligner, align_documents
    from interlingua.alignment.sentence_alignment import AlignConfig

    documents = check_align(options)
    # A list is resumed by a journal next to its links.
    folder = None
    if options.documents is not None:
        folder = Path(options.output or Path(documents[0].output or "").parent)
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
    report = align_documents(
        aligner,
        documents,
        journal_folder=folder,
        texts=as_path(options.texts),
        model=model,
        stdout=stdout or io.StringIO(),
        progress=progress,
    )
    return Links(report.links, report, len(documents))


def check_align(options: AlignOptions) -> list[DocumentPair]:
    """Return the documents to align, after checking inputs and outputs.

    Raises:
        ConfigError: an option has a wrong value, or does not go with another.
    """
    from interlingua.alignment.align import check_alignment, list_document_pairs

    source: Any = options.source
    target: Any = options.target
    list_file = as_path(options.documents)
    documents = list_document_pairs(source, target, list_file, options.output, options.gold)
    check_alignment(
        documents,
        (options.source_language, options.target_language),
        list_file=list_file,
        texts=as_path(options.texts),
        split=options.split,
    )
    return documents


def _refuse_options_of_files(options: AlignOptions) -> None:
    """Refuse options that are only for documents in files if both sides are lists.

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
    from interlingua.verbs.parts.sources import open_model

    encode, _ = open_model(options, identified=False)
    aligner = Aligner(
        encode,
        filled(AlignConfig, options),
        source_language=options.source_language,
        target_language=options.target_language,
    )
    # Each text is checked when its turn comes, and named with its number if it is none.
    # A column of a table has no truth value, hence no `or`.
    sides: list[Any] = [() if side is None else side for side in (options.source, options.target)]
    source = list(checked_texts(sides[0], "source"))
    target = list(checked_texts(sides[1], "target"))
    links = aligner.links(source, target)
    aligner.count(links, None, source, target)
    return Links(links, aligner.report, sentences=(source, target))


align = function_of(AlignOptions, run_align, "align")
