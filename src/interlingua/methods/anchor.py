"""Anchor: a student learns a frozen teacher's space, with a bank of the teacher's stored vectors as negatives.

Distillation, bidirectional contrast, interpolated targets and the split softmax are OmniSONAR's (Omnilingual SONAR Team
2026), the soft labels IMASCL's (Park et al. 2024), same-language negatives follow LAReQA (Roy et al. 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.sentences import by_pivot, join_all, language_codes
from interlingua.batches.tokens import ParallelBatch
from interlingua.config import refuse_unread
from interlingua.encoder.altered_sentences import AlteredSentences
from interlingua.encoder.anchors import Anchors, Negatives
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional.anchoring import contrast_with_bank, soft_labels, split_softmax, squared_distance
from interlingua.functional.contrastive import infonce, inner_products
from interlingua.methods.objective import LossOutput, Objective

WEIGHTS = ("mse_weight", "to_bank_weight", "from_bank_weight", "soft_weight", "hard_weight")


@dataclass(frozen=True, kw_only=True, slots=True)
class AnchorConfig:
    """The loss and its terms; a weight of 0 leaves a term out."""

    teachers: tuple[str, ...] = ()
    """Models to be learnt from, folders or hub ids, or ready vectors (``NAME.npy`` beside ``NAME.txt``); several are
    joined. Default: the encoder as it is before training."""
    teacher_prompts: tuple[str, ...] = ()
    """Text in front of what each teacher reads, in their order; default: none."""
    pivot: str = "eng_Latn"
    """The language that the teacher reads; one side of every pair is in it."""
    known_languages: tuple[str, ...] = ()
    """Languages that the teacher knows: the target of their sentences is the mean of both sides' teacher vectors."""
    student_reads: Literal["translations", "alternate", "both"] = "alternate"
    """translations: the student never reads the pivot's side; alternate: it reads that in place of the translations in
    one step of ``original_steps``; both: both sides in every step."""
    original_steps: int = 3
    """Steps from one that reads originals to the next, with student_reads = "alternate"."""
    bank: str = ""
    """Folder of the teacher's vectors, reused if they are of the same teachers and sentences; default: in the run's."""
    bank_size: int = 32_768
    """Negatives of a step: the pivot's sentences of this run, and more of the corpus where those are fewer."""
    bank_steps: int = 100
    """Steps with the same negatives, where there are more than ``bank_size``."""
    temperature: float = 0.05
    """Divides the cosines of the contrasts and of the split softmax."""
    soft_temperature: float = 0.05
    """Divides the cosines of the soft labels, the student's and the teacher's."""
    same_side_negatives: Literal["none", "language", "all"] = "none"
    """Further negatives of the contrast with the bank: what the student made of the batch's other sentences, of the
    same language (strong alignment) or of all."""
    hard_kinds: tuple[str, ...] = ("number", "entity", "negation", "antonym", "word_order")
    """What is altered in the hard negatives."""
    hard_count: int = 2
    """Hard negatives of an original, at most."""
    mse_weight: float = 1.0
    """Weight of the squared distance to the teacher."""
    to_bank_weight: float = 1.0
    """Weight of the contrast of a student's vector with the bank."""
    from_bank_weight: float = 1.0
    """Weight of the contrast of a teacher's vector with the batch's students."""
    soft_weight: float = 1.0
    """Weight of the soft labels."""
    hard_weight: float = 0.0
    """Weight of the split softmax over altered originals, in steps in which the student reads originals."""

    def __post_init__(self) -> None:
        weights = [getattr(self, name) for name in WEIGHTS]
        if min(weights) < 0 or not any(weights[:-1]):
            raise ConfigError(f"{', '.join(WEIGHTS)} must be at least 0, and one of all but the last above it")
        for name in ("temperature", "soft_temperature", "bank_size", "bank_steps", "original_steps", "hard_count"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be positive")
        if self.teacher_prompts and len(self.teacher_prompts) != max(len(self.teachers), 1):
            raise ConfigError(
                f"teacher_prompts has {len(self.teacher_prompts)} entries for {max(len(self.teachers), 1)} teachers;"
                " give one for each"
            )
        if self.hard_weight and self.student_reads == "translations":
            raise ConfigError('hard_weight is set, but with student_reads = "translations" no original is read')
        refuse_unread(self, "original_steps", reason="student_reads", when=self.student_reads != "alternate")
        refuse_unread(self, "hard_kinds", "hard_count", reason="hard_weight = 0", when=not self.hard_weight)
        refuse_unread(self, "soft_temperature", reason="soft_weight = 0", when=not self.soft_weight)
        refuse_unread(self, "same_side_negatives", reason="to_bank_weight = 0", when=not self.to_bank_weight)


class Anchor(Objective):
    """The student's vectors of a sentence and of its translations are drawn to one anchor: the teacher's vector.

    The training loop fills the bank of ``anchors`` before the first step. Without one, a single teacher embeds each
    batch, and the batch's targets stand in for the bank.

    Args:
        config: the options.
        encoder: the student.

    Raises:
        ConfigError: the tokens can't be turned back into text for the teacher, or a kind of alteration is unknown.
        CheckpointError: there is no such teacher.
    """

    Config = AnchorConfig
    config: AnchorConfig

    def __init__(self, config: AnchorConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        self.anchors = Anchors(
            encoder,
            config.teachers,
            config.teacher_prompts,
            pivot=config.pivot,
            known_languages=config.known_languages,
            folder=config.bank,
            size=config.bank_size,
            every=config.bank_steps,
        )
        self.alter: AlteredSentences | None = None
        if config.hard_weight:
            self.alter = AlteredSentences(
                encoder.vocabulary,
                self.anchors.pivot,
                kinds=config.hard_kinds,
                count=config.hard_count,
                max_tokens=encoder.max_tokens,
            )
            self.anchors.names = self.alter

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """w_m L_MSE + w_s L_student->teacher + w_t L_teacher->student, OmniSONAR's Eq. (11), and what is added."""
        config = self.config
        translations, originals = by_pivot(batch, self.anchors.pivot)
        y = self.anchors.vectors(originals)
        reads_translations, reads_originals = self.reads(batch.step)
        sides, targets, altered = [], [], None
        if reads_translations:
            sides.append(translations)
            targets.append(self.anchors.interpolated(translations, y))  # z = (x + y) / 2, or y
        if reads_originals:
            sides.append(originals)
            targets.append(y)
            if self.alter is not None:
                altered = self.alter(originals, seed=batch.seed, step=batch.step, known=self.anchors.is_known)
        vectors = self.encoder(join_all([*sides, *([altered.sentences] if altered else [])]))
        students = list(vectors[: len(sides) * len(y)].chunk(len(sides)))
        negatives = self.anchors.negatives(translations, originals, y, step=batch.step, gather=self.all_gather)
        codes = [language_codes(side) for side in sides]
        s, z, language = (torch.cat([self.all_gather(x) for x in both]) for both in (students, targets, codes))
        terms = self.contrasts(s, z, negatives, language)
        if altered is not None:
            queries = targets[-1:] + students[:-1]  # the anchor, and the translation where that is read too
            split = [
                split_softmax(
                    x, students[-1], vectors[len(sides) * len(y) :], altered.owners, temperature=config.temperature
                )
                for x in queries
            ]
            terms["hard"] = torch.stack(split).mean()  # Eq. (5), second part
        return self.weighted(**terms)

    def contrasts(
        self, s: Float[Tensor, "b d"], z: Float[Tensor, "b d"], negatives: Negatives, language: Int64[Tensor, " b"]
    ) -> dict[str, Float[Tensor, ""]]:
        """The terms of what all processes read; one product of the students with the bank serves two of them."""
        config, terms = self.config, {}
        sides = len(s) // len(negatives.pairs)
        self.need_others(len(negatives.pairs), "pair of translations")
        same_pair = negatives.pairs.repeat(sides, sides)
        if config.mse_weight:
            terms["mse"] = squared_distance(s, z)
        s, z = (F.normalize(vectors.float(), dim=1) for vectors in (s, z))
        positive, bank = (s * z).sum(dim=1), inner_products(s, negatives.vectors)
        if config.to_bank_weight:
            excluded, others = negatives.same_meaning.repeat(sides, 1), bank
            if config.same_side_negatives != "none":
                other_language = (language[:, None] != language) & (config.same_side_negatives == "language")
                others = torch.cat([bank, inner_products(s, s)], dim=1)
                excluded = torch.cat([excluded, same_pair | other_language], dim=1)
            terms["to_bank"] = contrast_with_bank(  # Eq. (9)
                positive, others, temperature=config.temperature, excluded=excluded
            )
        if config.from_bank_weight:
            terms["from_bank"] = infonce(z, s, temperature=config.temperature, excluded=same_pair)  # Eq. (9)
        if config.soft_weight:
            own = torch.zeros_like(positive, dtype=torch.bool)
            terms["soft"] = soft_labels(  # IMASCL
                torch.cat([positive[:, None], bank], dim=1),
                torch.cat([torch.ones_like(positive)[:, None], inner_products(z, negatives.vectors)], dim=1),
                temperature=config.soft_temperature,
                excluded=torch.cat([own[:, None], negatives.same_sentence.repeat(sides, 1)], dim=1),
            )
        return terms

    def reads(self, step: int) -> tuple[bool, bool]:
        """Whether the student reads translations and originals in a step; to be measured, whatever it trains on."""
        config = self.config
        if config.student_reads != "alternate" or not self.training:
            return True, config.student_reads == "both"
        originals = step % config.original_steps == config.original_steps - 1
        return not originals, originals
