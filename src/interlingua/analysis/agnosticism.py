"""The language-agnosticism panel: how much of the language is left in an encoder's space.

The texts are line-aligned, so line i means the same in all languages, and whatever differs between
languages on average is the language itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from interlingua.analysis.hubness import hubness
from interlingua.analysis.isotropy import isotropy
from interlingua.analysis.language_bias import language_bias
from interlingua.analysis.language_gap import accuracy_gap, language_gap
from interlingua.analysis.language_identification import L2, language_identification
from interlingua.analysis.record import Analysis
from interlingua.analysis.subject import Subject, of_texts
from interlingua.config import CheckedSettings
from interlingua.evaluation.metrics.pool import accuracy_by_pair, search_pool
from interlingua.evaluation.parallel import read_parallel, unit_vectors
from interlingua.runtime.progress import SILENT, Progress

_STAGES = 3
"""Pieces of work that progress counts: embedding, the pass over the pool, the probe."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agnosticism(CheckedSettings):
    """Language probe, language bias, hubness, isotropy and language gap of the same vectors.

    Each measure has a file of its own. Memory holds one language's vectors, tiles of similarities
    and some flags per sentence and language; the vectors of all languages are in a temporary file.
    """

    name: ClassVar[str] = "agnosticism"
    version: ClassVar[str] = "1"

    languages: tuple[str, ...] | None = None
    """Codes, names or groups (muse, low_resource, mexma); default: those of muse and English that
    the texts have, else all."""
    k: int = 10
    """Neighbors counted for hubness."""
    l2: float = L2
    """Weight of the probe's penalty relative to the loss in nats per sentence; the penalty is half
    the squared length of the probe's weights."""

    def unfit(self, subject: Subject) -> str | None:
        """Return None: any encoder is fit, see ``Analyser.unfit``."""
        return None

    def run(self, subject: Subject, data: Path, *, progress: Progress = SILENT) -> Analysis:
        """Analyze a model, see ``Analyser.run``."""
        texts = read_parallel(data, self.languages)
        languages = texts.languages
        work = len(texts.languages) * texts.sentences
        progress.start(_STAGES * work, "sentences", self.name)
        vectors = unit_vectors(subject.embeds, texts, progress=progress.within(work))
        # One pass over all pairs of sentences serves bias, hubness and the accuracies.
        pool = search_pool(vectors, k=self.k, progress=progress.within(work))
        probe = language_identification(
            vectors, languages, l2=self.l2, progress=progress.within(work)
        )
        measures = [
            probe,
            *language_bias(pool, languages),
            *hubness(pool, languages),
            *isotropy(vectors, languages),
            *language_gap(vectors, languages),
            accuracy_gap(pool, languages),
        ]
        return of_texts(self, texts, measures=measures, tables=accuracy_by_pair(pool, languages))
