"""Calibrated similarity for multilingual sentence embedding (Ham and Kim 2021): its stage 2.

Stage 1 has taught one encoder to judge the similarity of English sentences (``nli`` and ``sts``).
Student and teacher are both initialized with that encoder. The student reads the other language and
learns to reproduce the teacher's embedding of the English translation, Eq. (1). The teacher is
never trained by gradients: after each step it moves a little towards the student, Eq. (2), as in
BYOL. If it moves too fast, both drift together and lose what stage 1 has taught. If it does not
move, the student is held to a space that was made only for English (Table 4 measures both).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from interlingua.batches.sentences import by_pivot
from interlingua.batches.tokens import ParallelBatch
from interlingua.config import MANY, Between, CheckedSettings, refuse_unread
from interlingua.config.languages import resolve_language
from interlingua.config.method_options import PositiveWeight
from interlingua.encoder.encoder import Encoder
from interlingua.functional.distillation import mean_squared_error
from interlingua.methods.objective import LossOutput, Objective
from interlingua.methods.teachers.ema import EmaTeacher, cosine_decay


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibratedConfig(CheckedSettings):
    """The defaults are the paper's model; its Table 4 varies ``decay`` and ``teacher``."""

    teacher: Literal["ema", "frozen"] = "ema"
    """ema: the teacher follows the student; frozen: the teacher keeps its first weights, "freeze
    teacher" of Table 4."""
    decay: Annotated[float, Between(0, 1)] = 0.99999
    """tau_base: share of its weights that the teacher keeps in the first step of the paper's run,
    which has ``decay_steps`` steps."""
    decay_steps: Annotated[int, Between(0, MANY)] = 105_000
    """Length, in steps, of the run that ``decay`` is meant for. In a run of K steps the decay is
    1 - (1 - decay) * decay_steps / K, so that the product (1 - decay) * steps stays the same.
    Otherwise the teacher of a short run would hardly move. 0 = use ``decay`` unchanged."""
    decay_schedule: Literal["cosine", "constant"] = "cosine"
    """cosine: the decay rises to 1 at the end of the run, as in BYOL; constant: tau_base in every
    step."""
    compensated_average: bool = False
    """Keep the rounding errors of the teacher's updates in float32. Without them, the smallest
    updates are lost at a decay of 0.99999."""
    teacher_dropout: bool = False
    """Use dropout in the teacher too, as in BYOL; the paper does not say whether it does."""
    english_through_student: bool = False
    """Also teach the student the pivot's own sentences, as Reimers and Gurevych (2020) do; the
    paper does not."""
    distillation_weight: PositiveWeight = 1.0
    """Weight of the other languages' term in the loss."""
    english_weight: PositiveWeight = 1.0
    """Weight of the pivot's own term, with ``english_through_student``."""
    pivot: str = "eng_Latn"
    """Language that only the teacher reads; every pair has a side in it."""

    def __post_init__(self) -> None:
        # An option without effect is refused: the run would not do what its config file says.
        is_frozen = self.teacher == "frozen"
        teacher_only = not self.english_through_student
        read_by_ema = ("decay", "decay_steps", "decay_schedule", "compensated_average")
        refuse_unread(self, *read_by_ema, reason="teacher = 'frozen'", when=is_frozen)
        refuse_unread(
            self, "english_weight", reason="english_through_student = false", when=teacher_only
        )


class Calibrated(Objective):
    """Objective that moves the student's embeddings to the teacher's embeddings of translations.

    The teacher reads the English translations.

    Args:
        config: the options.
        encoder: the student, and the teacher's first weights; pools by the mean in the paper.
    """

    Config = CalibratedConfig
    nested_terms = ("distillation", "english")
    config: CalibratedConfig

    def __init__(self, config: CalibratedConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        compensated = config.compensated_average
        self.teacher = EmaTeacher(encoder, dropout=config.teacher_dropout, compensated=compensated)
        self.pivot = resolve_language(config.pivot).code

    @property
    def decay(self) -> float:
        """tau_base of this run: (1 - tau_base) K is the same as in the paper's run; at least 0."""
        config = self.config
        if not config.decay_steps:
            return config.decay
        # The sum of (1 - tau_k) over a run is about (1 - tau_base) K / 2. It determines how far the
        # teacher moves from its first weights, so this product stays the same when K changes.
        return max(0.0, 1 - (1 - config.decay) * config.decay_steps / self.total_steps)

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """Compute the loss of Eq. (1): the student encodes x_lg, the teacher encodes x_en."""
        x_lg, x_en = by_pivot(batch, self.pivot)
        with torch.no_grad():
            target = self.teacher.encoder(x_en)  # f_xi(x_en), a constant
        student = self.encoder(x_lg)  # f_theta(x_lg)
        terms = {"distillation": self.nested(mean_squared_error, student, target)}  # Eq. (1)
        if self.config.english_through_student:
            # the second term of Reimers and Gurevych (2020), which the paper leaves out
            terms["english"] = self.nested(mean_squared_error, self.encoder(x_en), target)
        return self.weighted(**terms)

    def after_step(self, step: int) -> None:
        """Move the teacher, Eq. (2): xi <- tau_k xi + (1 - tau_k) theta."""
        if self.config.teacher != "ema":
            return
        # BYOL's order: theta is updated already, k is the step just made, counted from 0.
        tau_k = self.decay
        if self.config.decay_schedule == "cosine":
            # tau_k = 1 - (1 - tau_base) (cos(pi k / K) + 1) / 2
            tau_k = cosine_decay(step, base=self.decay, total_steps=self.total_steps)
        self.teacher.update(self.encoder, tau_k)

    def notes(self) -> list[str]:
        """Return lines on how the length of the run changed the decay."""
        config = self.config
        length = self.total_steps
        if config.teacher == "frozen":
            return ["the teacher is frozen"]
        if not config.decay_steps:
            product = (1 - config.decay) * length
            return [
                f"teacher: decay {config.decay:g} is unchanged, (1 - decay) * steps = {product:.4g}"
            ]
        kept = (1 - config.decay) * config.decay_steps
        return [
            f"teacher: (1 - decay) * steps = {kept:.4g} is kept, so {config.decay:g} for"
            f" {config.decay_steps:,} steps becomes {self.decay:.6g} for"
            f" {length:,}{' (not below 0)' if kept > length else ''}"
        ]
