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
from interlingua.corpus.formats.monolingual import language_of
from interlingua.encoder.backends.function import FunctionEncoder
from interlingua.encoder.backends.load import encode_and_identity
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.model_info import encoding_text
from interlingua.errors import ConfigError
from interlingua.mining.pipeline import TextFile, text_side
from interlingua.mining.texts import LAYOUTS, guess_layout
from interlingua.storage.remote import expand_pattern, fetch_file
from interlingua.verbs.parts.shared_options import ModelOptions, TwoTextsOptions, embedding_function


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
) -> tuple[TextFile, TextFile, str]:
    """Return both sides with their embedding functions, and the model's identity.

    Remote files are fetched into the folder. The model is not loaded if all vectors are provided
    and no model of that name exists locally.

    Args:
        options: of the verb.
        folder: the work folder; None if both sides are lists.
        always_load: load the model even if no text of the two needs it.
        elsewhere: other processes load the model by its name.
    """
    check_choice("layout", options.layout, ("auto", *LAYOUTS))
    source = _side(options, "source", folder)
    target = _side(options, "target", folder)
    # Only the name if vectors are known, because their model may not be on this machine.
    identity = f"vectors of {options.model}"
    all_known = source.vectors and target.vectors
    is_here = isinstance(options.model, str | os.PathLike) and Path(options.model).exists()
    if always_load or not all_known or is_here:
        encode, identity = open_model(options, elsewhere=elsewhere)
        # Some models need to know the language of their texts.
        source = source._replace(encode=functools.partial(encode, language=source.language or None))
        target = target._replace(encode=functools.partial(encode, language=target.language or None))
    return source, target, identity


def _side(options: TwoTextsOptions, name: str, folder: Path | None) -> TextFile:
    """Return the side called ``source`` or ``target``."""
    texts = getattr(options, name)
    code = getattr(options, f"{name}_language")
    column = options.column_choice(getattr(options, f"{name}_column"))
    vectors = getattr(options, f"{name}_vectors")
    if not isinstance(texts, str | os.PathLike):
        if column or vectors or options.documents is not None or options.split:
            raise ConfigError(
                f"{name} is a list, but columns, vectors, documents and split require a file;"
                " remove them (interlingua.split splits a text into sentences)"
            )
        return text_side(texts, name, code)
    path = os.fspath(texts)
    # One file, or those of a pattern; remote ones as they are here now.
    parts = _fetched(path, folder)
    language = language_of(Path(path), code, column=column, option=f"--{name}-language")
    layout: Any = options.layout
    if layout == "auto" and options.documents is not None:
        layout = "documents"
    elif layout == "auto" and options.split and is_document(parts[0]):
        layout = "lines"
    elif layout == "auto":
        layout = guess_layout(parts[0])
    vector_files = []
    if vectors and options.split:
        raise ConfigError(
            f"--{name}-vectors and --split cannot be combined, because --split changes the lines;"
            " remove one"
        )
    if vectors:
        vector_files = _fetched(os.fspath(vectors), folder)
    return TextFile(
        path=path,
        language=language,
        layout=layout,
        vectors=vector_files,
        parts=parts,
        column=column,
        split=options.split,
    )


def _fetched(name: str, folder: Path | None) -> list[Path]:
    """Return the files of a name or pattern, on this machine."""
    assert folder is not None
    return [fetch_file(part, folder / "fetched") for part in expand_pattern(name)]
