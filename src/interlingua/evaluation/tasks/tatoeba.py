"""Tatoeba similarity search, LASER (Artetxe & Schwenk 2019): P@1 between English and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import set_name
from interlingua.evaluation.examples import cosine_of, wrong_neighbors
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.scores import Items
from interlingua.evaluation.task import Scored, Unit
from interlingua.evaluation.tasks.groups import TATOEBA_GROUPS
from interlingua.evaluation.tasks.translations import (
    TranslationPair,
    Translations,
    TranslationTask,
    paired_files,
)


class Tatoeba(TranslationTask):
    """P@1 of cosine retrieval within each language's file, both directions and their mean.

    The candidates of a sentence are the other side of its own file, up to 1000. Averages are
    unweighted over languages. Any folder of ``<a>-<b>.tsv`` files will do, a prepared corpus's
    ``heldout`` for one; then the result is named after it, and only LASER's own data, recognized by
    content, stand under the name ``tatoeba``.
    """

    name: ClassVar[str] = "tatoeba"
    main_metric: ClassVar[str] = "accuracy"
    folders: ClassVar[Sequence[str]] = ("tatoeba_laser", "tatoeba", "heldout")
    expected: ClassVar[str] = "folder of <lang>-eng.tsv files"
    published: ClassVar[str | None] = "tatoeba_laser"
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = TATOEBA_GROUPS

    def files(self, folder: Path) -> dict[str, TranslationPair]:
        """See ``TranslationTask.files``."""
        return paired_files(folder)

    def dataset_name(self, folder: Path) -> str:
        """See ``Task.dataset_name``; a part of a corpus is called after that too."""
        return set_name(folder)

    def score(self, encoder: CachedEncoder, unit: Unit[Translations]) -> Scored:
        """See ``Task.score``."""
        source, target = unit.languages
        sources, targets, _ = unit.data
        x = encoder.encode(sources, language=source)
        y = encoder.encode(targets, language=target)
        nearest_target, nearest_source = nearest_both_ways(x, y)
        # with texts, a candidate of the same text as the translation is right too
        if self.compare == "text":
            right_forward = is_right(nearest_target, targets)
            right_backward = is_right(nearest_source, sources)
        else:
            right_forward = is_right(nearest_target)
            right_backward = is_right(nearest_source)
        forward = float(right_forward.mean())
        backward = float(right_backward.mean())
        scores = {
            "accuracy": (forward + backward) / 2,
            "accuracy_forward": forward,
            "accuracy_backward": backward,
        }
        examples = wrong_neighbors(
            right_forward,
            nearest_target,
            sources,
            targets,
            cosine_of(x, y),
            languages=(source, target),
            limit=self.examples,
        )
        examples += wrong_neighbors(
            right_backward,
            nearest_source,
            targets,
            sources,
            cosine_of(y, x),
            languages=(target, source),
            limit=self.examples,
        )
        # each line's mean of both directions, of which the main score is the mean
        return Scored(scores, Items(right_forward / 2 + right_backward / 2), examples)
