"""Any encoder behind one interface: ours, a sentence-transformers model, or a Python function."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float32
from numpy import ndarray

from interlingua.encoder.directory import EncodingSettings
from interlingua.encoder.encode import DTYPES, Dtype
from interlingua.encoder.encoder import EmbedsText, Encoder
from interlingua.encoder.pooling import PoolingMode
from interlingua.errors import ConfigError, MissingExtraError
from interlingua.evaluation.provenance import ModelInfo, describe, prompt_text
from interlingua.evaluation.task import check_choice

Backend = Literal["interlingua", "sentence-transformers", "function"]


def load_encoder(
    model: str,
    *,
    backend: Backend = "interlingua",
    name: str | None = None,
    pooling: PoolingMode | None = None,
    dtype: Dtype | None = None,
    device: str | None = None,
) -> tuple[EmbedsText, ModelInfo]:
    """Loads an encoder and what results say about it.

    Args:
        model: a model directory or hub id; ``module:function`` for the backend ``function``.
        backend: what computes the embeddings.
        name: as results call it; the directory's name by default.
        pooling: instead of the model's own; only with ``interlingua``.
        dtype: float32, bfloat16 or float16 to compute in; not with ``function``.
        device: ``cpu``, ``cuda``, ``cuda:1``; the first GPU where there is one by default.

    Raises:
        ConfigError: a choice is unknown or does not go with the backend.
        CheckpointError: there is no such model.
        MissingExtraError: sentence-transformers is not installed.
    """
    _check(backend, pooling, dtype, device)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    name = name or model_name(model)
    encoder: Any
    if backend == "function":
        encoder = FunctionEncoder(import_function(model), name=name)
        return encoder, encoder.info
    if backend == "sentence-transformers":
        encoder = SentenceTransformersEncoder(model, name=name, dtype=dtype, device=device)
        info = encoder.info
    else:
        encoder = OwnEncoder(Encoder.load(model).to(torch.device(device)), name=name, pooling=pooling, dtype=dtype)
        info = encoder.info
    asked = tuple(f"{key}={value}" for key, value in {"pooling": pooling, "dtype": dtype}.items() if value)
    return encoder, dataclasses.replace(info, overrides=asked)


class OwnEncoder:
    """An ``Encoder`` with the pooling and the dtype it is to be evaluated with.

    Args:
        encoder: a loaded one.
        name: as results call it.
        pooling: instead of the model's own.
        dtype: float32, bfloat16 or float16 to compute in.
    """

    def __init__(
        self, encoder: Encoder, *, name: str, pooling: PoolingMode | None = None, dtype: Dtype | None = None
    ) -> None:
        if pooling is not None:
            encoder.settings = dataclasses.replace(encoder.settings, pooling=pooling)
        self._encoder, self._dtype = encoder, dtype or "float32"
        self.dim, self.settings = encoder.dim, encoder.settings
        self.info = dataclasses.replace(describe(encoder, name=name), dtype=self._dtype)

    def encode(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        batch_tokens: int = 16_384,
    ) -> Float32[ndarray, "n d"]:
        """One vector per text, in the order given."""
        return self._encoder.encode(
            texts, prompt=prompt, language=language, batch_tokens=batch_tokens, dtype=self._dtype
        )


class FunctionEncoder:
    """A Python function ``texts -> array (n, d)`` as an encoder.

    Args:
        function: called with a list of texts; a prompt has been put before each already.
        name: as results call it.
    """

    def __init__(self, function: Callable[[list[str]], Any], *, name: str | None = None) -> None:
        self._function = function
        self.dim = 0  # known after the first call
        self.info = ModelInfo(name=name or str(getattr(function, "__name__", "")), digest=None, library="function")

    def encode(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        batch_tokens: int = 16_384,
    ) -> Float32[ndarray, "n d"]:
        """Calls the function once; languages and the token budget are nothing to it."""
        vectors = np.asarray(self._function([(prompt or "") + text for text in texts]), dtype=np.float32)
        self.dim = vectors.shape[-1]
        return vectors


class SentenceTransformersEncoder:
    """A sentence-transformers model as an encoder, run by that library.

    Args:
        model: a directory or hub id.
        name: as results call it.
        dtype: float32, bfloat16 or float16 to compute in.
        device: a torch device.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
    """

    def __init__(self, model: str, *, name: str | None = None, dtype: Dtype | None = None, device: str = "cpu") -> None:
        try:
            import sentence_transformers
        except ImportError as error:
            raise MissingExtraError("sentence-transformers", "sentence-transformers") from error
        options = {"dtype": DTYPES[dtype]} if dtype else {}
        self._model: Any = sentence_transformers.SentenceTransformer(model, device=device, model_kwargs=options)
        self.dim: int = self._model.get_embedding_dimension() or 0
        prompts = {name: text or "" for name, text in self._model.prompts.items()}
        self.settings = EncodingSettings(prompts=prompts, default_prompt=self._model.default_prompt_name)
        pooling = next((module for module in self._model if hasattr(module, "pooling_mode")), None)
        weights = next(self._model.parameters())
        self.info = ModelInfo(
            name=name or model_name(model),
            digest=_state_digest(self._model.state_dict()),
            library=f"sentence-transformers {sentence_transformers.__version__}",
            dim=self.dim,
            pooling=None if pooling is None else str(pooling.pooling_mode),
            dtype=str(weights.dtype).removeprefix("torch."),
            max_tokens=self._model.max_seq_length,
            device=str(weights.device),
        )

    def encode(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        batch_tokens: int = 16_384,
    ) -> Float32[ndarray, "n d"]:
        """Embeds in that library's own batches of 32; languages and the token budget are nothing to it."""
        vectors = self._model.encode(list(texts), prompt=prompt_text(self, prompt), show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def model_name(model: str) -> str:
    """``runs/ems/best`` -> ``ems-best``; ``intfloat/multilingual-e5-small`` as it is; ``dir/me5`` -> ``me5``."""
    path = Path(model)
    if not path.exists():
        return model
    path = path.resolve()
    return f"{path.parent.name}-{path.name}" if path.name in ("model", "best") else path.name


def import_function(spec: str) -> Callable[[list[str]], Any]:
    """Imports ``module:function``, from the working directory too.

    Raises:
        ConfigError: there is no such module or function.
    """
    module, colon, attribute = spec.partition(":")
    if not colon:
        raise ConfigError(f"{spec!r}: expected module:function, e.g. mycode:embed")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{spec!r} can't be imported: {error}") from error
    if not callable(function):
        raise ConfigError(f"{spec!r} is no function but a {type(function).__name__}")
    return function  # type: ignore[no-any-return]


def _check(backend: str, pooling: str | None, dtype: str | None, device: str | None) -> None:
    check_choice("backend", backend, get_args(Backend))
    check_choice("pooling", pooling, get_args(PoolingMode))
    check_choice("dtype", dtype, list(DTYPES))
    if pooling and backend != "interlingua":
        raise ConfigError(f"the backend {backend} brings its own pooling; drop the pooling option")
    if (dtype or device) and backend == "function":
        raise ConfigError("a function brings its own dtype and device; drop these options")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:100]
        raise ConfigError(f"device {device!r} can't be used here ({reason}); drop the option or say cpu") from error


def _state_digest(state: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
