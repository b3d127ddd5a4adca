"""LangChain's ``Embeddings``."""

from __future__ import annotations

from interlingua.encoder.encode import Dtype
from interlingua.errors import MissingExtraError
from interlingua.integrations.shared_model import SearchModel

try:
    from langchain_core.embeddings import Embeddings
except ImportError as error:
    raise MissingExtraError("langchain-core", "langchain") from error


class InterlinguaEmbeddings(Embeddings):
    """Embeddings of documents and queries for a vector store of LangChain.

    Documents and queries get the model's own prompts.

    Args:
        model: a model directory, a training run or ``hf:owner/name``.
        device: cpu, cuda, cuda:1; None = the CPU.
        dtype: data type of the computation: float32, bfloat16, float16 or int8.
        language: of all texts, in any code, if the model needs it.

    Raises:
        CheckpointError: there is no such model.
        ConfigError: there is no such device or dtype.
        MissingExtraError: langchain-core is not installed; raised by the import of this module.
    """

    def __init__(
        self,
        model: str,
        *,
        device: str | None = None,
        dtype: Dtype = "float32",
        language: str | None = None,
    ) -> None:
        self.model = model
        self._search_model = SearchModel(model, device=device, dtype=dtype, language=language)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector of length 1 for each document."""
        # LangChain's stores expect lists of Python's own numbers.
        vectors: list[list[float]] = self._search_model.embed_passages(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, of length 1."""
        vector: list[float] = self._search_model.embed_questions([text])[0].tolist()
        return vector
