"""A student ranks passages as its teacher does: the teacher's matrix of similarities is the target.

A teacher that retrieves well gives every question a distribution over the passages of the batch,
and every passage one over the questions. The student learns both, by Kullback-Leibler divergence
(listwise distillation, RocketQAv2, Ren et al. 2021). Unlike a contrast, this also shows the student
how near the other passages are. So the most useful hard negatives are passages that the teacher
considers almost an answer.

A multilingual teacher prefers candidates of the question's language. With ``candidates =
"language"`` questions and passages of different languages are not compared, so the student does
not learn this preference. Another term of the loss, on translations, has to align the languages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, Self

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.feeds import QuestionBatch
from interlingua.batches.sentences import language_codes
from interlingua.batches.tokens import TokenBatch
from interlingua.config import CheckedSettings, PathText, refuse_unread
from interlingua.config.method_options import Temperature, Weight
from interlingua.encoder.encoder import Encoder
from interlingua.functional.contrastive import inner_products
from interlingua.functional.distillation import similarity_divergence
from interlingua.methods.objective import LossOutput, Objective, Term, need_a_loss
from interlingua.methods.teachers.frozen_teachers import ModelTeacher
from interlingua.runtime.devices import on_device


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherSimilarityConfig(CheckedSettings):
    """The teacher, and which similarities the student follows."""

    teacher: PathText = ""
    """Model that ranks, folder or ``hf:owner/name``, of any width; default: the encoder before
    training."""
    question_prompt: str = ""
    """Text in front of the questions that the teacher reads, such as ``query: ``."""
    passage_prompt: str = ""
    """Text in front of the passages that the teacher reads."""
    candidates: Literal["language", "all"] = "language"
    """Candidates of a question: passages of its own language, or all of them."""
    temperature: Temperature = 0.05
    """Divisor of the student's cosines."""
    teacher_temperature: Temperature = 0.02
    """Divisor of the teacher's cosines; lower values make its ranking sharper."""
    question_weight: Weight = 1.0
    """Weight of the rankings of passages for each question."""
    passage_weight: Weight = 1.0
    """Weight of the rankings of questions for each passage."""

    def __post_init__(self) -> None:
        need_a_loss(self, "question_weight", "passage_weight")
        own = not self.teacher
        refuse_unread(
            self, "question_prompt", "passage_prompt", reason="the encoder as teacher", when=own
        )


class TeacherInputs(NamedTuple):
    """Questions and passages as the teacher and the student read them, and their languages."""

    questions: TokenBatch
    passages: TokenBatch
    """Passages in the teacher's tokens."""
    read: tuple[TokenBatch, TokenBatch]
    """Questions and passages as the student reads them."""
    languages: tuple[Int64[Tensor, " b"], Int64[Tensor, " n"]]
    """Language codes of the questions and of the passages."""


class TeacherSimilarity(Objective):
    """Objective that ranks passages for questions like the cosines of a frozen teacher.

    A teacher with the student's vocabulary reads the student's tokens. A teacher with another
    vocabulary reads their text.

    Args:
        config: the options.
        encoder: the student.

    Raises:
        ConfigError: the student's tokens can't be turned back into text for the teacher.
        CheckpointError: there is no such teacher.
    """

    Config = TeacherSimilarityConfig
    config: TeacherSimilarityConfig
    feeds = ("questions",)
    nested_terms = ("question", "passage")
    takes_forms = True

    def __init__(self, config: TeacherSimilarityConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        teacher = Encoder.load(config.teacher) if config.teacher else encoder.clone()
        self.teacher = teacher.float()
        self.teacher.requires_grad_(False)
        # The constructor of these readers refuses texts that the teacher can't read.
        self._readers = [
            ModelTeacher(
                self.teacher,
                encoder.vocabulary,
                pivot="eng_Latn",
                prompt=prompt,
                name=config.teacher,
            )
            for prompt in (config.question_prompt, config.passage_prompt)
        ]

    def train(self, mode: bool = True) -> Self:
        """Set the student's mode; the teacher stays in evaluation, without dropout."""
        super().train(mode)
        self.teacher.eval()
        return self

    def prepare(self, batch: QuestionBatch) -> TeacherInputs:
        """Return questions and passages in the teacher's tokens."""
        questions, passages = (
            for_teacher(reader, sentences)
            for reader, sentences in zip(
                self._readers, (batch.questions, batch.passages), strict=True
            )
        )
        languages = language_codes(batch.questions), language_codes(batch.passages)
        read = (
            self.as_written(batch.questions, batch),
            self.as_written(batch.passages, batch),
        )
        return TeacherInputs(questions, passages, read, languages)

    def forward(self, batch: QuestionBatch) -> LossOutput:
        """Compute w_q KL(T || S) of passages + w_p KL(T' || S') of questions; S = cos(q_i, p_j)."""
        batch, inputs = self.prepared(batch)
        config = self.config
        q, p = (self.all_gather(self.encoder(part)) for part in inputs.read)
        self.need_others(len(p), "question with its passage")
        target = self.teach(inputs.questions, inputs.passages)
        excluded: Bool[Tensor, "b n"] | None = None
        if config.candidates == "language":
            of_questions, of_passages = (
                self.all_gather(on_device(codes, q.device)) for codes in inputs.languages
            )
            excluded = of_questions[:, None] != of_passages

        follow = partial(self.divergence, target, excluded)
        terms: dict[str, Term] = {}
        if config.question_weight:
            terms["question"] = self.nested(follow, q, p)
        if config.passage_weight:
            turned = None if excluded is None else excluded.T
            terms["passage"] = self.nested(partial(self.divergence, target.T, turned), p, q)
        return self.weighted(**terms)

    def divergence(
        self,
        target: Float[Tensor, "b n"],
        excluded: Bool[Tensor, "b n"] | None,
        x: Float[Tensor, "b d"],
        y: Float[Tensor, "n d"],
    ) -> Float[Tensor, ""]:
        """Compute KL(T || S) of the rankings of every y for each x."""
        # Normalized here, because a prefix of a unit vector is shorter than 1.
        cosines = inner_products(F.normalize(x.float(), dim=1), F.normalize(y.float(), dim=1))
        return similarity_divergence(
            cosines,
            target,
            temperature=self.config.temperature,
            teacher_temperature=self.config.teacher_temperature,
            excluded=excluded,
        )

    @torch.no_grad()
    def teach(self, questions: TokenBatch, passages: TokenBatch) -> Float[Tensor, "b n"]:
        """Return the teacher's cosines of the questions with the passages of all processes."""
        of_questions = self.all_gather(self.teacher(questions).float())
        of_passages = self.all_gather(self.teacher(passages).float())
        return inner_products(F.normalize(of_questions, dim=1), F.normalize(of_passages, dim=1))


def for_teacher(reader: ModelTeacher, batch: TokenBatch) -> TokenBatch:
    """Return a batch's sentences in a teacher's tokens, language by language.

    Args:
        reader: knows both vocabularies, and the prompt.
        batch: in the student's tokens.
    """
    sentences = [ids.tolist() for ids in torch.split(batch.input_ids, batch.lengths.tolist())]
    found: dict[int, list[int]] = {}
    for language in sorted(set(batch.languages)):
        rows = [row for row, code in enumerate(batch.languages) if code == language]
        read = reader.in_own_tokens([sentences[row] for row in rows], language)
        found.update(zip(rows, read, strict=True))
    return TokenBatch.from_lists([found[row] for row in range(len(sentences))], batch.languages)
