"""A transformer of scikit-learn: texts in, vectors out, as the first step of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxtyping import Float32
from numpy import ndarray

from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.texts import refuse_container
from interlingua.errors import ConfigError, MissingExtraError
from interlingua.integrations.shared_model import shared_encoder

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
except ImportError as error:
    raise MissingExtraError("scikit-learn", "classification") from error


class SentenceEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that embeds each text; nothing is learned.

    A pickle contains the model's path and not its weights.

    Args:
        model: a model directory, a training run or ``hf:owner/name``.
        prompt: name of a prompt of the model, or a text to put in front; None = the model's
            default.
        language: of the texts, in any code, if the model needs it.
        truncate_dim: number of leading elements of each vector to keep; None = all.
        dtype: data type of the computation: float32, bfloat16, float16 or int8.
        device: cpu, cuda, cuda:1; None = the CPU.

    Raises:
        MissingExtraError: scikit-learn is not installed; raised by the import of this module.
    """

    def __init__(
        self,
        model: str,
        *,
        prompt: str | None = None,
        language: str | None = None,
        truncate_dim: int | None = None,
        dtype: Dtype = "float32",
        device: str | None = None,
    ) -> None:
        self.model = model
        self.prompt = prompt
        self.language = language
        self.truncate_dim = truncate_dim
        self.dtype = dtype
        self.device = device

    def fit(self, X: Iterable[str], y: object = None) -> SentenceEmbedder:  # noqa: N803  (scikit-learn's name)
        """Load the model."""
        self._n_features_out = self.truncate_dim or self._encoder().dim
        return self

    def transform(self, X: Iterable[str]) -> Float32[ndarray, "n d"]:  # noqa: N803
        """Return one vector of length 1 for each text.

        Args:
            X: texts: a list, an array of one dimension, a column of a data frame.

        Raises:
            ConfigError: X has two dimensions, or an option does not fit the model.
            DataError: an element is not a text.
        """
        if getattr(X, "ndim", 1) != 1:
            raise ConfigError(
                "expected one column of texts, found a table; in a ColumnTransformer, name the"
                " column as a string"
            )
        # ``encode`` gives one vector for a single text, but here each row must be a text.
        refuse_container(X, "X")
        return self._encoder().encode(
            X,
            prompt=self.prompt,
            language=self.language,
            truncate_dim=self.truncate_dim,
            dtype=self.dtype,
        )

    def __getstate__(self) -> dict[str, Any]:
        # A pickle holds the path; where the pickle is opened, the model is loaded again.
        state = dict(super().__getstate__())
        state.pop("_loaded", None)
        return state

    def _encoder(self) -> Encoder:
        # set_params may change attributes at any time, so compare the loaded model with them.
        key = (self.model, self.device)
        loaded: tuple[tuple[str, str | None], Encoder] | None = getattr(self, "_loaded", None)
        if loaded is None or loaded[0] != key:
            loaded = (key, shared_encoder(self.model, self.device))
            self._loaded = loaded
        return loaded[1]
