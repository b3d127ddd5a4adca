"""Chroma's ``EmbeddingFunction``.

Importing this module also registers the function with Chroma under its name.
"""

from __future__ import annotations

from typing import Any

from interlingua.encoder.encode import Dtype
from interlingua.errors import MissingExtraError
from interlingua.integrations.shared_model import SearchModel, lasting_name

try:
    from chromadb.api.types import Documents, EmbeddingFunction, Embeddings, Space
    from chromadb.utils.embedding_functions import register_embedding_function
except ImportError as error:
    raise MissingExtraError("chromadb", "chroma") from error


@register_embedding_function
class InterlinguaEmbeddingFunction(EmbeddingFunction[Documents]):
    """An embedding function for a collection's documents and queries, with the model's own prompts.

    Chroma keeps the configuration with the collection. ``get_collection`` then builds the function
    by itself, in a process that has imported this module.

    Args:
        model: a model directory, a training run or ``hf:owner/name``; a directory is kept as an
            absolute path.
        device: cpu, cuda, cuda:1; None = the CPU.
        dtype: data type of the computation: float32, bfloat16, float16 or int8.
        language: of all texts, in any code, if the model needs it.

    Raises:
        CheckpointError: there is no such model.
        ConfigError: there is no such device or dtype.
        MissingExtraError: chromadb is not installed; raised by the import of this module.
    """

    def __init__(
        self,
        model: str,
        device: str | None = None,
        dtype: Dtype = "float32",
        language: str | None = None,
    ) -> None:
        # The settings that Chroma stores, to build the function again from another working
        # directory.
        self._config = {
            "model": lasting_name(model),
            "device": device,
            "dtype": dtype,
            "language": language,
        }
        self._search_model = SearchModel(model, device=device, dtype=dtype, language=language)

    def __call__(self, input: Documents) -> Embeddings:
        """Return one vector of length 1 for each document."""
        # Chroma's type of embeddings is a list of arrays, not one array of two dimensions.
        return list(self._search_model.embed_passages(input))

    def embed_query(self, input: Documents) -> Embeddings:
        """Return one vector of length 1 for each query."""
        return list(self._search_model.embed_questions(input))

    @staticmethod
    def name() -> str:
        """Return the name that Chroma stores with a collection, next to the configuration."""
        return "interlingua"

    def default_space(self) -> Space:
        """Return the metric with which Chroma compares vectors of length 1."""
        return "cosine"

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of ``build_from_config``."""
        return dict(self._config)

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> InterlinguaEmbeddingFunction:
        """Build the function of a collection that Chroma reopens."""
        return InterlinguaEmbeddingFunction(**config)
