"""Anchor: a student learns a frozen teacher's space, with a bank of its vectors as negatives.

The teacher's vector of a sentence is its anchor: the student learns to put the sentence and all its
translations there. A distance loss puts each vector near its anchor but does not check whether
another anchor is nearer. So contrasts and soft labels also compare the vector with the anchors of
many other sentences. These anchors are computed once, before the run, and stored in the bank, so
that tens of thousands of negatives cost one matrix product per step and need no large batch.

The distillation, the bidirectional contrast, the interpolated targets and the split softmax come
from OmniSONAR (Omnilingual SONAR Team 2026). The soft labels come from IMASCL (Park et al. 2024).
The same-language negatives follow LAReQA (Roy et al. 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.altered_sentences import HardRequest
from interlingua.batches.tokens import ParallelBatch
from interlingua.config import MANY, Between, CheckedSettings, PathText, refuse_unread
from interlingua.config.method_options import Size, Steps, Temperature, Weight
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional import contrastive
from interlingua.functional.anchoring import (
    contrast_with_bank,
    mean_gap,
    soft_labels,
    split_softmax,
    squared_distance,
)
from interlingua.functional.contrastive import inner_products, means_of_chunks
from interlingua.methods.matryoshka import nested_together
from interlingua.methods.objective import LossOutput, Objective
from interlingua.methods.teachers.anchors import AnchoredPairs, Anchors, Negatives, Rows
from interlingua.methods.teachers.teacher_bank import BankRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class AnchorConfig(CheckedSettings):
    """The loss and its terms. A weight of 0 switches a term off."""

    teachers: tuple[PathText, ...] = ()
    """Folders, hub ids, or ready vectors (``NAME.npy`` next to ``NAME.txt``); default: the encoder
    before training."""
    teacher_prompts: tuple[str, ...] = ()
    """Text in front of each teacher's sentences, in their order; default: none."""
    pivot: str = "eng_Latn"
    """The language that the teacher reads; one side of every pair is in it."""
    known_languages: tuple[str, ...] = ()
    """Languages that the teacher knows; for a sentence in one of them, the target is the mean of
    the teacher's vectors of both sides of the pair."""
    student_reads: Literal["translations", "alternate", "both"] = "alternate"
    """Sides of the pairs to read; alternate: the pivot's side in one of every ``original_steps``
    steps, the other side in the remaining steps."""
    original_steps: Steps = 3
    """Number of steps from one reading of originals to the next, if student_reads = "alternate"."""
    bank: PathText = ""
    """Folder of the teacher's vectors, reused if it was made with the same teachers and sentences;
    default: a folder in the run's folder."""
    bank_size: Size = 32_768
    """Number of negatives in a step: sentences of this run and, if the run has fewer, further
    sentences of the corpus."""
    bank_steps: Steps = 100
    """Number of steps with the same negatives, if the bank has more than ``bank_size`` of them."""
    temperature: Temperature = 0.05
    """Divisor of the cosines of the contrasts and of the split softmax."""
    soft_temperature: Temperature = 0.05
    """Divisor of the cosines of the soft labels, the student's and the teacher's."""
    side_negatives: Literal["language", "all"] = "all"
    """Negatives that the student embeds, for ``side_weight``: the batch's other sentences of the
    same language, or all other sentences of the batch."""
    hard_kinds: tuple[str, ...] = ("number", "entity", "negation", "antonym", "word_order")
    """Kinds of alterations in the hard negatives."""
    hard_count: Annotated[int, Between(1, MANY)] = 2
    """Hard negatives of an original, at most."""
    mse_weight: Weight = 1.0
    """Weight of the squared distance to the teacher."""
    to_bank_weight: Weight = 1.0
    """Weight of the contrast of a student's vector with the bank."""
    from_bank_weight: Weight = 0.25
    """Weight of the contrast of a teacher's vector with the batch's students and the bank."""
    center_weight: Weight = 0.0
    """Weight of the squared distance between the mean of a language's vectors in the batch and the
    mean of their targets."""
    side_weight: Weight = 0.0
    """Weight of the contrast with ``side_negatives``, for strong alignment."""
    soft_weight: Weight = 1.0
    """Weight of the soft labels."""
    hard_weight: Weight = 0.0
    """Weight of the split softmax over altered originals, in steps in which the student reads
    originals."""

    def __post_init__(self) -> None:
        names = [field.name for field in fields(self) if field.name.endswith("_weight")]
        if sum(getattr(self, name) for name in names) == self.hard_weight:
            raise ConfigError(
                f"{', '.join(names)} are 0, so the method has no loss; set one of them, other"
                " than hard_weight, above 0"
            )
        if self.teacher_prompts and len(self.teacher_prompts) != max(len(self.teachers), 1):
            raise ConfigError(
                'teacher_prompts: expected one prompt per teacher; use "" for a teacher without'
                " a prompt"
            )
        self._refuse_unread()

    def _refuse_unread(self) -> None:
        """Refuse options that have no effect."""
        reads = self.student_reads
        # Hard negatives are altered originals, contrasted where the student reads the originals.
        refuse_unread(
            self, "hard_weight", reason="this student_reads", when=reads == "translations"
        )
        refuse_unread(
            self, "original_steps", reason="this student_reads", when=reads != "alternate"
        )
        refuse_unread(
            self, "hard_kinds", "hard_count", reason="hard_weight = 0", when=not self.hard_weight
        )
        contrasts = (
            self.to_bank_weight + self.from_bank_weight + self.side_weight + self.hard_weight
        )
        refuse_unread(self, "temperature", reason="no contrastive term", when=not contrasts)
        refuse_unread(self, "soft_temperature", reason="soft_weight = 0", when=not self.soft_weight)
        refuse_unread(self, "side_negatives", reason="side_weight = 0", when=not self.side_weight)


