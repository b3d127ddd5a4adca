"""An adapter of our encoders to mteb's interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import find_code
from interlingua.encoder.query_and_passage import Role
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import content_sha256
from interlingua.runtime.progress import SILENT, Progress

_ROLES: Mapping[str, Role] = {"query": "query", "document": "passage"}
"""mteb's names of the roles of texts in a search."""


class MTEBEncoder:
    """An encoder that implements mteb's ``EncoderProtocol``.

    The encoder's prompt is put before each text; for questions and passages, its role prompts.

    Args:
        encoder: with its prompt and settings bound.
        task: mteb's task, its data loaded.
        progress: counts the texts.

    Attributes:
        mteb_model_meta: the model's metadata for mteb; empty.
        digests: of the texts of every call.
    """

    def __init__(self, encoder: CachedEncoder, task: Any, progress: Progress = SILENT) -> None:
        from mteb.models.model_meta import ModelMeta

        self.mteb_model_meta = ModelMeta.create_empty()
        self.digests: set[str] = set()
        self._encoder = encoder
        self._progress = progress
        self._by_subset: Mapping[str, list[str]] = task.metadata.hf_subsets_to_langscripts
        # mteb passes the texts of a column but not its name, so the column of a pair of languages
        # is recognized by a digest of its texts
        self._by_column: dict[str, str] = {}
        for subset, languages in self._by_subset.items():
            if len(languages) == 2:
                for columns in (task.dataset.get(subset) or {}).values():
                    self._by_column |= _digests_of_columns(columns, languages)

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **options: Any,
    ) -> Float32[ndarray, "n d"]:
        """Return one vector per text of the batches, in order.

        Args:
            inputs: batches with a list of texts under ``text``; passages also with ``body`` and
                ``title``.
            task_metadata: not used.
            hf_split: not used.
            hf_subset: specifies the language, if it has one.
            prompt_type: query or document.
            options: not used, because the encoder makes its own batches.
        """
        batches = list(inputs)
        texts = [text for batch in batches for text in batch["text"]]
        role: Role | None = None
        if prompt_type is not None:
            role = _ROLES[prompt_type.value]
        # the digest is computed from the texts in which mteb has joined title and body, even if the
        # encoder reads the two separately
        digest = content_sha256([texts])
        self.digests.add(digest)
        if not texts:
            return np.zeros((0, 0), np.float32)
        titles: list[str] | None = None
        read = texts
        # title and body separately, because an encoder with two towers takes both
        if role == "passage" and all("title" in batch for batch in batches):
            titles = [title for batch in batches for title in batch["title"]]
            read = [text for batch in batches for text in batch["body"]]
        language = self._language(hf_subset, digest)
        vectors = self._encoder.encode(read, titles=titles, language=language, role=role)
        self._progress.note(hf_subset)
        self._progress.advance(len(texts))
        return vectors

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Compute all pairwise similarities: cosines, or inner products of a two-tower encoder."""
        from mteb.similarity_functions import cos_sim, dot_score

        if self._is_by_dot():
            return dot_score(embeddings1, embeddings2)
        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Compute the similarity of each row of the first to the same row of the second."""
        from mteb.similarity_functions import pairwise_cos_sim, pairwise_dot_score

        if self._is_by_dot():
            return pairwise_dot_score(embeddings1, embeddings2)
        return pairwise_cos_sim(embeddings1, embeddings2)

    def _is_by_dot(self) -> bool:
        return bool(getattr(self._encoder, "two_towers", False))

    def _language(self, subset: str, digest: str) -> str | None:
        """Return the language of the texts, or None if mteb does not specify it."""
        # for parallel sets, mteb passes the language of a column as the name of the subset
        languages = self._by_subset.get(subset, [subset])
        if len(languages) == 1:
            return find_code(languages[0])
        return find_code(self._by_column.get(digest, ""))


def _digests_of_columns(columns: Any, languages: Iterable[str]) -> dict[str, str]:
    """Return a map from the digest of each column of texts to the column's language."""
    found = {}
    for name, code in zip(("sentence1", "sentence2"), languages, strict=True):
        if name in (getattr(columns, "column_names", None) or columns):
            found[content_sha256([list(columns[name])])] = code
    return found
