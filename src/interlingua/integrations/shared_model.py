"""Models by name, loaded once for all concurrent users."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import resolve_language
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.retrieval.indexed_model import IndexedModel
from interlingua.retrieval.passage_files import Passage

# Libraries build several objects from one configuration. An encoder that no object holds any more
# is forgotten, so that a model which was trained anew under the same name is read again.
_LOADED: weakref.WeakValueDictionary[tuple[str, str | None], Encoder] = (
    weakref.WeakValueDictionary()
)


def shared_encoder(model: str, device: str | None) -> Encoder:
    """Load a model, or return the one that another object already loaded.

    Args:
        model: a model directory, a training run or ``hf:owner/name``.
        device: cpu, cuda, cuda:1; None = the CPU.

    Raises:
        CheckpointError: there is no such model.
        ConfigError: there is no such device here.
    """
    # Use the absolute path: the same name may be another model in another working directory.
    key = (lasting_name(model), device)
    encoder = _LOADED.get(key)
    if encoder is None:
        encoder = Encoder.load(model, device=device)
        _LOADED[key] = encoder
    return encoder


def lasting_name(model: str) -> str:
    """Return a model's name that is the same from every working directory."""
    if not os.path.exists(model):  # hf:owner/name, or an installed model
        return model
    return os.path.abspath(model)


class SearchModel:
    """Vectors of passages and of questions, with the model's own prompts for each.

    Args:
        model: a model directory, a training run or ``hf:owner/name``.
        device: see ``shared_encoder``.
        dtype: data type of the computation: float32, bfloat16, float16 or int8.
        language: of all texts, in any code, if the model needs it.
    """

    def __init__(
        self, model: str, *, device: str | None, dtype: Dtype, language: str | None
    ) -> None:
        self.language = ""
        if language is not None:
            self.language = resolve_language(language).code
        self._model = IndexedModel(shared_encoder(model, device), model, dtype=dtype)

    def embed_passages(self, texts: Sequence[str]) -> Float32[ndarray, "n d"]:
        """Return one vector of length 1 for each text to be found."""
        # The id is not used, as only the vectors come back.
        passages = [Passage("text", text, language=self.language) for text in texts]
        return self._model.embed_passages(passages)

    def embed_questions(self, texts: Sequence[str]) -> Float32[ndarray, "n d"]:
        """Return one vector of length 1 for each text to search with."""
        vectors = [self._model.embed_question(text, self.language or None) for text in texts]
        if not vectors:  # which np.stack refuses
            return np.zeros((0, self._model.encoder.dim), np.float32)
        return np.stack(vectors)
