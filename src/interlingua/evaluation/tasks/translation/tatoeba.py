"""Tatoeba similarity search, LASER (Artetxe & Schwenk 2019): P@1 between English and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import set_name
from interlingua.evaluation.scores import Items
from interlingua.evaluation.task import Scored, Unit
from interlingua.evaluation.tasks.groups import TATOEBA_GROUPS
from interlingua.evaluation.tasks.translation.pairwise import Embedded, both_directions
from interlingua.evaluation.tasks.translation.translations import (
    Translations,
    TranslationTask,
    paired_files,
)


class Tatoeba(TranslationTask):
    """P@1 of cosine retrieval within each language's file, both directions and their mean.

    The candidates of a sentence are the other side of its own file, up to 1000. Averages are
    unweighted over languages. Any folder of ``<a>-<b>.tsv`` files is accepted, for example a
    prepared corpus's ``heldout``; the result is then named after it. Only LASER's own data,
    recognized by content, have the name ``tatoeba``.
    """

    name: ClassVar[str] = "tatoeba"
    main_metric: ClassVar[str] = "accuracy"
    folders: ClassVar[Sequence[str]] = ("tatoeba_laser", "tatoeba", "heldout")
    reader: ClassVar = paired_files
    expected: ClassVar[str] = "folder of <lang>-eng.tsv files"
    published: ClassVar[str | None] = "tatoeba_laser"
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = TATOEBA_GROUPS

    def dataset_name(self, folder: Path) -> str:
        """Return the name of the data; for a part of a corpus, it includes the corpus's name."""
        return set_name(folder)

    def score(self, encoder: CachedEncoder, unit: Unit[Translations]) -> Scored:
        """Search for each translation in both directions, and compute the accuracy."""
        source, target = unit.languages
        sources, targets, _ = unit.data
        x = Embedded.by(encoder, source, sources)
        y = Embedded.by(encoder, target, targets)
        forward, backward = both_directions(x, y, limit=self.examples, compare=self.compare)
        accuracy_forward = float(forward.right.mean())
        accuracy_backward = float(backward.right.mean())
        scores = {
            "accuracy": (accuracy_forward + accuracy_backward) / 2,
            "accuracy_forward": accuracy_forward,
            "accuracy_backward": accuracy_backward,
        }
        # each line's mean of both directions, of which the main score is the mean
        by_line = Items(forward.right / 2 + backward.right / 2)
        return Scored(scores, by_line, forward.examples + backward.examples)
