"""Multilingual knowledge distillation from a frozen teacher (Reimers and Gurevych 2020).

The teacher embeds one language well, usually English, and stays as it is. The student puts a
sentence and its translation where the teacher puts the sentence: the space is copied, and extended
to the other languages. No negatives are needed, as the teacher keeps the space from collapsing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from jaxtyping import Float
from torch import Tensor

from interlingua.batches.feeds import FeedName
from interlingua.batches.sentences import by_pivot, join
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import CheckedSettings, PathText
from interlingua.config.languages import resolve_language
from interlingua.config.method_options import Weight
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional.distillation import mean_squared_error
from interlingua.methods.objective import LossOutput, Objective, Term, need_a_loss
from interlingua.methods.teachers.frozen_teachers import PROBE as PROBE


@dataclass(frozen=True, kw_only=True, slots=True)
class DistillConfig(CheckedSettings):
    """Distillation; the defaults are the paper's loss."""

    teacher: PathText = ""
    """Model with the embeddings to learn, folder or ``hf:owner/name``; default: the encoder before
    training."""
    pivot: str = "eng_Latn"
    """The language that the teacher reads; one side of every pair is in it."""
    translation_weight: Weight = 1.0
    """Weight of the term that draws translations to the teacher's embedding of the original."""
    original_weight: Weight = 1.0
    """Weight of the term that draws originals to the teacher's embeddings of them; 0 = the student
    reads translations only."""
    replay_weight: Weight = 0.0
    """Weight of the term that keeps sentences of the monolingual feed, in any language, at
    the teacher's vectors; 0 = there is no such feed."""

    def __post_init__(self) -> None:
        need_a_loss(self, "translation_weight", "original_weight")


class DistillInputs(NamedTuple):
    """The tokens that student and teacher read."""

    student: TokenBatch
    """[s; t], originals and translations, or only the translations."""
    teacher: TokenBatch
    """The originals, in the teacher's tokens."""
    replayed: tuple[TokenBatch, TokenBatch] | None
    """Sentences without a translation, as the student and as the teacher reads them."""


class Distill(Objective):
    """Objective that moves the embeddings of a sentence and its translation to the teacher's.

    A teacher with the student's vocabulary reads the corpus's tokens. A teacher with another
    vocabulary reads their text, which is decoded and tokenized again in every step.

    Args:
        config: the options.
        encoder: the student.

    Raises:
        ConfigError: the teacher's embeddings have another width, or the tokens can't be turned back
            into text for it.
        CheckpointError: there is no such teacher.
    """

    Config = DistillConfig
    nested_terms = ("original", "translation", "replay")
    takes_forms = True
    config: DistillConfig

    def __init__(self, config: DistillConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        self.pivot = resolve_language(config.pivot).code
        teacher = Encoder.load(config.teacher) if config.teacher else encoder.clone()
        self.teacher = teacher.float()
        self.teacher.requires_grad_(False)
        if self.teacher.dim != encoder.dim:
            raise ConfigError(
                f"teacher: {config.teacher} has embeddings of width {self.teacher.dim}, but the"
                f" encoder has width {encoder.dim}; use an encoder and a teacher of equal width"
            )
        own = encoder.vocabulary
        other = self.teacher.vocabulary
        limit = self.teacher.max_tokens
        self.retokenizes = own.digest() != other.digest()
        # A corpus keeps tokens, not text. If its vocabulary lowercases or drops spaces, the teacher
        # would read something else than what was written, and that has to be refused.
        read_back = self.in_teacher_tokens(own.encode([PROBE], language=self.pivot))
        if self.retokenizes and read_back != other.encode(
            [PROBE], language=self.pivot, max_tokens=limit
        ):
            raise ConfigError(
                f"teacher: {config.teacher} has another vocabulary, and the corpus's vocabulary"
                " changes case or spaces of the text; prepare the corpus with the teacher's"
                " vocabulary, or use another teacher"
            )

    @classmethod
    def feeds_for(cls, config: DistillConfig) -> tuple[FeedName, ...]:
        """Return the feeds to read; replay reads sentences besides the pairs."""
        if config.replay_weight:
            return ("parallel", "monolingual")
        return ("parallel",)

    def train(self, mode: bool = True) -> Self:
        """Set the student's mode; the teacher stays in evaluation, without dropout."""
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, batch: ParallelBatch | Mapping[str, Any]) -> LossOutput:
        """Compute (M(s) - M^(s))^2 + (M(s) - M^(t))^2, section 2 of the paper.

        Replay of sentences r adds (M(r) - M^(r))^2.
        """
        _, (student, teacher, replayed) = self.prepared(batch)
        target = self.teach(teacher)  # M(s)
        terms: dict[str, Term] = {}
        t = self.encoder(student)  # M^(t)
        if self.config.original_weight:
            s, t = t.chunk(2)  # M^(s), M^(t): both sides in one pass
            terms["original"] = self.nested(mean_squared_error, s, target)
        terms["translation"] = self.nested(mean_squared_error, t, target)
        if replayed is not None:  # not in the paper
            r = self.encoder(replayed[0])  # M^(r)
            terms["replay"] = self.nested(mean_squared_error, r, self.teach(replayed[1]))
        return self.weighted(**terms)

    def prepare(self, batch: ParallelBatch | Mapping[str, Any]) -> DistillInputs:
        """Return the sentences to read, in the tokens of the student and of the teacher."""
        pairs = batch["parallel"] if isinstance(batch, Mapping) else batch
        translations, originals = by_pivot(pairs, self.pivot)
        student = self.as_written(translations, pairs)
        if self.config.original_weight:
            student = join(self.as_written(originals, pairs), student)
        replayed = None
        if isinstance(batch, Mapping):
            sentences = batch["monolingual"].sentences
            read = self.as_written(sentences, batch["monolingual"])
            replayed = read, self.for_teacher(sentences)
        return DistillInputs(student, self.for_teacher(originals), replayed)

    def for_teacher(self, originals: TokenBatch) -> TokenBatch:
        """Return the sentences in the teacher's tokens."""
        if not self.retokenizes and originals.max_seqlen <= self.teacher.max_tokens:
            return originals
        # A sentence that is too long is tokenized again even if the vocabulary is the same: it has
        # to be cut, and to end with the closing token.
        sentences = torch.split(originals.input_ids, originals.lengths.tolist())
        ids = self.in_teacher_tokens([sentence.tolist() for sentence in sentences])
        return TokenBatch.from_lists(ids, originals.languages)

    @torch.no_grad()
    def teach(self, originals: TokenBatch) -> Float[Tensor, "b d"]:
        """Compute the teacher's embeddings of sentences in its tokens."""
        embeddings: Tensor = self.teacher(originals)
        return embeddings

    def in_teacher_tokens(self, sentences: list[list[int]]) -> list[list[int]]:
        """Retokenize the student's tokens for the teacher, cut to its maximum length."""
        texts = [self.encoder.vocabulary.decode(ids) for ids in sentences]
        return self.teacher.vocabulary.encode(
            texts, language=self.pivot, max_tokens=self.teacher.max_tokens
        )
