"""Flores P@1: cosine retrieval between all ordered pairs of a group's languages, EMS (Mao et al. 2023), Table VII."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from interlingua.corpus.evaluation_sets import aligned_files, one_each
from interlingua.errors import DataError
from interlingua.evaluation.task import SubsetScores
from interlingua.evaluation.tasks.folders import choose_languages, find_folder, full_code, language_pair
from interlingua.evaluation.tasks.pairwise import PairwiseSearch, present_members
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
class FloresP1(PairwiseSearch):
    """P@1 of cosine retrieval among the 1,012 sentences of FLORES-200 devtest, for every ordered pair of languages.

    By default all pairs within each of the paper's two groups, 182 and 240; their means are ``muse_182of182`` and
    ``low_resource_240of240``, counted in pairs. Each language is embedded once. Where no group is complete, in any
    other folder of line-aligned ``<lang>.txt`` files, all pairs are scored.

    Attributes:
        languages: languages to pair with each other, pairs of them (``de-en``), of which both directions are scored, or
            the groups ``muse`` and ``low_resource``, each paired within itself.
    """

    name: ClassVar[str] = "flores_p_at_1"
    folders: ClassVar[Sequence[str]] = (DATASET,)
    expected: ClassVar[str] = "folder of line-aligned <lang>.txt files"
    dataset: ClassVar[str | None] = "flores_p_at_1"

    def files(self, folder: Path) -> dict[str, Path]:
        """See ``PairwiseSearch.files``."""
        return one_each((full_code(code), path) for code, path in aligned_files(folder).items())

    def pairs(self, files: Mapping[str, Path], folder: Path) -> list[tuple[str, str]]:
        """See ``PairwiseSearch.pairs``; those of a group together."""
        available = {code: code for code in files}
        circles = []
        single = []
        for item in self.languages or ():
            if item in LANGUAGE_GROUPS:
                circles.append([code for code in LANGUAGE_GROUPS[item] if code in files])
            elif pair := language_pair(item):
                circles.append(choose_languages(pair, available, {}, folder))
            else:
                single.append(item)
        if single:
            circles.append(choose_languages(single, available, {}, folder))
        if self.languages is None:
            circles = [list(group) for group in LANGUAGE_GROUPS.values() if set(group) <= set(files)] or [list(files)]
        pairs = dict.fromkeys(pair for circle in circles for pair in itertools.combinations(sorted(circle), 2))
        if not pairs:
            raise DataError("fewer than two languages to pair; name more with --languages", path=folder)
        return list(pairs)

    def parts(self, data: Path) -> list[str]:
        """See ``Task``: the unordered pairs, each of which is scored in both directions."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        return [f"{first}-{second}" for first, second in self.pairs(self.files(folder), folder)]

    def members(self, subsets: Mapping[str, SubsetScores], of_protocol: bool) -> dict[str, list[SubsetScores]]:
        """All pairs, and of FLORES those of the paper's groups and table."""
        # by name, as ``super()`` does not know the class that slots make anew
        found = PairwiseSearch.members(self, subsets, of_protocol)
        if not of_protocol:
            return found
        circles = dict(LANGUAGE_GROUPS)
        for pair in TABLE_PAIRS.split():
            circles[pair] = tuple(full_code(code) for code in pair.split("-"))
        groups = {}
        for name, codes in circles.items():
            groups[name] = [f"{a}-{b}" for a, b in itertools.permutations(codes, 2)]
        return found | present_members(subsets, groups)
