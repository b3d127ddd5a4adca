"""Check that everything a verb reads is there, before torch is imported.

Importing torch takes seconds. A misspelled path or a missing package is reported before this
import, because each ``run_<verb>`` first calls ``check_inputs``. An option declares the kind of its
path by ``reads`` (see ``options.Declaration``); packages follow from names of files and from
options. The readers check again, so that a check here may accept inputs that it cannot judge
cheaply.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlingua.config import HUB_PREFIX, PathText, from_mapping
from interlingua.config.options import Names, Options, declared, listed
from interlingua.config.registry import SUITES, import_place
from interlingua.errors import CheckpointError, ConfigError, DataError, require_extra
from interlingua.storage.files import PathLike, is_special, open_raw, stem_and_suffix, tab_rows
from interlingua.storage.remote import WILD, expand_pattern, filesystem, is_remote, state
from interlingua.verbs.parts.shared_options import (
    BACKEND,
    MODEL_FILES,
    STANDARD_INPUT,
    is_folder_or_pattern,
    join_names,
)

_MAPPED_FILE = "mapped_encoder.json"
"""File in the folder of the backend ``mapped``."""
BACKEND_PACKAGES = {
    "sentence-transformers": (
        "sentence_transformers",
        "sentence-transformers",
        "sentence-transformers",
    ),
    "onnx": ("onnxruntime", "onnxruntime", "onnx"),
}
"""Backend -> module, package and extra."""
SUFFIX_PACKAGES = {
    ".xlsx": ("openpyxl", "openpyxl", "xlsx"),
    ".xlsm": ("openpyxl", "openpyxl", "xlsx"),
    ".zst": ("zstandard", "zstandard", "zst"),
    ".srt": ("pysubs2", "pysubs2", "subtitles"),
    ".vtt": ("pysubs2", "pysubs2", "subtitles"),
    ".ass": ("pysubs2", "pysubs2", "subtitles"),
    ".ssa": ("pysubs2", "pysubs2", "subtitles"),
    ".docx": ("docx", "python-docx", "documents"),
    ".pdf": ("pdfminer", "pdfminer.six", "documents"),
}
"""Suffix of a file that is read or written -> module, package and extra."""
WRITTEN_SUFFIX_PACKAGES = {
    ".po": ("polib", "polib", "gettext"),
    ".mo": ("polib", "polib", "gettext"),
}
"""Suffix of a file that needs a package only for writing -> module, package and extra."""
_RETRIEVAL = ("ir_measures", "ir-measures", "retrieval")
CLASSIFICATION = ("sklearn", "scikit-learn", "classification")
TASK_PACKAGES = {
    **dict.fromkeys((*SUITES["retrieval"], "index"), _RETRIEVAL),
    **dict.fromkeys(SUITES["few_shot_classification"], CLASSIFICATION),
    "senteval": CLASSIFICATION,
    "mteb": ("mteb", "mteb", "mteb"),
}
"""Task that always needs a package -> module, package and extra."""


def check_inputs(options: Options) -> None:
    """Check the files, folders, models and packages that the options of a verb name.

    Args:
        options: of any verb.

    Raises:
        DataError: a file or folder is missing.
        CheckpointError: there is no such model.
        ConfigError: a file of settings or an index is missing.
        MissingExtraError: a package is not installed.
    """
    # Packages are checked first; otherwise a missing one is reported only at the end of the work.
    if getattr(options, "ray", None) is not None:
        require_extra("ray", extra="ray")
    for field, declaration in declared(type(options)):
        value = getattr(options, field.name)
        reads = declaration.reads
        if value is None or (isinstance(value, str) and not value):
            continue
        if reads == "model" and not _has_all_vectors(options):
            check_model(value, getattr(options, "backend", BACKEND))
        elif reads in ("text", "text or folder") and _is_in_memory(options):
            continue
        elif reads == "file" and not isinstance(value, str | os.PathLike):
            continue  # an array or a list, which are allowed in Python
        elif reads is not None and reads in _CHECKS:
            _CHECKS[reads](value)
        elif field.name in ("output", "rejected", "review"):
            check_package_of(value, is_written=True)


def _is_in_memory(options: Options) -> bool:
    """Return whether a text is in memory; if files are also named, the verb itself refuses them."""
    texts = (getattr(options, "source", None), getattr(options, "target", None))
    return not all(isinstance(text, str | os.PathLike | None) for text in texts)


def _has_all_vectors(options: Options) -> bool:
    """Return whether the vectors of both texts are provided, so that no model is loaded."""
    # Held-out pairs of a calibration are embedded in any case.
    if getattr(options, "parallel", None) is not None:
        return False
    names = ("source_vectors", "target_vectors")
    return all(getattr(options, name, None) is not None for name in names)


def check_model(model: Any, backend: str = BACKEND) -> None:
    """Check that a model's folder is there, and the package that computes with it.

    Args:
        model: a name or folder; an encoder or a function passes.
        backend: backend that reads the model.

    Raises:
        CheckpointError: there is no such model, or the folder holds none.
        DataError: a folder of vectors is missing.
        ConfigError: a function can't be found.
        MissingExtraError: the backend's package is not installed.
    """
    if not isinstance(model, str | os.PathLike):
        return
    if backend in BACKEND_PACKAGES:
        module, package, extra = BACKEND_PACKAGES[backend]
        require_extra(module, package=package, extra=extra)
    name = os.fspath(model)
    if backend == "function":
        _check_function(name)
    elif backend == "vectors" and not Path(name).expanduser().is_dir():
        raise DataError(
            "folder not found; expected a folder that contains NAME.npy and NAME.txt, one row per"
            " line",
            path=name,
        )
    elif backend == "mapped" and not (Path(name) / _MAPPED_FILE).is_file():
        raise CheckpointError(
            f"{Path(name) / _MAPPED_FILE}: file not found; pass the path of a model directory"
        )
    # Foreign backends check their own models; the hub is contacted only when a model is loaded.
    if backend not in (BACKEND, *BACKEND_PACKAGES) or name.startswith(HUB_PREFIX):
        return
    from interlingua.storage.locate import locate

    folder = locate(model)
    if backend == BACKEND and not any((folder / file).is_file() for file in MODEL_FILES):
        raise CheckpointError(
            f"{folder / MODEL_FILES[0]}: file not found; pass the path of a model directory"
        )


def _check_function(name: str) -> None:
    """Check that the module of ``module:function`` is there; it is imported later."""
    module = name.partition(":")[0]
    if ":" not in name:
        raise ConfigError(f"{name!r}: expected module:function, for example mycode:embed")
    top = module.partition(".")[0]
    is_here = Path(f"{top}.py").is_file() or Path(top).is_dir()
    if not is_here and not _is_installed(top):
        import_place(name)  # raises


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def check_file(path: PathLike) -> None:
    """Check that a local or remote file can be opened, and check the package that reads it.

    Raises:
        DataError: it is missing, is a folder or can't be read.
        MissingExtraError: its format needs a package that is not installed.
    """
    name = os.fspath(path).removeprefix("file://")
    if name == STANDARD_INPUT:
        return
    check_package_of(name)
    if is_remote(name):
        state(name)
        return
    # The lines of a pipe are lost if it is opened twice.
    if is_special(name):
        return
    if not os.path.exists(name):
        raise DataError("file not found; check the path", path=path)
    with open_raw(name):
        pass


def check_package_of(path: Any, *, is_written: bool = False) -> None:
    """Check the package that reads or writes a file of this suffix, or of this address.

    Args:
        path: of a file; a value that is no path passes.
        is_written: whether the file is written.

    Raises:
        MissingExtraError: it is not installed.
    """
    if not isinstance(path, str | os.PathLike):
        return
    if is_remote(path):
        filesystem(path)
    suffixes = {Path(path).suffix.lower(), stem_and_suffix(path)[1]}
    packages = SUFFIX_PACKAGES
    if is_written:
        packages = SUFFIX_PACKAGES | WRITTEN_SUFFIX_PACKAGES
    for suffix in suffixes & packages.keys():
        module, package, extra = packages[suffix]
        require_extra(module, package=package, extra=extra)


def check_text_file(name: Any) -> None:
    """Check the files that a name or pattern matches; texts in memory pass."""
    if not isinstance(name, str | os.PathLike):
        return
    for part in expand_pattern(name):
        check_file(part)


def check_text_or_folder(name: Any) -> None:
    """Check a text file or the matches of a pattern; a folder is listed by its reader."""
    if is_folder_or_pattern(name) and not os.path.isdir(name):
        # Folders below the wildcard of a pattern are also searched.
        if not glob.glob(name, recursive=True):
            raise DataError("no file matches; check the pattern", path=name)
    elif not is_folder_or_pattern(name):
        check_text_file(name)


def check_text_files(names: Any) -> None:
    """Check one or several names or patterns of files."""
    for name in _each(names):
        check_text_file(name)


def check_input_files(paths: Any) -> None:
    """Check one or several files."""
    for path in _each(paths):
        check_file(path)


def check_bitext(path: Any, format: str | None = None) -> None:
    """Check a bitext of any format: a file, two files of Moses, a folder or the hub's data."""
    if not isinstance(path, str | os.PathLike):
        return
    from interlingua.corpus.formats.bitext import IN_TWO_FILES, guess_format
    from interlingua.corpus.formats.moses import moses_files

    name = os.fspath(path)
    check_package_of_bitext(name, format)
    if name == STANDARD_INPUT or name.startswith(HUB_PREFIX) or os.path.isdir(name):
        return
    # The name is a single file and not a prefix, or the format has a single file per bitext.
    has_one_file = os.path.exists(name) or format not in (None, *IN_TWO_FILES)
    if any(mark in name for mark in WILD) or is_remote(name):
        check_text_file(name)
        return
    if not has_one_file and "," in name:
        check_input_files([part.strip() for part in name.split(",", 1)])
    elif has_one_file or guess_format(name) not in ("moses", "subtitles"):
        check_file(name)
    elif not glob.glob(f"{glob.escape(name)}.*"):
        moses_files(name, None, None)  # raises


