"""Options that several verbs share: the model and its settings, and two texts to be paired."""

from __future__ import annotations

import dataclasses
import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from interlingua.config import AtLeast, apply_override
from interlingua.config.options import (
    INPUT,
    MODEL,
    OUTPUT,
    SEARCH,
    Names,
    Options,
    argument,
    is_frame,
    option,
)
from interlingua.config.registry import BACKENDS, DEFAULT_MODEL, installed_model_entry
from interlingua.corpus.formats.bitext import FORMAT_OF_SUFFIX, is_moses_name
from interlingua.corpus.formats.localization.bitext_folders import is_bitext_folder
from interlingua.corpus.formats.sentence_table import ColumnChoice, SentenceColumn
from interlingua.errors import ConfigError, with_article
from interlingua.mining import defaults
from interlingua.mining.pair_search import PairSearch
from interlingua.storage.files import COMPRESSIONS, PathLike, stem_and_suffix
from interlingua.storage.limits import MAX_LINE_CHARACTERS
from interlingua.storage.remote import WILD, is_remote

Model = Any
"""A model directory, a run, ``hf:owner/name`` or the name of an installed model.

In Python also an encoder, a function from texts to vectors, or None for the model of the package
interlingua-mini.
"""
STANDARD_INPUT = "-"
BACKEND = "interlingua"
"""The backend of our own models."""
# Only built-in backends: a search for installed ones would slow ``--help`` and change its text.
BACKENDS_HELP = f"Backend that runs the model: {', '.join(BACKENDS)}, or package.module:Class."


MODEL_FILES = ("config.json", "modules.json")
"""Files of a model directory, one of which is read first."""
REQUIRED = dataclasses.MISSING
"""Marker of an option without a default."""


def output_option(help: str, default: Any = None, **more: Any) -> Any:
    """Declare the option for the path that a verb writes to; see ``option``."""
    return option(default, help, group=OUTPUT, short="-o", **{"kind": Path, **more})


def join_names(names: Names | Mapping[str, float | None]) -> str:
    """Join names with commas, with their limits if they have any: ``length=2.5,script``."""
    if isinstance(names, str):
        return names
    if isinstance(names, Mapping):
        parts = [name if limit is None else f"{name}={limit}" for name, limit in names.items()]
        return ",".join(parts)
    return ",".join(names)


def as_path(path: PathLike | None) -> Path | None:
    """Convert to a path, or return None for None."""
    if path is None:
        return None
    return Path(path)


def as_text(path: PathLike | None) -> str | None:
    """Convert a path to text, because it may also be a prefix of files or a hub data set's name."""
    if path is None:
        return None
    return str(path)


