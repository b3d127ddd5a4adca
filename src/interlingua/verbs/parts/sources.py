"""Inputs of a verb: the model that embeds, and two texts from files or from memory."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from interlingua.config.registry import check_choice
from interlingua.corpus.documents.kinds import is_document
from interlingua.corpus.formats.monolingual import find_language, language_of
from interlingua.encoder.backends.function import FunctionEncoder
from interlingua.encoder.backends.load import encode_and_identity
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.model_info import encoding_text
from interlingua.errors import ConfigError, DataError
from interlingua.mining.pipeline import TextFile, text_side
from interlingua.mining.texts import LAYOUTS, guess_layout
from interlingua.storage.remote import expand_pattern, fetch_file, is_remote, name_of
from interlingua.verbs.parts.shared_options import (
    ModelOptions,
    TwoTextsOptions,
    embedding_function,
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


def open_model(
    options: ModelOptions, *, identified: bool = True, elsewhere: bool = False
) -> tuple[Callable[..., Any], str]:
    """Return a function that encodes to unit vectors, and a text that identifies the model.

    The text differs if the model, its prompt or its settings differ.

    Args:
        options: of the verb.
        identified: False = do not compute a digest of the weights.
        elsewhere: other processes load the model by its name.

    Raises:
        ConfigError: a choice is unknown or incompatible with the model.
        CheckpointError: there is no such model.
    """
    if isinstance(options.model, str | os.PathLike):
        return encode_and_identity(
            os.fspath(options.model),
            backend=options.backend,
            dtype=cast(Any, options.dtype),
            device=options.device,
            settings=list(options.settings or ()),
            prompt=options.prompt,
            batch_tokens=options.batch_tokens,
            identified=identified,
            elsewhere=elsewhere,
        )
    _check_object(options, elsewhere)
    if not isinstance(options.model, Encoder):
        # A function has no digest, so its name is all there is; the command line calls it so, too.
        named = options.model if inspect.isroutine(options.model) else type(options.model)
        name = f"{named.__module__}:{named.__qualname__}"
        return _by_function(options), f"{name} {options.prompt or ''}".strip()
    identity = ""
    if identified:
        own = OwnEncoder(options.model, name="model", dtype=cast(Any, options.dtype))
        parts = [own.info.identity or ""]
        dtype = options.dtype or options.model.compute_dtype
        if options.dtype or dtype != "float32":
            parts.append(f"dtype={dtype}")
        parts.append(encoding_text(own, options.prompt))
        identity = " ".join(parts).strip()
    how: Any = {
        "prompt": options.prompt,
        "batch_tokens": options.batch_tokens,
        "dtype": options.dtype,
    }
    return functools.partial(options.model.encode, **how, normalize_embeddings=True), identity


def _by_function(options: ModelOptions) -> Callable[..., Any]:
    """Return a function that embeds with an object that is not our own encoder.

    The object is a function as the backend ``function`` uses it, or the ``encode`` of another
    library's encoder. An encoder receives the prompt and the language by name. A function receives
    texts with the prompt in front, and the language if it has a parameter for it.
    """
    function = embedding_function(options.model)
    is_encoder = function is not options.model

    # Without a value, an option has the encoder's default.
    def call_encoder(texts: Sequence[str], language: str | None = None) -> Any:
        given = {"language": language, "prompt": options.prompt}
        return function(texts, **{name: value for name, value in given.items() if value})

    named = options.model if inspect.isroutine(options.model) else type(options.model)
    # One for all languages, which warns once.
    encoder = FunctionEncoder(call_encoder if is_encoder else function, name=named.__qualname__)

    def encode(texts: Sequence[str], *, language: str | None = None, **how: Any) -> Any:
        # An encoder puts the prompt in front itself.
        prompt = None if is_encoder else options.prompt
        return encoder.encode(
            texts, prompt=prompt, language=language, **{"normalize_embeddings": True, **how}
        )

    return encode


def _check_object(options: ModelOptions, elsewhere: bool) -> None:
    """Refuse options that only a model loaded by its name can follow."""
    if options.backend != "interlingua" or options.settings:
        raise ConfigError(
            "a backend and its settings require a model that is passed by its name; pass the"
            " name, or remove them"
        )
    if elsewhere:
        raise ConfigError(
            "other processes load the model by its name; pass a model directory or hf:owner/name"
        )
    if options.dtype is not None and not isinstance(options.model, Encoder):
        raise ConfigError(f"dtype {options.dtype!r} requires a model of interlingua; remove it")


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
        always_load: load the model even if no text of the two needs it.
        elsewhere: other processes load the model by its name.
        opened: returns the model and its identity; by default that of the options.

    Raises:
        ConfigError: there is no target, and the source is not a folder.
    """
    check_choice("layout", options.layout, ("auto", *LAYOUTS))
    source, target = _sides(options, folder)
    # Only the name if vectors are known, because their model may not be on this machine.
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
            " --output for one output each",
            path=texts[0],
        )
    source = _side(options, "source", folder, one)
    target = _side(options, "target", folder, others[0])
    return source._replace(left_out=left_out_reasons(left_out)), target


def is_local(value: object) -> bool:
    """Return whether a value is the name of files on this machine."""
    return isinstance(value, _PATHS) and not is_remote(value)


def _one_side(options: TwoTextsOptions, name: str, folder: Path | None) -> TextFile:
    """Return a side, with the files of a folder or a pattern without regard to the other side."""
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
    # One folder has both sides.
    both: Any = options.source
    path = os.fspath(both if texts is None else texts)
    if listed is None:
        # One file, or those of a pattern; remote ones as they are here now.
        parts = _fetched(path, folder)
        labels = [name_of(part) for part in expand_pattern(path)]
        language = language_of(Path(path), code, column=column, option=f"--{name}-language")
        if options.layout == "auto" and options.documents is None:
            refuse_pairs(parts[0], split=options.split)
    else:
        parts = [file.path for file in listed.files]
        labels = [file.name for file in listed.files]
        # The language of a folder is compared with the text, too.
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
