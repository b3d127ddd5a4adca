"""Two towers for retrieval: one encoder for questions, one for passages, or one for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from interlingua.encoder.directories.model_directory import MODEL_ENTRIES, is_ours
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.storage.files import PathLike, atomic_directory
from interlingua.storage.locate import best_of_run
from interlingua.vocabulary.vocabulary import Vocabulary

QUESTION_FOLDER = "question_encoder"
"""Folder of the question tower in a model directory, if the model has two different towers."""
QUERY_PROMPT = "query"
PASSAGE_PROMPT = "passage"
"""Names of the prompts that the towers put in front, if the model has prompts of these names."""


class DualEncoder:
    """Encoder of questions and passages for search, trained for the inner product of their vectors.

    Args:
        passages: the passage tower.
        questions: the question tower; default: the passage tower.
    """

    def __init__(self, passages: Encoder, questions: Encoder | None = None) -> None:
        self.passages = passages
        self.questions = questions or passages

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        return self.passages.dim

    def encode_queries(
        self,
        texts: Iterable[str],
        *,
        language: str | None = None,
        batch_tokens: int = 16_384,
        dtype: Dtype = "float32",
    ) -> Float32[np.ndarray, "n d"]:
        """Return one vector per question, in the order of the questions.

        The vectors have length 1 if the model was trained with cosines.
        """
        return _encode(self.questions, texts, QUERY_PROMPT, language, batch_tokens, dtype)

    def encode_passages(
        self,
        texts: Iterable[str],
        *,
        titles: Sequence[str] | None = None,
        language: str | None = None,
        batch_tokens: int = 16_384,
        dtype: Dtype = "float32",
    ) -> Float32[np.ndarray, "n d"]:
        """Return one vector per passage, in the order of the passages.

        Args:
            texts: the passages.
            titles: title of each passage, if passages have titles; title and text are joined as
                in training, see ``with_title``.
            language: of the texts, in any code; needed by vocabularies that pre-tokenize by
                language.
            batch_tokens: upper limit of a batch, in tokens.
            dtype: to compute in.
        """
        if titles is not None:
            vocabulary: Vocabulary | None = None
            if self.questions is not self.passages:
                vocabulary = self.passages.vocabulary
            titled = zip(texts, titles, strict=True)
            texts = [with_title(text, title, vocabulary) for text, title in titled]
        return _encode(self.passages, texts, PASSAGE_PROMPT, language, batch_tokens, dtype)

    def to(self, device: torch.device | str) -> DualEncoder:
        """Move the towers to another device."""
        self.passages.to(device)
        self.questions.to(device)
        return self

    @classmethod
    def load(cls, path_or_id: PathLike) -> DualEncoder:
        """Read a model directory; one without a question tower has one encoder for both.

        Raises:
            CheckpointError: there is no such model, or it is damaged or of another kind.
        """
        model = best_of_run(path_or_id)
        question_folder = Path(model).expanduser() / QUESTION_FOLDER
        passages = Encoder.load(model)
        if not question_folder.is_dir():
            return cls(passages)
        return cls(passages, Encoder.load(question_folder))

    def save(self, folder: PathLike) -> None:
        """Write the passage tower as a model directory, and a separate question tower inside it.

        Tools that support only one encoder read the passage tower.

        Args:
            folder: replaced completely if it contains one of our models.
        """
        with atomic_directory(
            folder, overwrite=True, ours=is_ours, entries=MODEL_ENTRIES
        ) as temporary:
            self.passages.save(temporary)
            if self.questions is not self.passages:
                self.questions.save(temporary / QUESTION_FOLDER)


def with_title(text: str, title: str, vocabulary: Vocabulary | None) -> str:
    """Put the title before a passage; training and evaluation use the same form.

    Args:
        text: of the passage.
        title: of the passage, or none.
        vocabulary: of the passage tower, if questions have another tower; its separator is then
            put between title and text, as in DPR. None = one encoder embeds questions and
            passages; then a space is put between title and text, as in models and tools that
            have a single encoder.
    """
    if not title:
        return text
    separator: str | None = None
    if vocabulary is not None:
        separator = vocabulary.special_tokens.get("sep_token")
    return " ".join(part for part in (title, separator, text) if part)


def _encode(
    encoder: Encoder,
    texts: Iterable[str],
    prompt: str,
    language: str | None,
    batch_tokens: int,
    dtype: Dtype,
) -> Float32[np.ndarray, "n d"]:
    # None selects the model's default prompt; "" would select no prompt.
    known_prompt: str | None = None
    if prompt in encoder.settings.prompts:
        known_prompt = prompt
    return encoder.encode(
        texts,
        prompt=known_prompt,
        language=language,
        batch_tokens=batch_tokens,
        dtype=dtype,
        normalize_embeddings=encoder.settings.normalize,
    )
