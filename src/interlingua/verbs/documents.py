"""``interlingua.documents`` and ``interlingua documents``: a translation memory of documents."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from interlingua.config import Above
from interlingua.config.options import (
    FILTERING,
    INPUT,
    MODEL,
    OUTPUT,
    SEARCH,
    argument,
    filled,
    function_of,
    option,
)
from interlingua.config.registry import (
    DEFAULT_MODEL,
    OWN_MODELS,
    check_choice,
    installed_model_entry,
)
from interlingua.errors import ConfigError
from interlingua.report.rows import RowList
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.storage.remote import keep_inputs
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import (
    BACKEND,
    AlignmentOptions,
    ModelOptions,
    PairOptions,
    as_path,
    is_model_folder,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.alignment.translation_memory import MemoryConfig, MemoryReport
    from interlingua.corpus.formats.bitext import TextPair
    from interlingua.encoder.protocol import Encode

MATCHES = ("auto", "names", "texts")
"""Ways to pair documents."""


class LinkedTexts(RowList["TextPair"]):
    """The linked sentences of all documents, in the order of the source documents.

    The list is empty if the sentences were written to a file.

    Args:
        pairs: each has source, target, languages and score; its ``fields`` has the documents, the
            positions, the kind of unit and the probability.
        report: outcomes of all documents.
    """

    columns_if_empty = ("source", "target", "score")

    def __init__(self, pairs: Iterable[TextPair], report: MemoryReport) -> None:
        super().__init__(pairs)
        self.report = report

    def records(self) -> list[dict[str, Any]]:
        """Return the pairs with their fields."""
        from interlingua.corpus.formats.bitext import pair_fields

        return [{**pair._asdict(), **pair_fields(pair)} for pair in self]


@dataclass(frozen=True)
class DocumentsOptions(ModelOptions, PairOptions, AlignmentOptions):
    """Options of ``documents``."""

    source: PathLike | Sequence[PathLike] = argument(
        "Documents of one language: a folder, files separated by commas, or a pattern in"
        " quotes; without TARGET a folder of both languages.",
        kind=str,
        reads="documents of a side",
    )
    target: PathLike | Sequence[PathLike] | None = argument(
        "Documents of the other language, in the same forms.",
        None,
        kind=str,
        reads="documents of a side",
    )
    # Optional only in Python, where the pairs are returned if there is no output.
    output: PathLike | None = output_option(
        "File for the linked sentences: .tmx, .xlsx, .csv, .tsv, .jsonl or the prefix of two"
        " Moses files.",
        kind=str,
        is_required=True,
    )
    source_language: str | None = option(
        None,
        "Language of the source, in any code; by default the one that a document declares, that"
        " its name contains or that is identified in its text.",
        group=INPUT,
    )
    target_language: str | None = option(
        None, "Language of the target, in any code; found in the same way by default.", group=INPUT
    )
    # Which documents belong together.
    pairs: PathLike | None = option(
        None,
        "File of known pairs of documents, source TAB target per line.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    match: str = option(
        "auto",
        "How documents are paired: by names, by texts, or auto (by names that agree with the"
        " texts, otherwise by texts).",
        group=SEARCH,
    )
    threshold: float | None = option(
        None,
        "Minimum score of documents that are paired by their texts; by default estimated from"
        " the documents.",
        group=SEARCH,
    )
    # Which links are written.
    calibration: PathLike | None = option(
        None,
        "Calibration from interlingua score --learn, for the probability of each link;"
        " estimated by default.",
        group=FILTERING,
        kind=Path,
        reads="file",
    )
    probability: Annotated[float, Above(0, below=1)] | None = option(
        None,
        "Write only links with at least this probability of being translations, 0 to 1.",
        group=FILTERING,
    )
    # Further outputs.
    report: PathLike | None = option(
        None,
        "HTML page with each pair of documents, its coverage and its worst links.",
        group=OUTPUT,
        kind=Path,
    )
    paired: PathLike | None = option(
        None,
        "File for the pairs of documents, source TAB target TAB score, which --pairs can read.",
        group=OUTPUT,
        kind=Path,
        flags=("--write-pairs",),
    )
    work: PathLike | None = option(
        None,
        "Folder for intermediate files; by default OUTPUT.work, which is removed at the end.",
        kind=Path,
    )
    prompt: str | None = option(
        None,
        "Prompt before every sentence: the name of a prompt of the model, or a text.",
        group=MODEL,
    )

    @classmethod
    def left_out(cls, first: Any, given: Mapping[str, Any]) -> Any:
        """Return the default model if the first argument names documents instead of a model."""
        if "model" in given or given.get("backend", BACKEND) != BACKEND:
            return None
        if isinstance(first, str | os.PathLike):
            return DEFAULT_MODEL if _names_documents(os.fspath(first)) else None
        if first is None or isinstance(first, Sequence):
            return DEFAULT_MODEL
        return None


def _names_documents(name: str) -> bool:
    """Return whether a name refers to documents; a folder does, unless it holds a model."""
    path = Path(name)
    if path.is_dir():
        return not is_model_folder(path)
    if path.is_file() or "," in name or any(mark in name for mark in "*?["):
        return True
    # Any name that is not a model is taken as documents, so that a wrong path is not reported as a
    # wrong model.
    return not (installed_model_entry(name) or name in OWN_MODELS or name.startswith("hf:"))


def run_documents(options: DocumentsOptions, progress: Progress = SILENT) -> LinkedTexts:
    """Build a translation memory from documents in two languages.

    Documents are paired by their names or texts, and their sentences are linked. An interrupted
    run resumes from its work folder.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        The linked sentences. If there is an output, they are written to it, and the list is empty.

    Raises:
        ConfigError: an option is wrong.
        DataError: a side has no document, or a file can't be written.
    """
    check_inputs(options)
    config = check_documents_options(options)
    from interlingua.alignment.document_files import list_sides
    from interlingua.verbs.parts.models import open_model

    source: Any = options.source
    target: Any = options.target
    # Files are listed before the model is loaded, so that a wrong path is reported at once.
    files, left_out = list_sides(source, target)
    outputs = (options.output, options.report, options.paired)
    inputs = [file.path for file in files]
    keep_inputs(outputs, (*inputs, options.pairs, options.calibration))
    encode, model = open_model(options)
    with contextlib.ExitStack() as stack:
        # A run resumes from this folder.
        folder = as_path(options.work)
        if folder is None and options.output is not None:
            folder = Path(f"{os.fspath(options.output)}.work")
        # Without an output the links are returned in memory, and the run cannot be resumed.
        if folder is None:
            temporary = tempfile.TemporaryDirectory(prefix="interlingua-documents-")
            folder = Path(stack.enter_context(temporary)) / "work"
        keep = options.work is not None
        return make_memory(
            options, config, files, left_out, encode, model, folder, keep=keep, progress=progress
        )


def check_documents_options(options: DocumentsOptions) -> MemoryConfig:
    """Check all options, and return the settings that determine the translation memory.

    Raises:
        ConfigError: an option has a wrong value, or does not go with another.
        DataError: there is no such language, or the output has no known format.
    """
    from interlingua.alignment.sentence_alignment import AlignConfig
    from interlingua.alignment.translation_memory import MemoryConfig
    from interlingua.corpus.formats.bitext import guess_format, resolved_code

    check_choice("match", options.match, MATCHES)
    if options.pairs is not None and options.match != "auto":
        raise ConfigError(f"--pairs and --match {options.match} cannot be combined; remove one")
    if options.output is None and (options.report is not None or options.paired is not None):
        raise ConfigError(
            "--report and --write-pairs require --output; add --output, or remove them"
        )
    if options.output is not None:
        guess_format(options.output)
    return MemoryConfig(
        languages=(resolved_code(options.source_language), resolved_code(options.target_language)),
        match=options.match,
        pairs=as_path(options.pairs),
        threshold=options.threshold,
        align=filled(AlignConfig, options),
        calibration=as_path(options.calibration),
        probability=options.probability,
        device=options.device,
    )


def make_memory(
    options: DocumentsOptions,
    config: MemoryConfig,
    files: Sequence[Any],
    left_out: Sequence[Any],
    encode: Encode,
    model: str,
    folder: Path,
    *,
    keep: bool,
    progress: Progress = SILENT,
) -> LinkedTexts:
    """Make a translation memory in a work folder; see ``run_documents``.

    Args:
        options: of the verb.
        config: settings that determine the translation memory.
        files: the files of both sides.
        left_out: files that are left out.
        encode: computes vectors of length 1.
        model: identity of the model and its settings.
        folder: the work folder.
        keep: keep the folder at the end.
        progress: receives the progress of the work.
    """
    from interlingua.alignment.documents_page import write_documents_page
    from interlingua.alignment.translation_memory import MEMORY_PARTS, TranslationMemory
    from interlingua.corpus.formats.bitext import write_pairs
    from interlingua.mining.work_folder import at_work
    from interlingua.storage.files import atomic_write
    from interlingua.storage.formats import DOCUMENTS

    inputs = [file.path for file in files]
    with at_work(
        folder, keep=keep, options=options, format=DOCUMENTS, parts=MEMORY_PARTS, inputs=inputs
    ) as work:
        memory = TranslationMemory(work, config, encode, model, progress)
        sides = memory.read(files, left_out)
        vectors = memory.embed(sides)
        paired = memory.pair(sides, vectors)
        found = memory.align(sides, vectors, paired)
        # The report is complete only after all pairs have been read.
        pairs = memory.pairs(sides, paired, found)
        report = memory.report
        if options.output is None:
            return LinkedTexts(list(pairs), report)
        # If there are no pairs, the file contains only the languages.
        codes = (sides[0].language, sides[1].language)
        report.written = write_pairs(pairs, options.output, languages=codes)
        if options.paired is not None:
            with atomic_write(options.paired) as file:
                for one in report.paired:
                    file.write("\t".join((*one.paths, f"{one.pairing.score:.4f}")) + "\n")
        if options.report is not None:
            write_documents_page(options.report, report, options.output)
    return LinkedTexts((), report)


documents = function_of(DocumentsOptions, run_documents, "documents")
