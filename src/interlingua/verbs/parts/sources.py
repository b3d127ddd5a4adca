"""The two texts of a verb, from files or from memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlingua.config.registry import check_choice
from interlingua.corpus.documents.kinds import is_document
from interlingua.corpus.formats.monolingual import find_language, language_of
from interlingua.errors import ConfigError, DataError
from interlingua.mining.pipeline import TextFile, text_side
from interlingua.mining.texts import LAYOUTS, guess_layout
from interlingua.storage.remote import expand_pattern, fetch_file, is_remote, name_of
from interlingua.verbs.parts.models import open_model
from interlingua.verbs.parts.shared_options import (
    TwoTextsOptions,
    is_folder_or_pattern,
)
from interlingua.verbs.parts.text_sides import (
    TextSide,
    left_out_reasons,
    list_side_of_text,
    list_sides_of_text,
    refuse_pairs,
)

_PATHS = (str, os.PathLike)


def two_texts(
    options: TwoTextsOptions,
    folder: Path | None,
    *,
    always_load: bool = False,
    elsewhere: bool = False,
    opened: Callable[[], tuple[Callable[..., Any], str]] | None = None,
) -> tuple[TextFile, TextFile, str]:
    """Return both sides with their embedding functions, and the model's identity.

    Remote files are fetched into the folder. The model is not loaded if all vectors are provided
    and no model of that name exists locally.

    Args:
        options: of the verb.
        folder: the work folder; None if both sides are lists.
        always_load: load the model even if neither text needs it.
        elsewhere: other processes load the model by its name.
        opened: returns the model and its identity; by default the model of the options is opened.

    Raises:
        ConfigError: there is no target, and the source is not a folder.
    """
    check_choice("layout", options.layout, ("auto", *LAYOUTS))
    source, target = _sides(options, folder)
    # If all vectors are known, only the name of the model is used; the model may be missing here.
    identity = f"vectors of {options.model}"
    all_known = source.vectors and target.vectors
    is_here = isinstance(options.model, str | os.PathLike) and Path(options.model).exists()
    if always_load or not all_known or is_here:
        encode, identity = opened() if opened else open_model(options, elsewhere=elsewhere)
        # Some models need to know the language of their texts.
        source = source._replace(encode=functools.partial(encode, language=source.language or None))
        target = target._replace(encode=functools.partial(encode, language=target.language or None))
    return source, target, identity


def _sides(options: TwoTextsOptions, folder: Path | None) -> tuple[TextFile, TextFile]:
    """Return both sides; the files of a folder or a pattern are one side."""
    texts: tuple[Any, Any] = (options.source, options.target)
    if texts[1] is None and not is_folder_or_pattern(texts[0]):
        raise ConfigError("expected SOURCE and TARGET, found one text; name both, or a folder")
    if not any(map(is_folder_or_pattern, texts)):
        return _side(options, "source", folder), _side(options, "target", folder)
    if not all(text is None or is_local(text) for text in texts):
        # The other side is in memory, or on another machine.
        return _one_side(options, "source", folder), _one_side(options, "target", folder)
    given = (options.source_language, options.target_language)
    one, others, left_out = list_sides_of_text(*texts, given, split=options.split)
    if len(others) > 1:
        codes = ", ".join(side.language for side in others)
        raise DataError(
            f"expected one target language, found {codes}; pass --target-language, or a folder as"
            " --output to get one output for each language",
            path=texts[0],
        )
    source = _side(options, "source", folder, one)
    target = _side(options, "target", folder, others[0])
    return source._replace(left_out=left_out_reasons(left_out)), target


def is_local(value: object) -> bool:
    """Return whether a value is the name of files on this machine."""
    return isinstance(value, _PATHS) and not is_remote(value)


def _one_side(options: TwoTextsOptions, name: str, folder: Path | None) -> TextFile:
    """Return a side; its folder or pattern is listed independently of the other side."""
    texts = getattr(options, name)
    if not is_folder_or_pattern(texts):
        return _side(options, name, folder)
    code = getattr(options, f"{name}_language")
    listed, left_out = list_side_of_text(texts, code, split=options.split)
    found = _side(options, name, folder, listed)
    return found._replace(left_out=left_out_reasons(left_out))


def _side(
    options: TwoTextsOptions, name: str, folder: Path | None, listed: TextSide | None = None
) -> TextFile:
    """Return the side called ``source`` or ``target``.

    Args:
        options: of the verb.
        name: of the side.
        folder: the work folder.
        listed: the files of the side, if they were listed.
    """
    texts: Any = getattr(options, name)
    code = getattr(options, f"{name}_language")
    column = options.column_choice(getattr(options, f"{name}_column"))
    vectors = getattr(options, f"{name}_vectors")
    if texts is not None and not isinstance(texts, _PATHS):
        if column or vectors or options.documents is not None or options.split:
            raise ConfigError(
                f"{name} is a list, but columns, vectors, documents and split require a file;"
                " remove them (interlingua.split splits a text into sentences)"
            )
        return text_side(texts, name, code)
    # Without a target, the folder of the source has both sides.
    both: Any = options.source
    path = os.fspath(both if texts is None else texts)
    if listed is None:
        # One file, or the files of a pattern; remote files are fetched to this machine.
        parts = _fetched(path, folder)
        labels = [name_of(part) for part in expand_pattern(path)]
        language = language_of(Path(path), code, column=column, option=f"--{name}-language")
        if options.layout == "auto" and options.documents is None:
            refuse_pairs(parts[0], split=options.split)
    else:
        parts = [file.path for file in listed.files]
        labels = [file.name for file in listed.files]
        # A language that only a folder names is also compared with the text.
        if not code and find_language(parts[0], column=column) != listed.language:
            code = listed.language
        language = language_of(parts[0], code, column=column, option=f"--{name}-language")
    layout = _layout(options, parts[0])
    vector_files = []
    if vectors and options.split:
        raise ConfigError(
            f"--{name}-vectors and --split cannot be combined, because --split changes the lines;"
            " remove one"
        )
    if vectors:
        vector_files = _fetched(os.fspath(vectors), folder)
    return TextFile(
        path=path if texts is not None else f"{path} ({language})",
        language=language,
        layout=layout,
        vectors=vector_files,
        parts=parts,
        column=column,
        split=options.split,
        labels=labels if len(parts) > 1 else (),
    )


def _layout(options: TwoTextsOptions, part: Path) -> Any:
    """Return the layout of a side: that of the options, or the one of its first file."""
    if options.layout != "auto":
        return options.layout
    if options.documents is not None:
        return "documents"
    if options.split and is_document(part):
        return "lines"
    return guess_layout(part)


def _fetched(name: str, folder: Path | None) -> list[Path]:
    """Return the files of a name or pattern, on this machine."""
    assert folder is not None
    return [fetch_file(part, folder / "fetched") for part in expand_pattern(name)]
