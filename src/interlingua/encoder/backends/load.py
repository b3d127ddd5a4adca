"""Loading of any encoder by its name, with the backend that computes its vectors."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import torch
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import apply_override, from_mapping, train_key_hint_of
from interlingua.config.registry import BACKENDS, check_choice, resolve_name
from interlingua.encoder.backends.foreign import Choices, ForeignEncoder, NoOptions
from interlingua.encoder.directories.training_record import training_record
from interlingua.encoder.encode import COMPUTE_DTYPES, Dtype
from interlingua.encoder.encoder import Encoder, choose_device
from interlingua.encoder.model_info import ModelInfo, encoding_text
from interlingua.encoder.pooling import PoolingMode
from interlingua.encoder.protocol import TextEncoder
from interlingua.errors import ConfigError
from interlingua.storage.locate import best_of_run, hub_name


def load_encoder(
    model: str,
    *,
    backend: str = "interlingua",
    name: str | None = None,
    pooling: PoolingMode | None = None,
    dtype: Dtype | None = None,
    device: str | None = None,
    dim: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[TextEncoder, ModelInfo]:
    """Load an encoder and its description for results.

    Args:
        model: a model directory, a training run (its best model) or ``hf:owner/name``; for the
            backend ``function``, ``module:function``; for ``openai``, the model's name at the
            endpoint; for ``vectors``, a folder of vectors.
        backend: the backend that computes the embeddings: a name of ``registry.BACKENDS`` or
            ``package.module:Class``.
        name: the encoder's name in results; default: the directory's name.
        pooling: instead of the model's own; with ``interlingua`` and ``onnx``.
        dtype: float32, bfloat16, float16 or int8 to compute in; with ``interlingua`` and, except
            int8, with ``sentence-transformers``.
        device: ``cpu``, ``cuda``, ``cuda:1``; default: the first GPU if there is one.
        dim: elements to keep of each vector; with ``interlingua``.
        options: the backend's own.

    Raises:
        ConfigError: a choice is unknown, or the backend does not support it.
        CheckpointError: there is no such model.
        MissingExtraError: the library of the backend is not installed.
    """
    kind: type[ForeignEncoder] = resolve_name(BACKENDS, backend)
    choice = {"pooling": pooling, "dtype": dtype, "dim": dim}
    _check(backend, kind.takes, device=device, **choice)
    if kind.has_files:
        model = os.fspath(best_of_run(model))
    if not device:
        device = "cpu"
        if torch.cuda.is_available() and "device" in kind.takes:
            device = "cuda"
    choices = Choices(
        name=name or model_name(model),
        pooling=pooling,
        dtype=dtype,
        device=device,
        dim=dim,
        options=options or {},
    )
    encoder = kind.load(model, choices)
    overrides = tuple(f"{key}={value}" for key, value in choice.items() if value)
    training: dict[str, Any] | None = None
    if kind.has_files:
        training = training_record(model)
    encoder.info = dataclasses.replace(encoder.info.with_overrides(overrides), training=training)
    return encoder, encoder.info


def encode_function(
    model: str,
    *,
    backend: str = "interlingua",
    dtype: Dtype | None = None,
    device: str | None = None,
    settings: Sequence[str] = (),
) -> Callable[..., Float32[ndarray, "n d"]]:
    """Return a function that encodes texts, for callers that need nothing else.

    Its arguments are those of ``Encoder.encode`` or ``ForeignEncoder.encode``.

    Args:
        model: see ``load_encoder``.
        backend: see ``load_encoder``.
        dtype: see ``load_encoder``.
        device: see ``load_encoder``.
        settings: the backend's own options, ``openai.dimensions=256``.

    Raises:
        ConfigError: a choice is unknown, or the backend does not support it.
        CheckpointError: there is no such model.
    """
    options = _backend_options(settings, backend)
    if backend != "interlingua":
        foreign, _ = load_encoder(
            model, backend=backend, dtype=dtype, device=device, options=options
        )
        return foreign.encode
    from_mapping(NoOptions, options, where="--set interlingua")
    # Not by `load_encoder`, which looks at all weights for a digest.
    encoder = Encoder.load(model).to(choose_device(device))
    return functools.partial(encoder.encode, dtype=dtype or "float32")


def encode_by_name(
    texts: Sequence[str],
    *,
    model: str,
    backend: str = "interlingua",
    dtype: Dtype | None = None,
    device: str | None = None,
    settings: tuple[str, ...] = (),
    **how: Any,
) -> Float32[ndarray, "n d"]:
    """Encode texts by the model named ``model``.

    Each process loads the model when it first needs it, and keeps it.

    Args:
        texts: to embed.
        model: see ``load_encoder``; all machines must find it by that name.
        backend: see ``load_encoder``.
        dtype: see ``load_encoder``.
        device: see ``load_encoder``.
        settings: see ``encode_function``.
        how: arguments of the encoder's ``encode``.
    """
    encode = _kept_encode_function(
        model, backend=backend, dtype=dtype, device=device, settings=settings
    )
    return encode(texts, **how)


# One model at a time, so that a worker which serves one job after another does not fill its memory.
_kept_encode_function = functools.lru_cache(maxsize=1)(encode_function)


def encode_and_identity(
    model: str,
    *,
    backend: str,
    dtype: Dtype | None,
    device: str | None,
    settings: Sequence[str],
    prompt: str | None,
    batch_tokens: int,
    identified: bool = True,
    elsewhere: bool = False,
) -> tuple[Callable[..., Float32[ndarray, "n d"]], str]:
    """Return a function that encodes to unit vectors, and a cache key for model and settings.

    Args:
        model: see ``load_encoder``.
        backend: see ``load_encoder``.
        dtype: see ``load_encoder``.
        device: see ``load_encoder``.
        settings: see ``encode_function``.
        prompt: name of a prompt of the model, or a text to put in front.
        batch_tokens: tokens per batch at most.
        identified: False = no digest of the weights is computed, and nothing is printed.
        elsewhere: the function has to run in other processes, which load the model by name.
    """
    choices: Any = {"backend": backend, "dtype": dtype, "device": device}
    how: Any = {"prompt": prompt, "batch_tokens": batch_tokens, "normalize_embeddings": True}
    identity = ""
    if identified:
        options = _backend_options(settings, backend)
        encoder, info = load_encoder(model, **choices, options=options)
        facts = [info.identity or info.name, *info.overrides, encoding_text(encoder, prompt)]
        identity = " ".join(facts).strip()
        encode = functools.partial(encoder.encode, **how)
    if elsewhere:
        # Other processes may have another working directory.
        name = model
        if Path(model).exists():
            name = str(Path(model).resolve())
        encode = functools.partial(
            encode_by_name, model=name, **choices, settings=tuple(settings), **how
        )
    elif not identified:
        encode = functools.partial(encode_function(model, **choices, settings=settings), **how)
    return encode, identity


def backend_settings(settings: Sequence[str], backend: str) -> tuple[dict[str, Any], list[str]]:
    """Split ``--set`` strings into the options of the backend and those left for the tasks.

    Args:
        settings: ``onnx.file=model_quantized.onnx``, ``stsb.split=dev``.
        backend: the one in use; if it is named as ``package.module:Class``, its options are under
            ``Class``.

    Raises:
        ConfigError: an option of another backend is set.
    """
    own: dict[str, Any] = {}
    left = []
    label = BACKENDS.label(backend)
    others = BACKENDS.names
    for setting in settings:
        owner = setting.partition("=")[0].partition(".")[0].strip()
        if owner == label:
            apply_override(own, setting)
        elif owner in others:
            raise ConfigError(
                f"--set {setting}: the backend is {backend}; remove the option, or pass"
                f" --backend {owner}"
            )
        else:
            left.append(setting)
    return dict(own.get(label, {})), left


def _backend_options(settings: Sequence[str], backend: str) -> dict[str, Any]:
    """Return the options of the backend; refuse others, as no task is here that could use them."""
    options, left = backend_settings(settings, backend)
    if left:
        raise ConfigError(
            f"--set {left[0]}: expected BACKEND.OPTION=VALUE, for example"
            f" openai.dimensions=256{train_key_hint_of(left[0])}"
        )
    return options


def model_name(model: str) -> str:
    """Return the name of a model in results: ``runs/ems/best`` -> ``ems-best``.

    Also ``hf:owner/name`` -> ``owner/name``, and ``dir/me5`` -> ``me5``.
    """
    path = Path(model)
    if not path.exists():
        return hub_name(model) or model
    path = path.resolve()
    # The models of all runs have one of these two names.
    if path.name in ("model", "best"):
        return f"{path.parent.name}-{path.name}"
    return path.name


def _check(
    backend: str, takes: Collection[str], *, device: str | None, **choice: str | int | None
) -> None:
    known = {"pooling": get_args(PoolingMode), "dtype": COMPUTE_DTYPES}
    for option, value in {**choice, "device": device}.items():
        if value is None:
            continue
        if option in known:
            check_choice(option, str(value), known[option])
        if option not in takes:
            raise ConfigError(
                f"the backend {backend} defines its own {option}; remove the option {option}"
            )
    if device is not None:
        choose_device(device)
