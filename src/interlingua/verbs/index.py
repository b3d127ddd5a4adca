"""``interlingua.index`` and ``interlingua index``: passages with their vectors on disk."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from interlingua.config import AtLeast
from interlingua.config.options import INPUT, MODEL, SEARCH, Options, argument, function_of, option
from interlingua.config.registry import DEFAULT_MODEL, did_you_mean
from interlingua.errors import ConfigError, require_extra
from interlingua.retrieval.chunks import OVERLAP, TOKENS, ChunkSettings
from interlingua.retrieval.index_files import list_index_files
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import (
    check_index,
    check_input_files,
    check_inputs,
    check_model,
)
from interlingua.verbs.parts.shared_options import is_file_name, output_option

if TYPE_CHECKING:
    from interlingua.retrieval.index_info import IndexInfo
    from interlingua.retrieval.passage_files import Passage
    from interlingua.retrieval.passage_index import Added

_COLUMNS = ("text_column", "title_column", "id_column", "language_column")
"""Options that name the columns of files."""
_READ = {
    "build": (
        "output",
        "prompt",
        "question_prompt",
        "map",
        "approximate",
        "chunk_tokens",
        "chunk_overlap",
        "documents",
        *_COLUMNS,
        "language",
        "dtype",
        "device",
    ),
    "add": ("documents", *_COLUMNS, "language", "dtype", "device"),
    "delete": ("where",),
    "info": (),
    "list": ("where",),
    "compact": (),
}
"""Actions, with the options that each reads."""
READING = ("info", "list", "compact")
"""Actions that change no passage."""


class Indexed(NamedTuple):
    """Results of building or changing an index."""

    folder: Path
    added: int = 0
    replaced: int = 0
    """Passages whose id was in the index with another text, title, language or metadata."""
    unchanged: int = 0
    deleted: int = 0
    """Passages deleted by ``delete``, or by ``build`` and ``add`` if no longer in their file."""
    info: IndexInfo | None = None
    """Result of ``info``, or of ``compact`` after compaction."""
    passages: Iterable[Passage] = ()
    """Result of ``list``: passages that are read from disk one at a time, and only once."""


@dataclass(frozen=True)
class IndexOptions(Options):
    """Options of ``index``."""

    action: str = argument("What to do: build, add, delete, info, list or compact.")
    arguments: Sequence[PathLike] = argument(
        "For build: MODEL FILES; for add: FOLDER FILES; for delete: FOLDER IDS; for info, list,"
        " compact: FOLDER.",
        kind=list[str],
    )
    language: str | None = option(
        None, "Language of passages that declare none, in any code; for build, add.", group=INPUT
    )
    text_column: str | None = option(
        None,
        "Column of the texts in .csv, .tsv, .xlsx, .parquet or key in .json, .jsonl; by default"
        " text, contents or sentence; for build, add.",
        group=INPUT,
    )
    title_column: str | None = option(
        None, "Column of the titles; title by default; for build, add.", group=INPUT
    )
    id_column: str | None = option(
        None, "Column of the ids; by default id, _id or docid; for build, add.", group=INPUT
    )
    language_column: str | None = option(
        None, "Column of the languages; by default language or lang; for build, add.", group=INPUT
    )
    documents: bool = option(
        False,
        "Read a text file as one document, not as one passage per line; for build, add.",
        group=INPUT,
    )
    chunk_tokens: Annotated[int, AtLeast(0)] = option(
        TOKENS,
        "Maximum number of tokens of a passage; longer ones are split between sentences; 0 ="
        " never; for build.",
        group=INPUT,
        unit="tokens",
    )
    chunk_overlap: Annotated[int, AtLeast(0)] = option(
        OVERLAP,
        "Maximum number of tokens of the previous chunk that a chunk repeats; for build.",
        group=INPUT,
        unit="tokens",
    )
    prompt: str | None = option(
        None,
        "Prompt before passages: the name of a prompt of the model, or a text; the model's own"
        " by default; for build.",
        group=MODEL,
    )
    question_prompt: str | None = option(
        None, "Prompt before questions, in the same forms; for build.", group=MODEL
    )
    map: PathLike | None = option(
        None,
        "Language map for all vectors, written by interlingua debias --vectors; for build.",
        group=MODEL,
        reads="map",
    )
    dtype: str = option(
        "float32",
        "Type to compute in: float32, bfloat16, float16 or int8; for build, add.",
        group=MODEL,
    )
    device: str | None = option(
        None,
        "Device: cpu, cuda, cuda:1; by default a GPU if there is one; for build, add.",
        group=MODEL,
    )
    where: str | None = option(
        None,
        "SQL condition: \"language = 'deu_Latn'\"; for list, and for delete in place of IDS.",
        group=SEARCH,
    )
    approximate: bool = option(
        False,
        "Build an approximate index, which is many times faster for a million or more passages;"
        " for build.",
        group=SEARCH,
    )
    output: PathLike | None = output_option("Folder for the index; for build.", kind=str)


def run_index(options: IndexOptions, progress: Progress = SILENT) -> Indexed:
    """Build, change or describe an index of passages.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        The numbers of passages.

    Raises:
        ConfigError: an option is wrong, or the folder holds other files, or an index of another
            model.
        CheckpointError: there is no such model or map.
        DataError: a file can't be read or has no passage, or an id occurs twice.
    """
    _check(options)
    # The first is the index or the model, the others are files or ids.
    arguments = [os.fspath(argument) for argument in options.arguments]
    if options.action == "build":
        arguments = _build_arguments(options, arguments)
    _check_arguments(options, arguments)
    from interlingua.retrieval.passage_files import PassageColumns
    from interlingua.retrieval.searcher import add_to_index, build_index

    if options.action == "delete":
        return _delete(options, arguments[0], arguments[1:])
    if options.action in READING:
        return _read(options, arguments[0])
    # The chunk settings are not included, because an existing index has its own.
    computing: Any = {
        "progress": progress,
        "language": options.language,
        "documents": options.documents,
        # Files of one index may have different columns, so an index does not store their names.
        "columns": PassageColumns(
            options.text_column, options.title_column, options.id_column, options.language_column
        ),
        "dtype": options.dtype,
        "device": options.device,
    }
    if options.action == "add":
        added = add_to_index(arguments[0], arguments[1:], **computing)
        return _changed(arguments[0], added)
    assert options.output is not None  # _build_arguments refuses None
    added = build_index(
        arguments[0],
        arguments[1:],
        options.output,
        prompt=options.prompt,
        question_prompt=options.question_prompt,
        language_map=options.map,
        approximate=options.approximate,
        chunks=ChunkSettings(options.chunk_tokens, options.chunk_overlap),
        **computing,
    )
    return _changed(options.output, added)


def _build_arguments(options: IndexOptions, arguments: list[str]) -> list[str]:
    """Return the model and the files of ``build``, with the default model if it is left out.

    Raises:
        ConfigError: there is no folder to write, or no file of passages.
    """
    if options.output is None:
        raise ConfigError("index build requires the folder of the index; add -o DIR")
    if is_file_name(arguments[0]):  # no model, but a file to index
        arguments = [DEFAULT_MODEL, *arguments]
    if len(arguments) == 1:
        raise ConfigError(
            f"{arguments[0]}: no files of passages follow; add files, such as texts/*.txt"
        )
    return arguments


def _check_arguments(options: IndexOptions, arguments: list[str]) -> None:
    """Check the model, the index, the files and the packages; see ``verbs.parts.input_checks``."""
    if options.action == "delete" and len(arguments) == 1 and options.where is None:
        raise ConfigError("index delete requires ids or a condition; pass ids, or add --where")
    if options.action in READING and len(arguments) > 1:
        raise ConfigError(
            f"index {options.action}: expected one index, found {len(arguments)}"
            f" ({' '.join(arguments)}); pass one"
        )
    if options.action in ("build", "add"):
        list_index_files(arguments[1:], options.output or arguments[0])
        check_input_files(arguments[1:])
    if options.action == "build":
        require_extra("lancedb", extra="search")
        check_model(arguments[0])
    else:
        check_index(arguments[0])
    check_inputs(options)


def _changed(folder: PathLike, added: Added) -> Indexed:
    return Indexed(Path(folder), added.added, added.replaced, added.unchanged, added.deleted)


def _check(options: IndexOptions) -> None:
    """Raise ConfigError for an unknown action, and for an option that the action does not read."""
    if options.action not in _READ:
        guess = did_you_mean(options.action, _READ)
        raise ConfigError(f"unknown action {options.action!r}{guess}")
    if isinstance(options.arguments, str) or not options.arguments:
        raise ConfigError(
            "the arguments are missing; expected: build MODEL FILES, add FOLDER FILES, delete"
            " FOLDER IDS, or the folder of an index"
        )
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    # Options that are set but belong to another action.
    for names in _READ.values():
        for name in names:
            is_set = getattr(options, name) != defaults[name]
            if is_set and name not in _READ[options.action]:
                flag = name.replace("_", "-")
                raise ConfigError(f"--{flag} is not an option of index {options.action}; remove it")


def _delete(options: IndexOptions, folder: str, ids: list[str]) -> Indexed:
    from interlingua.retrieval.searcher import delete_from_index

    return Indexed(Path(folder), deleted=delete_from_index(folder, ids, options.where))


def _read(options: IndexOptions, folder: str) -> Indexed:
    """Return the passages or the description of an index; ``compact`` frees disk space first."""
    from interlingua.retrieval.index_info import index_info
    from interlingua.retrieval.passage_index import PassageIndex

    index = PassageIndex(folder)
    if options.action == "list":
        # An index may be larger than memory.
        return Indexed(Path(folder), passages=index.passages(options.where))
    if options.action == "compact":
        index.compact()
    return Indexed(Path(folder), info=index_info(index))


index = function_of(IndexOptions, run_index, "index")
