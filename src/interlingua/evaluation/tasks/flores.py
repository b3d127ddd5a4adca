"""Flores P@1: cosine retrieval between all ordered pairs of a group's languages, EMS (Tang et al. 2022), Table VII."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from interlingua.corpus.evaluation_sets import aligned_files, read_aligned, read_lines
from interlingua.errors import DataError
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.task import Embeds, Items, Progress, SubsetScores, TaskResult, options, silent
from interlingua.evaluation.tasks.folders import choose_languages, content_sha256, find_folder, full_code, recognise
from interlingua.evaluation.tasks.groups import grouped
from interlingua.evaluation.tasks.xsim import DATASET

_MAIN = "ara cmn deu fra ita jpn kor nld pol por rus spa tha tur"
_LOW_RESOURCE = "afr guj hin hye jav kat kaz mar mya nob swh tam tel tgl urd yor"
LANGUAGE_GROUPS: dict[str, tuple[str, ...]] = {
    "muse": tuple(full_code(code) for code in _MAIN.split()),  # 14 languages, 182 ordered pairs
    "low_resource": tuple(full_code(code) for code in _LOW_RESOURCE.split()),  # 16 languages, 240 ordered pairs
}
TABLE_PAIRS = "afr-guj hin-hye jav-kat kaz-mar mya-nob swh-tam tel-tgl urd-yor"
"""The pairs that Table VII shows one by one; the mean of both directions here, the paper does not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FloresP1:
    """P@1 of cosine retrieval among the 1,012 sentences of FLORES-200 devtest, for every ordered pair of languages.

    By default all pairs within each of the paper's two groups, 182 and 240; their means are ``muse_182of182`` and
    ``low_resource_240of240``, counted in pairs. Each language is embedded once. Where no group is complete, in any
    other folder of line-aligned ``<lang>.txt`` files, all pairs are scored.

    Attributes:
        languages: languages to pair with each other, or the groups ``muse`` and ``low_resource``, each paired within
            itself.
    """

    name: ClassVar[str] = "flores_p_at_1"
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "accuracy"

    languages: Sequence[str] | None = None

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, (DATASET,), aligned_files, "folder of line-aligned <lang>.txt files")
        files = aligned_files(folder)
        pairs = self._pairs(files, folder)
        codes = {full_code(code): code for code in files}
        present = sorted({code for pair in pairs for code in pair})
        texts = {code: read_lines(files[codes[code]]) for code in present}
        for code in present[1:]:
            read_aligned([files[codes[code]], files[codes[present[0]]]])  # complains of unequal lengths
        digests = {codes[code]: content_sha256([lines]) for code, lines in texts.items()}
        subsets, items = {}, {}
        for done, (first, second) in enumerate(pairs, 1):
            x, y = (encoder.encode(texts[code], language=code) for code in (first, second))
            for source, target, nearest in zip((first, second), (second, first), nearest_both_ways(x, y), strict=True):
                right = is_right(nearest)
                name = f"{source}-{target}"
                items[name] = Items(right.astype(float))
                scores = {"accuracy": float(right.mean())}
                subsets[name] = SubsetScores(name=name, languages=(source, target), pairs=len(right), scores=scores)
            progress(f"{first}-{second}", done * len(x), len(pairs) * len(x))
        revision = recognise(self.name, digests)
        members = _members(subsets, revision is not None)
        return TaskResult(
            task=self.name if revision else f"{self.name}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(subsets), list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(subsets.values()),
            items=items,
            seconds=time.perf_counter() - start,
            **grouped(members),
            **options(self),
        )

    def _pairs(self, files: Mapping[str, Path], folder: Path) -> list[tuple[str, str]]:
        """Unordered pairs of full codes, those of a group together."""
        full = [full_code(code) for code in files]
        named = [LANGUAGE_GROUPS[item] for item in self.languages or () if item in LANGUAGE_GROUPS]
        single = [item for item in self.languages or () if item not in LANGUAGE_GROUPS]
        circles = [[code for code in group if code in full] for group in named]
        if single:
            by_key = {code: code for code in full}
            circles.append(choose_languages(single, by_key, {}, folder))
        if self.languages is None:
            circles = [list(group) for group in LANGUAGE_GROUPS.values() if set(group) <= set(full)] or [full]
        pairs = dict.fromkeys(pair for circle in circles for pair in itertools.combinations(sorted(circle), 2))
        if not pairs:
            raise DataError("fewer than two languages to pair; name more with --languages", path=folder)
        return list(pairs)


def _members(subsets: Mapping[str, SubsetScores], published: bool) -> dict[str, list[SubsetScores]]:
    found = {f"all_{len(subsets)}": list(subsets.values())}
    if not published:
        return found
    circles = dict(LANGUAGE_GROUPS)
    for pair in TABLE_PAIRS.split():
        circles[pair] = tuple(full_code(code) for code in pair.split("-"))
    for name, codes in circles.items():
        names = [f"{a}-{b}" for a, b in itertools.permutations(codes, 2)]
        present = [subsets[pair] for pair in names if pair in subsets]
        if present:
            found[f"{name}_{len(present)}of{len(names)}"] = present
    return found
