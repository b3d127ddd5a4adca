"""Tatoeba similarity search: P@1 between English and other languages, LASER (Artetxe & Schwenk 2019)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from interlingua.corpus.evaluation_sets import PairFile, read_pair_file
from interlingua.evaluation.examples import PER_SUBSET, cosine_of, wrong_neighbours
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.task import Embeds, Example, Items, Progress, SubsetScores, TaskResult, options, silent
from interlingua.evaluation.tasks.folders import (
    choose_languages,
    content_sha256,
    find_folder,
    full_code,
    pair_files_by_key,
    recognise,
    set_name,
)
from interlingua.evaluation.tasks.groups import TATOEBA_GROUPS, group_members, grouped

DATASET = "tatoeba_laser"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tatoeba:
    """P@1 of cosine retrieval within each language's file, both directions and their mean.

    The candidates of a sentence are the other side of its own file, up to 1000. Averages are unweighted over languages.
    Any folder of ``<a>-<b>.tsv`` files will do, a prepared corpus's ``heldout`` for one; then the result is named
    after it, and only LASER's own data, recognised by content, stand under the name ``tatoeba``.

    Attributes:
        languages: languages, pairs or groups of them to score; all that have a file by default.
        compare: ``index`` counts only the sentence's own translation as right, ``text`` also a candidate of the
            same text (LASER's option for duplicates).
        examples: wrong neighbors kept next to the result, per language pair; 0 for none.
    """

    name: ClassVar[str] = "tatoeba"
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "accuracy"
    folders: ClassVar[Sequence[str]] = (DATASET, "tatoeba", "heldout")
    expected: ClassVar[str] = "folder of <lang>-eng.tsv files"

    languages: Sequence[str] | None = None
    compare: Literal["index", "text"] = "index"
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, self.folders, self.files, self.expected)
        files = self.files(folder)
        chosen = self.parts(folder)
        pairs = {code: read_pair_file(files[code]) for code in chosen}
        digests = {code: content_sha256(sides) for code, sides in pairs.items()}
        total = sum(2 * len(sources) for sources, _ in pairs.values())
        done = 0
        subsets = []
        items = {}
        examples = {}
        for code, (sources, targets) in pairs.items():
            file = files[code]
            scores, items[file.name], examples[file.name] = self._score(encoder, file.name, sources, targets)
            subsets.append(scores)
            done += 2 * len(sources)
            progress(file.name, done, total)
        revision = recognise(DATASET, digests)
        return TaskResult(
            task=self.name if revision else f"{self.name}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=set_name(folder),
            data_sha256=content_sha256([list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(subsets),
            seconds=time.perf_counter() - start,
            items=items,
            examples=examples,
            **grouped(group_members(subsets, TATOEBA_GROUPS if revision else {})),
            **options(self),
        )

    def files(self, folder: Path) -> dict[str, PairFile]:
        """The files by what tells them apart; nothing in a folder of another layout."""
        return pair_files_by_key(folder)

    def parts(self, data: Path) -> list[str]:
        """See ``Task.parts``."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        files = self.files(folder)
        languages = {key: file.source_language for key, file in files.items()}
        names = {key: file.name for key, file in files.items()}
        pivots = {file.target_language for file in files.values()}
        return choose_languages(self.languages, languages, TATOEBA_GROUPS, folder, names=names, pivots=pivots)

    def _score(
        self, encoder: Embeds, name: str, sources: list[str], targets: list[str]
    ) -> tuple[SubsetScores, Items, tuple[Example, ...]]:
        source, target = map(full_code, name.split("-"))
        x = encoder.encode(sources, language=source)
        y = encoder.encode(targets, language=target)
        nearest_target, nearest_source = nearest_both_ways(x, y)
        by_text = self.compare == "text"
        right_forward = is_right(nearest_target, targets if by_text else None)
        right_backward = is_right(nearest_source, sources if by_text else None)
        forward = float(right_forward.mean())
        backward = float(right_backward.mean())
        scores = {"accuracy": (forward + backward) / 2, "accuracy_forward": forward, "accuracy_backward": backward}
        subset = SubsetScores(name=name, languages=(source, target), pairs=len(sources), scores=scores)
        there = (right_forward, nearest_target, sources, targets, cosine_of(x, y))
        back = (right_backward, nearest_source, targets, sources, cosine_of(y, x))
        examples = wrong_neighbours(*there, languages=(source, target), limit=self.examples)
        examples += wrong_neighbours(*back, languages=(target, source), limit=self.examples)
        return subset, Items(right_forward / 2 + right_backward / 2), examples