class Anchor(Objective):
    """Objective that moves a sentence and its translations to the teacher's vector of the sentence.

    The training loop fills the bank. Without a bank, a teacher embeds each batch, and the negatives
    are the anchors of the batch.

    Args:
        config: the options.
        encoder: the student.

    Raises:
        ConfigError: the tokens can't be turned back into text for the teacher, or a kind of
            alteration is unknown.
        CheckpointError: there is no such teacher.
    """

    Config = AnchorConfig
    config: AnchorConfig
    nested_terms = ("mse", "to_bank", "from_bank", "center", "side", "soft", "hard")
    takes_forms = True

    def __init__(self, config: AnchorConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        bank = BankRequest(
            config.bank,
            config.pivot,
            config.known_languages,
            size=config.bank_size,
            every=config.bank_steps,
        )
        hard: HardRequest | None = None
        if config.hard_weight:
            hard = HardRequest(config.hard_kinds, config.hard_count)
        self.anchors = Anchors(
            encoder,
            teachers=config.teachers,
            prompts=config.teacher_prompts,
            bank=bank,
            hard=hard,
        )

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """Compute OmniSONAR's Eq. (11) and the added terms.

        w_s L_student->teacher + w_t L_teacher->student + w_m L_MSE + center, side, soft and hard.
        """
        batch, pairs = self.prepared(batch)
        read = self.anchors.reading(pairs, *self.reads(batch.step, training=self.training))
        vectors = self.encoder(read.sentences)
        # Rows: B of each side that is read, then those of the altered originals, if there are any.
        sizes = [batch.a.batch_size] * len(read.targets)
        *students, hard = vectors.split([*sizes, len(vectors) - sum(sizes)])
        negatives = self.anchors.negatives(pairs, read, batch.step, self.all_gather)
        self.need_others(len(negatives.pairs) // len(read.targets), "pair of translations")
        # Gathered one side after the other, in the order of the rows of ``negatives``.
        s = torch.cat([*map(self.all_gather, students)]).float()
        z = torch.cat([*map(self.all_gather, read.targets)]).float()
        terms = nested_together(
            self.matryoshka, partial(self.contrasts, negatives), s, z, negatives.vectors
        )
        if read.owners is not None:
            # The last side is the originals, e; the translations precede it, if they are read.
            split = partial(self.split, read.owners)
            terms["hard"] = self.nested(split, hard, students[-1], read.anchors, *students[:-1])
        return self.weighted(**terms)

    def prepare(self, batch: ParallelBatch) -> AnchoredPairs:
        """Return the pairs with everything that the bank knows about them."""
        reads = self.reads(batch.step, training=True)
        return self.anchors.prepare(
            batch, *reads, as_written=lambda sentences: self.as_written(sentences, batch)
        )

    def contrasts(
        self, negatives: Negatives, s: Rows, z: Rows, bank: Rows
    ) -> dict[str, Float[Tensor, ""]]:
        """Compute the terms over the sentences of all processes."""
        s, z = F.normalize(s, dim=1), F.normalize(z, dim=1)
        if bank.shape[1] != self.encoder.dim:
            bank = F.normalize(bank, dim=1)  # a prefix of a unit vector is shorter than 1
        terms = partial(self.terms_of, negatives, s, z, bank)
        columns = len(s) + len(bank)
        if len(s) * columns <= contrastive.WHOLE_LOGITS:
            return terms(None)
        found = means_of_chunks(terms, len(s), columns)
        if self.config.center_weight:
            found["center"] = mean_gap(s, z, negatives.languages)
        return found

    def terms_of(
        self, negatives: Negatives, s: Rows, z: Rows, bank: Rows, rows: slice | None
    ) -> dict[str, Float[Tensor, ""]]:
        """Compute the terms for some of the student's vectors, as means over these vectors.

        Two of the terms use the same product of these vectors with the bank.

        Args:
            negatives: the negatives of all the student's vectors.
            s: all the student's vectors, of length 1.
            z: their targets, of length 1.
            bank: vectors of the teacher, of length 1.
            rows: rows of ``s`` to compute the terms for; None: all rows. The term of the languages'
                means needs all rows, so the result includes this term only with None.
        """
        config = self.config
        terms = {}
        x = s
        target = z
        same = negatives
        if rows is not None:
            x = s[rows]
            target = z[rows]
            same = negatives.take(rows)
        positive = (x * target).sum(dim=1)  # cos(s_i, z_i)
        to_bank = inner_products(x, bank)  # cos(s_i, t_j)
        labels = inner_products(target, bank)  # cos(z_i, t_j)
        contrast = partial(contrast_with_bank, positive, temperature=config.temperature)
        if config.mse_weight:  # L_MSE of Eq. (11)
            terms["mse"] = squared_distance(x, target)
        if config.to_bank_weight:  # Eq. (9), student to teacher
            terms["to_bank"] = contrast(to_bank, excluded=same.same_meaning)
        if config.center_weight and rows is None:
            terms["center"] = mean_gap(s, z, negatives.languages)
        if config.side_weight:  # LAReQA's strong alignment
            excluded = same.pairs
            if config.side_negatives == "language":
                excluded = excluded | (same.languages[:, None] != negatives.languages)
            terms["side"] = contrast(inner_products(x, s), excluded=excluded)
        if config.from_bank_weight:
            # Eq. (9), teacher to student: a target has to find the student's vector of its sentence
            # among the student's vectors of the batch and the bank's vectors. The bank has only
            # sentences of the anchor's language, so features that the sentences of one language
            # share do not help.
            others = torch.cat([inner_products(target, s), labels], dim=1)
            excluded = torch.cat([same.pairs, same.same_meaning], dim=1)
            terms["from_bank"] = contrast(others, excluded=excluded)
        if config.soft_weight:
            # Other translations are not excluded: the student learns the teacher's view of them.
            terms["soft"] = soft_labels(
                positive,
                to_bank,
                labels,
                temperature=config.soft_temperature,
                excluded=same.same_sentence,
            )
        return terms

    def split(
        self, owners: Int64[Tensor, " m"], hard: Rows, e: Rows, *x: Rows
    ) -> Float[Tensor, ""]:
        """Compute the second part of Eq. (5); x: the anchors and, if read, the translations."""
        softmax = partial(split_softmax, temperature=self.config.temperature)
        return torch.stack([softmax(query, e, hard, owners) for query in x]).mean()

    def reads(self, step: int, *, training: bool) -> tuple[bool, bool]:
        """Return whether the student reads translations, and whether it reads originals.

        In evaluation this does not depend on the step.
        """
        config = self.config
        if config.student_reads != "alternate" or not training:
            return True, config.student_reads == "both"
        # The student reads originals in the last of every ``original_steps`` steps.
        originals = step % config.original_steps == config.original_steps - 1
        return not originals, originals

    def notes(self) -> list[str]:
        """Return lines that describe the bank."""
        return self.anchors.notes()
