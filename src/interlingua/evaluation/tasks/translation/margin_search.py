"""The base class of xsim and its variants: the best neighbor by margin in the other language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from interlingua.config import AtLeast
from interlingua.corpus.negatives.hard_negatives import Altered
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.augmented_sets import MISALIGNED
from interlingua.evaluation.data.folders import content_sha256
from interlingua.evaluation.examples import wrong_neighbors
from interlingua.evaluation.metrics.retrieval import is_right
from interlingua.evaluation.metrics.xsim import kinds_of_errors, xsim_search
from interlingua.evaluation.scores import Items, SubsetScores, mean_scores
from interlingua.evaluation.task import Findings, Scored, Unit
from interlingua.evaluation.tasks.translation.translations import Translations, TranslationTask
from interlingua.runtime.progress import Progress


@dataclass(frozen=True, kw_only=True)
class MarginSearch(TranslationTask):
    """The share of sentences with a best neighbor that is not their translation (LASER's xsim).

    All three margins are computed from one search: ratio, which is the main metric,
    ``..._distance`` and ``..._absolute``. A group has the mean over its languages and, as
    ``..._pooled``, the share over all its sentences, LASER's average.

    Attributes:
        k: number of neighbors that are scored, and over which the margin averages.
    """

    higher_is_better: ClassVar[bool] = False

    k: Annotated[int, AtLeast(1)] = 4

    def units(self, folder: Path) -> Iterable[Unit[Translations]]:
        """Yield the pairs of languages, with the further candidates of their target sentences."""
        # read once for all languages that are paired with the same target sentences
        pools: dict[str, list[Altered]] = {}
        for unit in super().units(folder):
            target = unit.languages[1]
            pool = content_sha256([[target], unit.data.targets])
            if pool not in pools:
                pools[pool] = self.altered(folder, target, unit.data.targets)
            yield replace(unit, data=unit.data._replace(altered=pools[pool]))

    def altered(self, folder: Path, language: str, targets: Sequence[str]) -> list[Altered]:
        """Return further candidates, all of them wrong; none by default."""
        return []

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Run the protocol; record the additional candidates, once per target side."""
        units = list(self.units(folder))
        found = self.score_units(encoder, folder, units, progress)
        # by identity: units that share a target side share one list, see ``units``
        pools = {id(unit.data.altered): unit.data.altered for unit in units if unit.data.altered}
        found.added = [content_sha256(zip(*pool, strict=True)) for pool in pools.values()]
        altered = [one for pool in pools.values() for one in pool]
        found.is_official = self.is_official(altered)
        found.notes += self.notes(altered)
        return found

    def margins(self) -> tuple[str, str, str]:
        """Return the metrics of the ratio, distance and absolute margins."""
        return self.main_metric, f"{self.main_metric}_distance", f"{self.main_metric}_absolute"

    def kinds_in(self, altered: Sequence[Altered]) -> list[str]:
        """Return the kinds of further candidates by which errors are counted."""
        return sorted({one.kind for one in altered})

    def is_official(self, altered: Sequence[Altered]) -> bool:
        """Return whether the further candidates are the protocol's own."""
        return True

    def notes(self, altered: Sequence[Altered]) -> list[str]:
        """Return the notes that a reader of the numbers needs."""
        if not altered:
            return []
        counts = Counter(one.kind for one in altered)
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
        return [f"the candidates include altered sentences: {kinds}"]

    def means(
        self, group: str, subsets: Sequence[SubsetScores], found: Findings
    ) -> dict[str, float]:
        """Compute the means over languages and, pooled, over all sentences."""
        by_pairs = mean_scores(subsets, by_pairs=True)
        pooled = {f"{metric}_pooled": by_pairs[metric] for metric in self.margins()}
        return mean_scores(subsets) | pooled

    def score(self, encoder: CachedEncoder, unit: Unit[Translations]) -> Scored:
        """Find each source sentence's best candidate by margin, and compute the error rate."""
        source, target = unit.languages
        sources, targets, altered = unit.data
        # candidate i is the translation of source i; the altered sentences follow
        candidates = [*targets, *(one.text for one in altered)]
        y = encoder.encode(candidates, language=target)
        x = encoder.encode(sources, language=source)
        search = xsim_search(x, y, k=self.k)
        # with texts, a candidate of the same text as the translation is right too
        texts = candidates if self.compare == "text" else None
        wrong = {
            margin: ~is_right(predicted, texts) for margin, predicted in search.predictions.items()
        }
        rates = [float(wrong[margin].mean()) for margin in ("ratio", "distance", "absolute")]
        scores = dict(zip(self.margins(), rates, strict=True))
        if altered:
            kinds = kinds_of_errors(search.predictions["ratio"], wrong["ratio"], targets, altered)
            errors = Counter(kinds)
            for kind in (*self.kinds_in(altered), MISALIGNED):
                scores[f"errors_{_slug(kind)}"] = errors[kind] / len(sources)
        examples = wrong_neighbors(
            ~wrong["ratio"],
            search.predictions["ratio"],
            sources,
            candidates,
            search.ratio,
            languages=unit.languages,
            limit=self.examples,
            measure="margin (ratio)",
        )
        return Scored(scores, Items(wrong["ratio"].astype(np.float64)), examples)


def _slug(kind: str) -> str:
    return re.sub(r"\W+", "_", kind.strip().lower())