def check_package_of_bitext(path: PathLike, format: str | None = None) -> None:
    """Check the package that reads data of the Hugging Face hub, or local files in its formats.

    Raises:
        MissingExtraError: it is not installed.
    """
    name = os.fspath(path)
    is_of_hub = name.startswith(HUB_PREFIX) or os.path.isdir(name)
    if format is None and (is_of_hub or stem_and_suffix(name)[1] in (".parquet", ".arrow")):
        format = "huggingface"
    if format == "huggingface":
        require_extra("datasets", extra="datasets")


def check_texts_or_folders(paths: Any) -> None:
    """Check one or several files, prefixes of files or folders."""
    for path in _each(paths):
        if not os.path.isdir(path):
            check_bitext(path)


def check_paths(paths: Any) -> None:
    """Check that one or several files or folders are there."""
    for path in _each(paths):
        if not os.path.isdir(path):
            check_file(path)


def check_folder(path: Any) -> None:
    """Check that a folder is there."""
    if not os.path.isdir(path):
        raise DataError("folder not found; check the path", path=path)


def check_folders(paths: Any) -> None:
    """Check that one or several folders are there."""
    for path in _each(paths):
        check_folder(path)


def check_models(models: Any) -> None:
    """Check one or several models of the backend ``interlingua``."""
    for model in _each(models):
        check_model(model)


