"""The model of a verb: by its name, an encoder, or a function that embeds."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, cast

from interlingua.encoder.backends.function import FunctionEncoder
from interlingua.encoder.backends.load import encode_and_identity
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.model_info import encoding_text
from interlingua.errors import ConfigError
from interlingua.verbs.parts.shared_options import ModelOptions, embedding_function


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
        # A function has no digest, so its name identifies it; the command line uses the same name.
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
    # All languages share one encoder, so that it warns only once.
    encoder = FunctionEncoder(call_encoder if is_encoder else function, name=named.__qualname__)

    def encode(texts: Sequence[str], *, language: str | None = None, **how: Any) -> Any:
        # An encoder itself puts the prompt before the texts.
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
