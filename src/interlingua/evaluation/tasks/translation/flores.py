"""Flores P@1, EMS (Mao et al. 2023), Table VII: retrieval between all languages of a group."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from interlingua.corpus.formats.evaluation_sets import aligned_files, one_each
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import (
    ALIGNED,
    FLORES_FOLDERS,
    choose_languages,
    full_code,
    language_pair,
)
from interlingua.evaluation.scores import SubsetScores
from interlingua.evaluation.task import Findings
from interlingua.evaluation.tasks.groups import present_members
from interlingua.evaluation.tasks.translation.pairwise import PairwiseSearch

_MAIN = "ara cmn deu fra ita jpn kor nld pol por rus spa tha tur"
_LOW_RESOURCE = "afr guj hin hye jav kat kaz mar mya nob swh tam tel tgl urd yor"
LANGUAGE_GROUPS: dict[str, tuple[str, ...]] = {
    # 14 languages, 182 ordered pairs
    "muse": tuple(map(full_code, _MAIN.split())),
    # 16 languages, 240 ordered pairs
    "low_resource": tuple(map(full_code, _LOW_RESOURCE.split())),
}
TABLE_PAIRS = "afr-guj hin-hye jav-kat kaz-mar mya-nob swh-tam tel-tgl urd-yor"
"""The pairs that Table VII shows one by one; here, each is the mean of both directions, because the
paper does not specify the direction."""


class FloresP1(PairwiseSearch):
    """P@1 of cosine retrieval among the 1,012 sentences of FLORES-200 devtest.

    Every ordered pair of languages is scored.

    By default these are all pairs within each of the paper's two groups, 182 and 240. Their means
    are ``muse_182of182`` and ``low_resource_240of240``, counted in pairs. Each language is embedded
    once. If no group is complete, as in other folders of line-aligned ``<lang>.txt`` files, all
    pairs are scored.

    Attributes:
        languages: languages to pair with each other; pairs of languages (``de-en``), scored in
            both directions; or the groups ``muse`` and ``low_resource``, in which all languages are
            paired with each other.
    """

    name: ClassVar[str] = "flores_p_at_1"
    folders: ClassVar[Sequence[str]] = FLORES_FOLDERS
    expected: ClassVar[str] = ALIGNED
    published: ClassVar[str | None] = "flores_p_at_1"

    def files(self, folder: Path) -> dict[str, Path]:
        """Return the files of the requested split, by language."""
        return one_each((full_code(code), path) for code, path in aligned_files(folder).items())

    def pairs(self, files: Mapping[str, Path], folder: Path) -> list[tuple[str, str]]:
        """Return the language pairs to score, with the pairs of a group together."""
        available = {code: code for code in files}
        # a circle is a set of languages that are all paired with each other
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
            groups = LANGUAGE_GROUPS.values()
            complete = [list(group) for group in groups if set(group) <= set(files)]
            circles = complete or [list(files)]
        # two circles may share a pair, which is scored once
        pairs: dict[tuple[str, str], None] = {}
        for circle in circles:
            pairs |= dict.fromkeys(itertools.combinations(sorted(circle), 2))
        if not pairs:
            raise DataError(
                "at least two languages are required; add more with --languages", path=folder
            )
        return list(pairs)

    def chosen(self, files: Mapping[str, Path], folder: Path) -> list[str]:
        """Return the unordered pairs, each of which is scored in both directions."""
        return [f"{first}-{second}" for first, second in self.pairs(files, folder)]

    def paper_members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the pairs of the paper's groups and table, if the data are FLORES."""
        if not self.is_protocol(found):
            return {}
        circles = dict(LANGUAGE_GROUPS)
        for pair in TABLE_PAIRS.split():
            circles[pair] = tuple(full_code(code) for code in pair.split("-"))
        pairs_of = {}
        for name, codes in circles.items():
            pairs_of[name] = list(map("-".join, itertools.permutations(codes, 2)))
        return present_members(found.subsets, pairs_of)