def check_documents(text: Any) -> None:
    """Check that ``equal``, ``urls`` or a file of matched documents is named."""
    from interlingua.mining.texts import matches_file

    if text not in ("equal", "urls"):
        matches_file(text)


def check_documents_of_side(paths: Any) -> None:
    """Check that folders and files of documents are there; patterns are left to their reader."""
    from interlingua.alignment.document_files import path_list

    path_list(paths)


def check_document_list(path: PathLike) -> None:
    """Check the documents of a list, ``source TAB target [TAB links [TAB gold]]`` in a line.

    Other faults of a line are left to its reader.
    """
    check_file(path)
    if os.fspath(path) == STANDARD_INPUT or is_special(path):
        return
    for number, cells in tab_rows(path):
        if len(cells) not in (2, 3, 4) and cells[0].strip() and not cells[0].startswith("#"):
            return
        names = [cell.strip() for cell in (*cells[:2], *cells[3:4])]
        if cells[0].startswith("#") or not all(names[:2]):
            continue
        for name in filter(None, names):
            if not is_remote(name) and not os.path.exists(name):
                raise DataError(f"{name}: file not found; check the path", path=path, line=number)


def check_index(folder: PathLike) -> None:
    """Check that an index is there, and the package that reads it."""
    from interlingua.retrieval.passage_index import read_index_settings

    require_extra("lancedb", extra="search")
    read_index_settings(folder)


def check_map(path: PathLike) -> None:
    """Check that a language map is there."""
    from interlingua.encoder.language_maps.language_map_files import read_map

    read_map(path)


