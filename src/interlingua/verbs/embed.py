"""``interlingua.embed`` and ``interlingua embed``: files of lines to files of vectors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from interlingua.config import HUB_PREFIX, AtLeast
from interlingua.config.options import INPUT, OUTPUT, argument, function_of, option
from interlingua.errors import ConfigError, DataError, require_extra, with_article
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike, check_content, stem_and_suffix
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import (
    REQUIRED,
    STANDARD_INPUT,
    BadLineOptions,
    ModelOptions,
    RayOptions,
    SheetOptions,
    output_option,
)

_IN_MEMORY = (
    "for texts in memory use interlingua.load(model).encode(texts), or write them to a file, one"
    " per line"
)
_LONGEST_NAME = 255
"""Maximum length of a file's name."""
_SHOWN = 60
"""Maximum number of characters that a message shows of a text."""


@dataclass(frozen=True)
class EmbedOptions(ModelOptions, RayOptions, BadLineOptions, SheetOptions):
    """Options of ``embed``."""

    files: PathLike | Sequence[PathLike] = argument(
        "Text files with one text per line, or .csv, .xlsx; also .gz, .xz, .zst, 'part-*.gz',"
        " s3://name; - is standard input.",
        kind=list[str],
        reads="texts",
    )
    output: PathLike = output_option(
        "File for the vectors: .npy, one row per line; for several inputs a folder with one"
        " .npy each; or one .parquet for all, with the columns text and vector.",
        REQUIRED,
        kind=str,
    )
    # The form of the vectors.
    normalize_embeddings: bool = option(True, "Scale the vectors to length 1.", group=OUTPUT)
    truncate_dim: Annotated[int, AtLeast(1)] | None = option(
        None,
        "Number of elements to keep of each vector, from the first.",
        group=OUTPUT,
        unit="elements",
    )
    precision: str = option(
        "float32",
        "Type of the numbers in the vectors: float32, int8, binary (one bit per element, packed"
        " into signed bytes) or ubinary (packed into unsigned bytes).",
        group=OUTPUT,
    )
    devices: Annotated[int, AtLeast(1)] = option(
        1,
        "Number of processes on this machine, one per GPU or per group of cores.",
    )
    language: str | None = option(
        None, "Language of the lines, in any code, if the model needs it.", group=INPUT
    )
    column: str | None = option(
        None,
        "Column of the texts in .csv or .xlsx, by name or by number from 1; by default the column"
        " named after --language, or the column text.",
        group=INPUT,
    )


def run_embed(options: EmbedOptions, progress: Progress = SILENT) -> list[str]:
    """Encode the lines of files as vectors, in bounded memory.

    Texts in memory are refused, also for several ``devices``; for them there is
    ``interlingua.load(model).encode(texts)``.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        The report, in lines; the first names the output.

    Raises:
        ConfigError: an option is wrong.
        DataError: a file can't be read.
    """
    # Options of the vectors' form that differ from the default; only our own models support them.
    form: dict[str, Any] = {}
    if options.truncate_dim is not None:
        form["truncate_dim"] = options.truncate_dim
    if options.precision != "float32":
        form["precision"] = options.precision
    if options.devices > 1 and options.ray is not None:
        raise ConfigError("--ray and --devices cannot be combined; remove --devices")
    if form and options.backend != "interlingua":
        flag = next(iter(form)).replace("_", "-")
        raise ConfigError(
            f"--{flag} requires --backend interlingua; remove it, or change --backend"
        )
    files = _names(options.files)
    check_inputs(options)
    if os.fspath(options.output).endswith(".parquet"):
        require_extra("pyarrow", extra="parquet")
    from interlingua.corpus.formats.bad_lines import BadLines
    from interlingua.corpus.formats.monolingual import language_of
    from interlingua.corpus.formats.sentence_table import is_table
    from interlingua.encoder.files.embed_files import embed_files, vector_output
    from interlingua.verbs.parts.models import open_model

    column = options.column_choice(options.column)
    for file in files:
        if not is_table(file):
            check_content(file)
        if options.language:
            language_of(Path(file), options.language, column=column, option="--language")
    BadLines(options.on_error)  # refuses unknown values
    output = vector_output(files, os.fspath(options.output))
    # If other processes do a part of the work, they load the model by its name.
    elsewhere = options.ray is not None or options.devices > 1
    encode, identity = open_model(options, identified=output.to_folder, elsewhere=elsewhere)
    # The vectors depend on the model and on these settings; a resumed run must have the same ones.
    settings = [f"normalize={options.normalize_embeddings} language={options.language}"]
    if column is not None:
        settings.append(f"column={column}")
    settings += [f"{name}={value}" for name, value in form.items()]
    return embed_files(
        partial(
            encode,
            language=options.language,
            normalize_embeddings=options.normalize_embeddings,
            **form,
        ),
        output,
        model=" ".join([identity, *settings]),
        column=column,
        language=options.language,
        on_error=options.on_error,
        ray=options.ray,
        ray_cores=options.ray_cores,
        devices=options.devices,
        device=options.device,
        progress=progress,
    )


def _names(files: Any) -> list[str]:
    """Return the names of the files.

    Raises:
        ConfigError: a value is not a name, or no file is named.
        DataError: a value is a text instead of the name of a file.
    """
    if isinstance(files, str | os.PathLike):
        files = [files]
    if isinstance(files, Iterator):  # such as Path.glob
        files = list(files)
    are_listed = isinstance(files, Sequence)
    if not are_listed or not all(isinstance(file, str | os.PathLike) for file in files):
        kind = with_article(type(files).__name__)
        raise ConfigError(f"files: expected paths of text files, found {kind}; {_IN_MEMORY}")
    if not files:
        raise ConfigError("files: expected at least one path; name a text file")
    names = [os.fspath(file) for file in files]
    for name in names:
        if not os.path.exists(name) and _is_text(name):
            shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
            raise DataError(f"file not found; check the path; {_IN_MEMORY}", path=shown)
    return names


def _is_text(name: str) -> bool:
    """Return whether a name that is no file's is probably a text: it has no suffix, or is long."""
    if any(len(part) > _LONGEST_NAME for part in name.split("/")):
        return True
    suffix = stem_and_suffix(name)[1]
    is_name = "/" in name or "*" in name or name.startswith(HUB_PREFIX) or name == STANDARD_INPUT
    return not is_name and (suffix in ("", ".") or " " in suffix)


embed = function_of(EmbedOptions, run_embed, "embed")
