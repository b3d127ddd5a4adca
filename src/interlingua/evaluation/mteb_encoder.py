"""An encoder as mteb wants one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.encoder.roles import Role
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import content_sha256, full_code
from interlingua.evaluation.task import Progress, silent

ROLES: Mapping[str, Role] = {"query": "query", "document": "passage"}
"""What mteb calls the roles of texts in a search."""


class MTEBEncoder:
    """Meets mteb's ``EncoderProtocol``.

    Prompts are those of the encoder, for questions and passages by its roles.

    Args:
        encoder: with its prompt and settings bound.
        task: mteb's task, its data loaded.
        progress: called with the texts embedded so far.

    Attributes:
        mteb_model_meta: what mteb wants to know of a model; nothing.
        digests: of the texts of every call.
    """

    def __init__(self, encoder: CachedEncoder, task: Any, progress: Progress = silent) -> None:
        from mteb.models.model_meta import ModelMeta

        self.mteb_model_meta = ModelMeta.create_empty()
        self.digests: set[str] = set()
        self._encoder = encoder
        self._progress = progress
        self._done = 0
        self._by_subset: Mapping[str, list[str]] = task.metadata.hf_subsets_to_langscripts
        self._by_column = {
            content_sha256([list(columns[name])]): code
            for subset, languages in self._by_subset.items()
            if len(languages) == 2
            for columns in (task.dataset.get(subset) or {}).values()
            for name, code in zip(("sentence1", "sentence2"), languages, strict=True)
            if name in _names(columns)
        }

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
        """One vector per text of the batches, in order.

        Args:
            inputs: batches with a list of texts under ``text``; passages also with ``body`` and
                ``title``.
            task_metadata: not used.
            hf_split: not used.
            hf_subset: tells the language, where it has one.
            prompt_type: query or document.
            options: not used; the batches are ours.
        """
        batches = list(inputs)
        texts = [text for batch in batches for text in batch["text"]]
        role = ROLES[prompt_type.value] if prompt_type is not None else None
        digest = content_sha256([texts])
        self.digests.add(digest)
        if not texts:
            return np.zeros((0, 0), np.float32)
        titled = role == "passage" and all("title" in batch for batch in batches)
        vectors = self._encoder.encode(
            [text for batch in batches for text in batch["body"]] if titled else texts,
            titles=[title for batch in batches for title in batch["title"]] if titled else None,
            language=self._language(hf_subset, digest),
            role=role,
        )
        self._done += len(texts)
        self._progress(hf_subset, self._done, self._done)
        return vectors

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Of each with each: cosines, or inner products of an encoder with two towers."""
        from mteb.similarity_functions import cos_sim, dot_score

        return (dot_score if self._by_dot() else cos_sim)(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Of the first with the first, and so on."""
        from mteb.similarity_functions import pairwise_cos_sim, pairwise_dot_score

        return (pairwise_dot_score if self._by_dot() else pairwise_cos_sim)(
            embeddings1, embeddings2
        )

    def _by_dot(self) -> bool:
        return bool(getattr(self._encoder, "two_towers", False))

    def _language(self, subset: str, digest: str) -> str | None:
        """Of the texts, as far as mteb says."""
        languages = self._by_subset.get(
            subset, [subset]
        )  # parallel sets are called by a column's language
        code = languages[0] if len(languages) == 1 else self._by_column.get(digest)
        return known_code(code)


def known_code(code: str | None) -> str | None:
    """``zho_Hans`` for mteb's ``cmn-Hans``; None for what is no language, such as ``default``."""
    with contextlib.suppress(DataError):
        return None if code is None else full_code(code)
    return None


def _names(columns: Any) -> Iterable[str]:
    return getattr(columns, "column_names", None) or list(columns)