def _each(values: Any) -> Iterable[Any]:
    if isinstance(values, str | os.PathLike):
        return [values]
    return [value for value in values if isinstance(value, str | os.PathLike)]


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "bitext": check_bitext,
    "document list": check_document_list,
    "documents": check_documents,
    "documents of a side": check_documents_of_side,
    "file": check_file,
    "files": check_input_files,
    "folder": check_folder,
    "folders": check_folders,
    "index": check_index,
    "map": check_map,
    "models": check_models,
    "paths": check_paths,
    "text": check_text_file,
    "text or folder": check_text_or_folder,
    "texts": check_text_files,
    "texts or folders": check_texts_or_folders,
}
"""``Declaration.reads`` -> check of a value; not "model", whose check also needs the backend."""


def check_packages_of_checks(checks: Names | None, drop: Any) -> None:
    """Check the package of the check ``language``, if that check measures or rejects pairs."""
    names = [name.partition("=")[0] for name in (listed(join_names(checks or "")) or [])]
    names += [name.partition("=")[0] for name in (listed(join_names(drop or "")) or [])]
    # ``all`` leaves out a check whose package is missing.
    if "language" in names:
        require_extra("py3langid", extra="langid")


def check_packages_of_tasks(suite: Any) -> None:
    """Check the packages of named tasks; for a suite, only a package that all its tasks need."""
    tasks: Iterable[Any] = listed(suite) or ()
    for name in tasks:
        # A task object has already imported its packages.
        if not isinstance(name, str):
            continue
        members = SUITES.get(name, (name,))
        needed = {TASK_PACKAGES.get(member.partition(":")[0]) for member in members}
        if len(needed) == 1 and (found := needed.pop()) is not None:
            module, package, extra = found
            require_extra(module, package=package, extra=extra)


@dataclass(frozen=True)
class _TrainingFiles:
    """Keys of a section of [data] that name files."""

    paths: tuple[Path, ...] = ()
    train: tuple[Path, ...] = ()
    valid: tuple[Path, ...] = ()
    similarity: tuple[Path, ...] = ()


@dataclass(frozen=True)
class _TrainingCorpus:
    """The key of [data] that names the corpus."""

    corpus: Path | None = None


@dataclass(frozen=True)
class _TrainingModels:
    """Keys of [encoder] and [method] that name models."""

    path: PathText | None = None
    teacher: PathText = ""
    teachers: tuple[PathText, ...] = ()


@dataclass(frozen=True)
class _StageFile:
    """The key of [[stage]] that names a run's file."""

    config: Path


def check_training(table: Mapping[str, Any], path: PathLike) -> None:
    """Check the files, the corpus and the packages that a TOML file of training names.

    Other faults of the file are left to its reader.

    Args:
        table: table of the TOML file, with overrides applied.
        path: path of the file, for error messages.

    Raises:
        DataError: the corpus or a file is missing.
        CheckpointError: a model is missing.
        MissingExtraError: TensorBoard is requested and not installed.
    """
    run = _section(table, "run")
    if run.get("tensorboard") is True:
        require_extra("tensorboard", extra="tensorboard")
    data = _section(table, "data")
    where = os.fspath(path)
    method = _section(table, "method")
    models = {name: method[name] for name in ("teacher", "teachers") if name in method}
    if "path" in (encoder := _section(table, "encoder")):
        models["path"] = encoder["path"]
    _check_training_models(models, where)
    for stage in table.get("stage") or ():
        if isinstance(stage, Mapping) and isinstance(stage.get("config"), str):
            config = from_mapping(_StageFile, {"config": stage["config"]}, where=where).config
            check_input_files([config])
    if isinstance(data.get("corpus"), str):
        corpus = from_mapping(_TrainingCorpus, {"corpus": data["corpus"]}, where=where).corpus
        if corpus is not None and not corpus.is_dir():
            raise DataError("folder not found; run: interlingua prepare CONFIG", path=corpus)
    for section in (data, *(_section(data, name) for name in data)):
        known = {
            name: section[name]
            for name in ("paths", "train", "valid", "similarity")
            if isinstance(section.get(name), list)
        }
        found = from_mapping(_TrainingFiles, known, where=where)
        for file in (*found.paths, *found.train, *found.valid, *found.similarity):
            check_paths([file])


def _check_training_models(named: Mapping[str, Any], where: str) -> None:
    """Check the models of a section; a value of another type is left to the section's reader."""
    kinds = {"path": str, "teacher": str, "teachers": list}
    known = {key: value for key, value in named.items() if isinstance(value, kinds[key])}
    found = from_mapping(_TrainingModels, known, where=where)
    for model in (found.path, found.teacher, *found.teachers):
        if model:
            check_model(model)


def _section(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of a TOML file, or an empty one if the key is missing or not a table."""
    found = table.get(name)
    if isinstance(found, Mapping):
        return found
    return {}
