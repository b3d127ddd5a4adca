"""xsim: the error of margin-based retrieval of English, LASER's ``xsim.py`` as MEXMA (Janeiro et al. 2024) uses it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from interlingua.corpus.evaluation_sets import PairFile, aligned_files, pair_files, read_aligned, read_pair_file
from interlingua.errors import DataError
from interlingua.evaluation.metrics.retrieval import is_right
from interlingua.evaluation.metrics.xsim import xsim_predictions
from interlingua.evaluation.task import Embeds, Items, Progress, SubsetScores, TaskResult, options, silent
from interlingua.evaluation.tasks.folders import choose_languages, content_sha256, find_folder, full_code, recognise
from interlingua.evaluation.tasks.groups import FLORES_GROUPS, group_members, grouped

DATASET = "flores200_devtest"
ENGLISH = "eng_Latn"


class _Pair(NamedTuple):
    name: str
    source: str
    target: str
    file: PairFile | tuple[Path, Path]

    def read(self) -> tuple[list[str], list[str]]:
        return read_pair_file(self.file) if isinstance(self.file, PairFile) else read_aligned(self.file)


@dataclass(frozen=True, kw_only=True, slots=True)
class XSim:
    """The share of sentences whose best-scored English neighbour is not their translation; X -> English.

    All three margins are computed from one search: ``xsim`` (ratio), ``xsim_distance`` and ``xsim_absolute``. A group
    has the mean over its languages and, as ``..._pooled``, the share over all its sentences, LASER's average.
    The data are line-aligned ``<lang>.txt`` files with ``eng_Latn.txt`` among them, FLORES-200 devtest for the
    protocol, or the ``<a>-<b>.tsv`` pairs of a prepared corpus's ``heldout``; only FLORES, recognised by content,
    stands under the name ``xsim``.

    Attributes:
        languages: languages or groups of them (``mexma``, 80 languages) to score; all that have a file by default.
        compare: ``index`` counts only the sentence's own translation as right, ``text`` also a candidate of the
            same text (what LASER's ``eval.py`` does).
        k: neighbours scored, and averaged over in the margin.
    """

    name: ClassVar[str] = "xsim"
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "xsim"

    languages: Sequence[str] | None = None
    compare: Literal["index", "text"] = "index"
    k: int = 4

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, (DATASET, "heldout"), _pairs, "folder of line-aligned <lang>.txt files")
        pairs = _pairs(folder)
        languages = {key: pair.source for key, pair in pairs.items()}
        chosen = choose_languages(self.languages, languages, FLORES_GROUPS, folder)
        digests: dict[str, str] = {}
        subsets, items = [], {}
        for number, code in enumerate(chosen, 1):
            sources, targets = pairs[code].read()
            digests[code] = content_sha256([sources, targets])
            scores, items[pairs[code].name] = self._score(encoder, pairs[code], sources, targets)
            subsets.append(scores)
            progress(pairs[code].name, number * len(sources), len(chosen) * len(sources))
        revision = recognise(DATASET, digests)
        return TaskResult(
            task=self.name if revision else f"{self.name}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=False,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(subsets),
            seconds=time.perf_counter() - start,
            items=items,
            **grouped(group_members(subsets, FLORES_GROUPS if revision else {}), pooled=True),
            **options(self),
        )

    def _score(
        self, encoder: Embeds, pair: _Pair, sources: list[str], targets: list[str]
    ) -> tuple[SubsetScores, Items]:
        y = encoder.encode(targets, language=pair.target)
        x = encoder.encode(sources, language=pair.source)
        texts = targets if self.compare == "text" else None
        wrong = {margin: ~is_right(predicted, texts) for margin, predicted in xsim_predictions(x, y, k=self.k).items()}
        subset = SubsetScores(
            name=pair.name,
            languages=(pair.source, pair.target),
            pairs=len(sources),
            scores={
                "xsim": float(wrong["ratio"].mean()),
                "xsim_distance": float(wrong["distance"].mean()),
                "xsim_absolute": float(wrong["absolute"].mean()),
            },
        )
        return subset, Items(wrong["ratio"].astype(np.float64))


def _pairs(folder: Path) -> dict[str, _Pair]:
    """Source language, as the files spell it -> where the pair is."""
    if files := aligned_files(folder):
        if ENGLISH not in files:
            raise DataError(f"{ENGLISH}.txt is missing; xsim retrieves English", path=folder)
        english = files.pop(ENGLISH)
        return {
            code: _Pair(f"{code}-{ENGLISH}", full_code(code), ENGLISH, (path, english)) for code, path in files.items()
        }
    return {
        file.name.removesuffix("-eng"): _Pair(
            file.name, full_code(file.source_language), full_code(file.target_language), file
        )
        for file in pair_files(folder)
    }
