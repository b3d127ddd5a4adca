"""Two towers for retrieval: one encoder for questions, one for passages, or one for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from interlingua.encoder.directory import is_ours
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.locate import best_of_run
from interlingua.encoder.vocabulary import Vocabulary
from interlingua.files import PathLike, atomic_directory

QUESTION_FOLDER = "question_encoder"
"""Where a model directory keeps the question tower, if that is another than the passage tower."""
QUERY_PROMPT = "query"
PASSAGE_PROMPT = "passage"
"""Names of the prompts that the towers put in front, where the model has prompts of these names."""


class DualEncoder:
    """Searches questions' answers among passages: the inner product of their vectors is what was
    trained.

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
        """One vector per question, in the order given.

        Of length 1 where the model was trained with cosines.
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
        """One vector per passage, in the order given.

        Args:
            texts: the passages.
            titles: of each passage, where they have titles; the model reads both as in training,
                see ``with_title``.
            language: of the texts, in any code; needed by vocabularies that pre-tokenize by
                language.
            batch_tokens: upper limit of a batch, in tokens.
            dtype: to compute in.
        """
        if titles is not None:
            vocabulary = None if self.questions is self.passages else self.passages.vocabulary
            texts = [
                with_title(text, title, vocabulary)
                for text, title in zip(texts, titles, strict=True)
            ]
        return _encode(self.passages, texts, PASSAGE_PROMPT, language, batch_tokens, dtype)

    def to(self, device: torch.device | str) -> DualEncoder:
        """The towers on another device."""
        self.passages.to(device)
        self.questions.to(device)
        return self

    @classmethod
    def load(cls, path_or_id: PathLike) -> DualEncoder:
        """Reads a model directory; one without a question tower of its own uses its only encoder
        for both.

        Raises:
            CheckpointError: there is no such model, or it is damaged or of another kind.
        """
        model = best_of_run(path_or_id)
        question_folder = Path(model).expanduser() / QUESTION_FOLDER
        return cls(
            Encoder.load(model), Encoder.load(question_folder) if question_folder.is_dir() else None
        )

    def save(self, folder: PathLike) -> None:
        """Writes the passage tower as a model directory, and the question tower, if it is another,
        inside of it.

        Args:
            folder: replaced whole if one of our models is in it.
        """
        with atomic_directory(folder, overwrite=True, ours=is_ours) as temporary:
            self.passages.save(temporary)
            if self.questions is not self.passages:
                self.questions.save(temporary / QUESTION_FOLDER)


def with_title(text: str, title: str, vocabulary: Vocabulary | None) -> str:
    """A passage with its title in front; training and evaluation read the same form.

    Args:
        text: of the passage.
        title: of the passage, or none.
        vocabulary: of a passage tower with another one for questions: its separator stands in
            between, as in DPR. None for an encoder of both, which reads a space: so do the models
            and tools that have a single encoder.
    """
    separator = vocabulary.special_tokens.get("sep_token") if vocabulary is not None else None
    return " ".join(part for part in (title, separator, text) if part) if title else text


def _encode(
    encoder: Encoder,
    texts: Iterable[str],
    prompt: str,
    language: str | None,
    batch_tokens: int,
    dtype: Dtype,
) -> Float32[np.ndarray, "n d"]:
    return encoder.encode(
        texts,
        prompt=prompt if prompt in encoder.settings.prompts else None,
        language=language,
        batch_tokens=batch_tokens,
        dtype=dtype,
        normalize=encoder.settings.normalize,
    )
