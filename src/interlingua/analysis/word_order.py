"""Two sentences of nearly the same words and different meaning: EMS (Mao et al. 2023), V-H."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from interlingua.analysis.record import Analysis, Measure
from interlingua.analysis.subject import Subject
from interlingua.config import CheckedSettings
from interlingua.evaluation.data.folders import content_sha256
from interlingua.evaluation.task import options
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.arrays import normalize_rows

_SENTENCES = (
    "can you believe that what he actually did was steal the money she saved for the children?",
    "what can you actually believe she did was save the money for the children that he stole?",
)
PAPER = {"LASER": 0.90, "LaBSE": 0.95, "SBERT-distill": 0.97, "EMS": 0.97}
_NOTE = (
    f"the paper prints {', '.join(f'{model} {cosine:.2f}' for model, cosine in PAPER.items())};"
    " contrary to the paper, the two sentences do not have identical words (steal and stole, save"
    " and saved); compare the cosine with the mean cosine of different lines"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class WordOrder(CheckedSettings):
    """The cosine of the paper's two lowercased sentences; a smaller one separates them better."""

    name: ClassVar[str] = "word_order"
    version: ClassVar[str] = "1"

    def unfit(self, subject: Subject) -> str | None:
        """Return None: any encoder is fit, see ``Analyser.unfit``."""
        return None

    def run(self, subject: Subject, data: Path, *, progress: Progress = SILENT) -> Analysis:
        """Analyze the paper's two sentences, see ``Analyser.run``; no data are read."""
        first, second = normalize_rows(subject.embeds.encode(list(_SENTENCES), language="eng_Latn"))
        return Analysis(
            task=self.name,
            version=self.version,
            dataset="",
            data_sha256=content_sha256([_SENTENCES]),
            data_revision="EMS, section V-H",
            languages=("eng_Latn",),
            sentences=len(_SENTENCES),
            measures=(
                Measure(
                    name="word_order_cosine",
                    value=float(first @ second),
                    unit="cosine",
                    better="lower",
                    definition="cosine of two sentences of nearly the same words and different"
                    " meaning",
                ),
            ),
            examples=tuple({"text": text} for text in _SENTENCES),
            notes=(_NOTE,),
            **options(self),
        )
