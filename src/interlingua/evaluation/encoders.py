"""Any encoder behind one interface: ours, a sentence-transformers model, or a Python function."""

from __future__ import annotations

import abc
import dataclasses
import functools
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
from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encode import DTYPES, Dtype
from interlingua.encoder.encoder import EmbedsText, Encoder
from interlingua.encoder.pooling import PoolingMode
from interlingua.encoder.weights import weights_digest
from interlingua.errors import ConfigError, MissingExtraError
from interlingua.evaluation.provenance import ModelInfo, describe, prompt_text
from interlingua.evaluation.task import check_choice
from interlingua.evaluation.training_record import training_record

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
    encoder: OwnEncoder | FunctionEncoder | SentenceTransformersEncoder
    if backend == "function":
        encoder = FunctionEncoder(import_function(model), name=name)
    elif backend == "sentence-transformers":
        encoder = SentenceTransformersEncoder(model, name=name, dtype=dtype, device=device)
    else:
        towers = DualEncoder.load(model).to(device)
        questions = None if towers.questions is towers.passages else towers.questions
        encoder = OwnEncoder(towers.passages, name=name, pooling=pooling, dtype=dtype, questions=questions)
    asked = tuple(f"{key}={value}" for key, value in {"pooling": pooling, "dtype": dtype}.items() if value)
    training = None if backend == "function" else training_record(model)
    encoder.info = dataclasses.replace(encoder.info, overrides=asked, training=training)
    return encoder, encoder.info


class OwnEncoder:
    """An ``Encoder`` with the pooling and the dtype it is to be evaluated with.

    Args:
        encoder: a loaded one.
        name: as results call it.
        pooling: instead of the model's own.
        dtype: float32, bfloat16 or float16 to compute in.
        questions: a second tower, which embeds the questions of a search; the first one embeds all else.

    Attributes:
        encode: the encoder's own, in that dtype.

    Raises:
        ConfigError: a dtype is asked for and there are two towers.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        name: str,
        pooling: PoolingMode | None = None,
        dtype: Dtype | None = None,
        questions: Encoder | None = None,
    ) -> None:
        if pooling is not None:
            encoder.settings = dataclasses.replace(encoder.settings, pooling=pooling)
        self.dim, self.settings = encoder.dim, encoder.settings
        self.info = dataclasses.replace(describe(encoder, name=name), dtype=dtype or "float32")
        self.encode = functools.partial(encoder.encode, dtype=dtype or "float32")
        if questions is not None:
            if dtype not in (None, "float32"):
                raise ConfigError("a model with two towers is measured in float32; drop the dtype option")
            towers = DualEncoder(encoder, questions)
            self.encode_queries, self.encode_passages = towers.encode_queries, towers.encode_passages
            both = f"{encoder.digest()} {questions.digest()}".encode()
            self.info = dataclasses.replace(self.info, digest=hashlib.sha256(both).hexdigest())


class _ForeignEncoder(abc.ABC):
    """An encoder that batches as it likes; languages and the token budget are nothing to it."""

    dim: int
    info: ModelInfo

    def encode(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        batch_tokens: int = 16_384,
    ) -> Float32[ndarray, "n d"]:
        """One vector per text, in the order given."""
        vectors = np.asarray(self._embed(list(texts), prompt_text(self, prompt)), dtype=np.float32)
        self.dim = vectors.shape[-1]
        return vectors

    @abc.abstractmethod
    def _embed(self, texts: list[str], prompt: str) -> Any:
        """An array (n, d) for these texts with the prompt before each."""


class FunctionEncoder(_ForeignEncoder):
    """A Python function ``texts -> array (n, d)`` as an encoder.

    Args:
        function: called with a list of texts; a prompt has been put before each already.
        name: as results call it.
    """

    def __init__(self, function: Callable[[list[str]], Any], *, name: str | None = None) -> None:
        self._function = function
        self.dim = 0  # known after the first call
        self.info = ModelInfo(name=name or str(getattr(function, "__name__", "")), digest=None, library="function")

    def _embed(self, texts: list[str], prompt: str) -> Any:
        return self._function([prompt + text for text in texts])


class SentenceTransformersEncoder(_ForeignEncoder):
    """A sentence-transformers model as an encoder, run by that library in its own batches of 32.

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
        self.dim = self._model.get_embedding_dimension() or 0
        prompts = {name: text or "" for name, text in self._model.prompts.items()}
        self.settings = EncodingSettings(prompts=prompts, default_prompt=self._model.default_prompt_name)
        pooling = next((module for module in self._model if hasattr(module, "pooling_mode")), None)
        weights = next(self._model.parameters())
        self.info = ModelInfo(
            name=name or model_name(model),
            digest=weights_digest(self._model.state_dict()),
            library=f"sentence-transformers {sentence_transformers.__version__}",
            dim=self.dim,
            pooling=None if pooling is None else str(pooling.pooling_mode),
            dtype=str(weights.dtype).removeprefix("torch."),
            max_tokens=self._model.max_seq_length,
            device=str(weights.device),
        )

    def _embed(self, texts: list[str], prompt: str) -> Any:
        return self._model.encode(texts, prompt=prompt, show_progress_bar=False)


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