def overridden(config: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Return a copy of a config's table with the overrides, ``section.key=value``, applied."""
    # The caller may use the same config for another run.
    table = _copied(config)
    for override in overrides:
        apply_override(table, override)
    return table


def _copied(table: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a table and the tables in it, because overrides are set in them."""
    return {
        key: _copied(value) if isinstance(value, Mapping) else value for key, value in table.items()
    }


def embedding_function(encoder: Any) -> Callable[..., Any]:
    """Return the ``encode`` of an encoder, or the function itself.

    Raises:
        ConfigError: it is neither an encoder nor a function.
    """
    embed: Any = getattr(encoder, "encode", encoder)
    # A str also has a method ``encode``.
    if isinstance(encoder, str) or not callable(embed):
        kind = type(encoder).__name__
        raise ConfigError(
            "the first argument: expected an encoder (interlingua.load), a model's folder or a"
            f" function, found {with_article(kind)}"
        )
    # A typed name, because mypy refuses to return a value of type Any.
    function: Callable[..., Any] = embed
    return function


@dataclass(frozen=True)
class BadLineOptions(Options):
    """Handling of unreadable lines."""

    on_error: str = option(
        "stop",
        "How to handle unreadable lines: stop at the first, or skip them (they are counted and"
        " written to a file).",
        group=INPUT,
    )


@dataclass(frozen=True)
class RayOptions(Options):
    """Ray workers that do the work."""

    ray: str | None = option(
        None,
        "Run on Ray workers: local (processes on this machine), auto, host:6379 or"
        " ray://host:10001.",
    )
    ray_cores: Annotated[int, AtLeast(1)] = option(
        1, "Number of cores of each Ray task; each task loads the model once."
    )


@dataclass(frozen=True)
class BackendOptions(Options):
    """Backend of the model, and its device."""

    device: str | None = option(
        None, "Device: cpu, cuda, cuda:1; by default a GPU if there is one.", group=MODEL
    )
    backend: str = option(
        BACKEND,
        BACKENDS_HELP,
        group=MODEL,
    )
    settings: Sequence[str] | None = option(
        None,
        "Option of the backend, BACKEND.OPTION=VALUE: openai.dimensions=256; repeatable.",
        group=MODEL,
        flags=("--set",),
    )


@dataclass(frozen=True)
class BatchOptions(BackendOptions):
    """Backend of the model, its prompt, and the batch size."""

    prompt: str | None = option(
        None,
        "Prompt before every input: the name of a prompt of the model, or a text.",
        group=MODEL,
    )
    batch_tokens: Annotated[int, AtLeast(1)] = option(
        16_384, "Maximum number of tokens in a batch.", group=MODEL, unit="tokens"
    )


@dataclass(frozen=True)
class DtypeOptions(Options):
    """The data type in which a model computes."""

    dtype: str | None = option(
        None,
        "Type to compute in: float32 (the default), tf32, bfloat16, float16, int8 or auto.",
        group=MODEL,
    )


@dataclass(frozen=True)
class LineOptions(Options):
    """Options that limit the length of a line."""

    max_line: Annotated[int, AtLeast(1)] = option(
        MAX_LINE_CHARACTERS,
        "Maximum number of characters of a line; a longer line is an error.",
        unit="characters",
    )


@dataclass(frozen=True)
class CacheOptions(Options):
    """Location of cached vectors."""

    cache: PathLike | None = option(
        None,
        "Folder that keeps the vectors of a model for later runs.",
        group=OUTPUT,
        kind=Path,
        envvar="INTERLINGUA_CACHE",
    )


@dataclass(frozen=True)
class PairOptions(Options):
    """Languages of two texts."""

    source_language: str | None = option(
        None,
        "Language of the source, in any code; by default that of the file's name (news.de.txt,"
        " dev.zh).",
        group=INPUT,
    )
    target_language: str | None = option(
        None,
        "Language of the target, in any code; by default that of the file's name.",
        group=INPUT,
    )


@dataclass(frozen=True)
class SheetOptions(Options):
    """The part of a table that is read."""

    sheet: str | None = option(
        None,
        "Sheet of an .xlsx file, by name or by number from 1; the first by default.",
        group=INPUT,
    )
    header_row: Annotated[int, AtLeast(1)] | None = option(
        None,
        "Row of a table that holds the column names, counted from 1; found automatically by"
        " default.",
        group=INPUT,
    )

    def column_choice(self, name: str | None) -> ColumnChoice:
        """Return a column with its sheet and header row, or only its name if neither is set.

        Args:
            name: name of the column, or None.
        """
        if self.sheet is None and self.header_row is None:
            return name
        return SentenceColumn(name, self.sheet, self.header_row)


@dataclass(frozen=True)
class ColumnOptions(PairOptions, SheetOptions):
    """Languages of two texts, and their columns in tables."""

    source_column: str | None = option(
        None,
        "Column of the sources in a table, by name or by number from 1; by default the column"
        " named after the language, or the column text.",
        group=INPUT,
    )
    target_column: str | None = option(
        None, "Column of the targets in a table, by name or by number from 1.", group=INPUT
    )


@dataclass(frozen=True)
class AlignmentOptions(Options):
    """The search for the cheapest path through two documents."""

    max_sentences: defaults.MaxSentences = option(
        defaults.MAX_SENTENCES,
        "Maximum number of sentences in a link, both sides together.",
        group=SEARCH,
    )
    skip_quantile: defaults.SkipQuantile = option(
        defaults.SKIP_QUANTILE,
        "Cost of leaving a sentence unlinked, as a quantile of the costs of random pairs, 0 to 1.",
        group=SEARCH,
    )
    band: defaults.BandWidth = option(
        defaults.BAND,
        "Width of the search for the fine path: sentences on each side of the coarse path.",
        group=SEARCH,
        unit="sentences",
    )


@dataclass(frozen=True)
class SplitOptions(Options):
    """Options for splitting texts into sentences before the work."""

    split: bool = option(
        False,
        "Split the texts into sentences first, because they do not have one sentence per line.",
        group=INPUT,
    )


@dataclass(frozen=True)
class ModelOptions(BatchOptions, DtypeOptions, LineOptions):
    """A model, and how it computes."""

    model: Model = argument(
        "Model folder, hf:owner/name, or a name that --backend loads; if the first argument is an"
        " input instead of a model, the model is mini.",
        reads="model",
    )

    def __post_init__(self) -> None:
        if self.model is None:  # assignment fails, because the class is frozen
            object.__setattr__(self, "model", DEFAULT_MODEL)
        if not isinstance(self.model, str | os.PathLike):
            embedding_function(self.model)  # raises if the object cannot embed

    @classmethod
    def left_out(cls, first: Any, given: Mapping[str, Any]) -> Any:
        """Return the default model if the first argument is the input and not a model.

        The input is files on this or another machine, or texts in memory. With another backend the
        first argument is always the model, because such a model may be a file.
        """
        if "model" in given or given.get("backend", BACKEND) != BACKEND:
            return None
        if first is None:
            return DEFAULT_MODEL
        if isinstance(first, str | os.PathLike):
            return DEFAULT_MODEL if _is_input(os.fspath(first)) else None
        return DEFAULT_MODEL if _holds_texts(first) else None


def is_file_name(name: str) -> bool:
    """Return whether a name is that of a file, or looks like the name of a missing file."""
    if Path(name).is_file():
        return True
    # The folder of a model may have such a name.
    if Path(name).exists():
        return False
    return stem_and_suffix(name)[1] in FORMAT_OF_SUFFIX or Path(name).suffix in COMPRESSIONS


def is_folder_or_pattern(path: object) -> bool:
    """Return whether a value names a folder or a pattern of files on this machine."""
    if not isinstance(path, str | os.PathLike):
        return False
    name = os.fspath(path)
    if is_remote(name):
        return False
    return os.path.isdir(name) or (any(mark in name for mark in WILD) and not os.path.exists(name))


def is_model_folder(path: PathLike) -> bool:
    """Return whether a folder holds a model, or is a run with models in its subfolders."""
    return any((Path(path) / name).is_file() for name in (*MODEL_FILES, "run.json"))


def is_text_folder(first: object, given: Mapping[str, Any]) -> bool:
    """Return whether the first argument of a verb is a folder of texts instead of a model.

    Args:
        first: the argument.
        given: options that were passed by name.
    """
    if "model" in given or given.get("backend", BACKEND) != BACKEND:
        return False
    if not isinstance(first, str | os.PathLike) or not Path(first).is_dir():
        return False
    # A folder with weights is a model; if its description is missing, its reader reports that.
    names = os.listdir(first)
    return bool(names) and not is_model_folder(first) and not any(map(_is_of_weights, names))


def _is_of_weights(name: str) -> bool:
    return name.endswith((".safetensors", ".bin", ".pt", ".onnx"))


def is_output_folder(path: PathLike) -> bool:
    """Return whether an output is a folder: it exists as one, or its name has no suffix."""
    name = os.fspath(path)
    return os.path.isdir(name) or not stem_and_suffix(name.rstrip("/"))[1]


def _holds_texts(value: Any) -> bool:
    """Return whether a value in memory holds texts, and is therefore not a model."""
    if callable(getattr(value, "encode", value)):
        return False
    # An array of two dimensions holds numbers; a table may hold pairs.
    return is_frame(value) or (isinstance(value, Iterable) and getattr(value, "ndim", 1) == 1)


def _is_input(name: str) -> bool:
    """Return whether a name refers to standard input or to files instead of a model."""
    if name == STANDARD_INPUT or is_remote(name) or is_file_name(name):
        return True
    # A folder holds a model or several bitexts. An installed model may have the same name as a
    # prefix of files.
    if Path(name).is_dir():
        return is_bitext_folder(name)
    if installed_model_entry(name) is not None:
        return False
    # Other inputs are patterns, and common prefixes of two files, which are not files themselves.
    has_files = any(mark in name for mark in WILD) and bool(glob.glob(name))
    return has_files or is_moses_name(name)


@dataclass(frozen=True)
class FolderModelOptions(ModelOptions):
    """The model of a verb that also reads folders of texts."""

    @classmethod
    def left_out(cls, first: Any, given: Mapping[str, Any]) -> Any:
        """Return the default model if the first argument is a text, or a folder of texts."""
        if is_text_folder(first, given):
            return DEFAULT_MODEL
        return super().left_out(first, given)


@dataclass(frozen=True)
class TwoTextsOptions(FolderModelOptions, ColumnOptions, SplitOptions, PairSearch):
    """Two texts, and how pairs of their sentences are found."""

    source: PathLike | Sequence[str] = argument(
        "Text of one language: one sentence per line, or .csv, .xlsx; also .gz, .xz, .zst,"
        " 'part-*.gz', s3://..., or a folder.",
        reads="text or folder",
    )
    target: PathLike | Sequence[str] | None = argument(
        "Text of the other language, in any of these formats; without it, SOURCE is a folder of"
        " both languages.",
        None,
        kind=str,
        reads="text or folder",
    )
    # Contents of the files.
    layout: str = option(
        "auto",
        "Layout of the lines: lines (only a text), ids (id TAB text), documents (document TAB"
        " text), or auto; with --documents, auto means documents.",
        group=INPUT,
    )
    source_vectors: PathLike | None = option(
        None,
        "Vectors of the source's lines, .npy or LASER's raw float32, in place of the model.",
        group=INPUT,
        reads="text",
    )
    target_vectors: PathLike | None = option(
        None, "Vectors of the target's lines, in the same formats.", group=INPUT, reads="text"
    )
    work: PathLike | None = option(
        None,
        "Folder for intermediate files; by default OUTPUT.work, which is removed at the end.",
        kind=Path,
    )

    @property
    def search_device(self) -> str:
        """The device of the options, or a GPU if there is one."""
        from interlingua.encoder.encoder import choose_device

        return str(choose_device(self.device))
