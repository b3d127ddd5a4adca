"""Semantic textual similarity: does the cosine of two sentences rank pairs as people do?

There is no training and no threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from interlingua.errors import DataError
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.data.similarity import (
    JudgedPairs,
    SimilarityFile,
    SimilaritySplit,
    read_scored_pairs,
    sick_files,
    sts12_16_files,
    sts17_files,
    stsb_files,
)
from interlingua.evaluation.metrics.correlation import interval, spearman
from interlingua.evaluation.scores import SubsetScores
from interlingua.evaluation.task import Findings
from interlingua.evaluation.tasks.similarity.similarity import SimilarityTask, codes_of

_MONOLINGUAL = ("en-en", "es-es", "ar-ar")
_CROSSLINGUAL = ("en-ar", "en-de", "en-tr", "en-es", "en-fr", "en-it", "en-nl")
_SIZES_12_16 = {
    "2012.MSRpar": 750, "2012.MSRvid": 750, "2012.OnWN": 750, "2012.SMTeuroparl": 459,
    "2012.SMTnews": 399, "2013.FNWN": 189, "2013.OnWN": 561, "2013.headlines": 750,
    "2014.OnWN": 750, "2014.deft-forum": 450, "2014.deft-news": 300, "2014.headlines": 750,
    "2014.images": 750, "2014.tweet-news": 750,
    "2015.answers-forums": 375, "2015.answers-students": 750, "2015.belief": 375,
    "2015.headlines": 750, "2015.images": 750,
    "2016.answer-answer": 254, "2016.headlines": 249, "2016.plagiarism": 230,
    "2016.postediting": 244, "2016.question-question": 209,
}  # fmt: skip


class STS17(SimilarityTask):
    """STS17 extended (Cer et al. 2017; Reimers & Gurevych 2020): sets of 250 pairs.

    3 of them are monolingual and 7 cross-lingual.

    The averages of the calibrated-similarity paper are ``sts17_monolingual_3of3`` and
    ``sts17_crosslingual_7of7``; SemEval's own tracks hold three of the seven, and their average is
    called ``sts17_crosslingual_3of7``. Track 4b (``en-es_4b``) and Korean are in no average and are
    scored only if requested.
    """

    name: ClassVar[str] = "sts17"
    published: ClassVar[str | None] = "sts17"
    folders: ClassVar[Sequence[str]] = ("sts17", "STS2017-extended", "STS2017.eval")
    reader: ClassVar = sts17_files
    expected: ClassVar[str] = "STS17 sets (track1.ar-ar.tsv, STS.en-de.txt)"
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {
        "sts17_monolingual": _MONOLINGUAL,
        "sts17_crosslingual": _CROSSLINGUAL,
    }
    sizes: ClassVar[Mapping[str, int]] = dict.fromkeys((*_MONOLINGUAL, *_CROSSLINGUAL), 250)


@dataclass(frozen=True, kw_only=True)
class STSBenchmark(SimilarityTask):
    """STS benchmark (Cer et al. 2017), in every available language.

    The languages' files translate each other row by row. A pair of languages, ``--languages
    de-fr``, is therefore scored too: first sentences in one, second ones in the other.

    Attributes:
        split: test (1,379 pairs), dev or train.
    """

    name: ClassVar[str] = "stsb"
    published: ClassVar[str | None] = "stsb"
    folders: ClassVar[Sequence[str]] = ("stsb",)
    expected: ClassVar[str] = "STS benchmark files (de.test.tsv, sts-test.csv, stsb-de-test.csv)"

    split: SimilaritySplit = field(default="test", metadata={"words": "{}"})

    def size(self, name: str) -> int:
        """Return the number of pairs of the split."""
        return {"test": 1379, "dev": 1500, "train": 5749}[self.split]

    def files(self, folder: Path) -> dict[str, SimilarityFile]:
        """Return the files of the split, by language."""
        return stsb_files(folder, self.split)

    def wanted(
        self, files: Mapping[str, SimilarityFile], folder: Path
    ) -> dict[str, SimilarityFile]:
        """Return files by language; for a pair of languages, both of its files."""
        languages = {full_code(code): code for code in files}
        chosen: dict[str, SimilarityFile] = {}
        requested = self.languages
        if requested is None:
            requested = list(files)
        for item in requested:
            codes = codes_of(item)
            if not all(code in languages for code in codes):
                raise DataError(
                    f"no file for {item!r}; use one of: {', '.join(files)}", path=folder
                )
            # a single code is both the first and the last
            first = languages[codes[0]]
            last = languages[codes[-1]]
            name = first
            if first != last:
                name = f"{first}-{last}"
            chosen[name] = files[first]._replace(languages=(first, last))
        return chosen

    def read(
        self, files: Mapping[str, SimilarityFile], folder: Path
    ) -> dict[str, tuple[tuple[str, str], JudgedPairs]]:
        """Read the pairs of each set.

        The two files of a pair must have the same judgments.
        """
        own = self.files(folder)
        sets = {}
        for name, file in files.items():
            # de-fr: the first sentences of the German file, the second ones of the French one
            first, second = (read_scored_pairs(own[code]) for code in file.languages)
            if first.gold != second.gold:
                other = own[file.languages[1]].path.name
                raise DataError(
                    f"the scores differ from those of {other}, so the rows cannot be paired; use"
                    " files of the same set",
                    path=file.path,
                )
            languages = (full_code(file.languages[0]), full_code(file.languages[1]))
            sets[name] = (languages, first._replace(second=second.second))
        return sets

    def members(self, found: Findings) -> dict[str, Sequence[SubsetScores]]:
        """Return the groups of sets in one language, of sets in two languages, and of all."""
        # a pair of languages repeats the sentences of its two languages, so groups keep them apart
        alone = [subset for subset in found.subsets if subset.languages[0] == subset.languages[1]]
        across = [subset for subset in found.subsets if subset not in alone]
        kinds = {"all": found.subsets, "monolingual": alone, "crosslingual": across}
        return {f"{name}_{len(chosen)}": chosen for name, chosen in kinds.items() if chosen}


def _sets_of_year(year: int) -> tuple[str, ...]:
    return tuple(name for name in _SIZES_12_16 if name.startswith(f"20{year}"))


class STS12to16(SimilarityTask):
    """The English sets of SemEval 2012 to 2016.

    A year's group has the mean over its sets and, as ``spearman_pooled``, one correlation over all
    its pairs, which mteb and SimCSE report. The group ``sts12_16`` has the means of both over the
    years; the number in the group's name counts the sets. ``all`` is the mean over the sets.
    """

    name: ClassVar[str] = "sts12_16"
    published: ClassVar[str | None] = "sts12_16"
    folders: ClassVar[Sequence[str]] = ("sts12_16", "STS")
    reader: ClassVar = sts12_16_files
    expected: ClassVar[str] = (
        "sets of STS12-16 (2012.MSRpar.test.tsv, STS12-en-test/STS.input.MSRpar.txt)"
    )
    sizes: ClassVar[Mapping[str, int]] = _SIZES_12_16
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {
        **{f"sts{year}": _sets_of_year(year) for year in range(12, 17)},
        "sts12_16": tuple(_SIZES_12_16),
    }

    def means(
        self, group: str, subsets: Sequence[SubsetScores], found: Findings
    ) -> dict[str, float]:
        """Compute means over the sets of each year, then over the years.

        For ``all``, compute means over the sets.
        """
        if group.startswith("all_"):
            return super().means(group, subsets, found)
        years: dict[str, list[SubsetScores]] = {}
        for subset in subsets:
            years.setdefault(subset.name[:4], []).append(subset)
        of_years: list[dict[str, float]] = []
        for chosen in years.values():
            # one correlation over the pairs of all sets of the year
            cosines = np.concatenate([found.items[subset.name].values for subset in chosen])
            gold = np.concatenate([found.items[subset.name].gold for subset in chosen])
            of_year = super().means(group, chosen, found)
            of_year["spearman_pooled"] = spearman(cosines, gold)
            of_years.append(of_year)
        means = {}
        for metric in of_years[0]:
            means[metric] = float(np.mean([of_year[metric] for of_year in of_years]))
        # the mean of the years' bounds is not an interval: the interval of the mean comes from
        # resamples
        if self.resamples:
            repeats = []
            for chosen in years.values():
                repeats.append(np.mean([found.repeats[subset.name] for subset in chosen], axis=0))
            means["spearman_low"], means["spearman_high"] = interval(np.mean(repeats, axis=0))
        return means


@dataclass(frozen=True, kw_only=True)
class Sick(SimilarityTask):
    """SICK relatedness (Marelli et al. 2014), English: test 4,927 pairs.

    SICK-R of mteb pools all 9,927.

    Attributes:
        splits: one or more of train, dev and test, pooled into one set.
    """

    name: ClassVar[str] = "sick"
    published: ClassVar[str | None] = "sick"
    folders: ClassVar[Sequence[str]] = ("sick", "SICK")
    expected: ClassVar[str] = "SICK files (test.tsv, SICK_test_annotated.txt)"
    sizes: ClassVar[Mapping[str, int]] = {
        "test": 4927,
        "train+dev+test": 9927,
        "dev": 500,
        "train": 4500,
    }

    splits: tuple[SimilaritySplit, ...] = field(default=("test",), metadata={"words": "{}"})

    def files(self, folder: Path) -> dict[str, SimilarityFile]:
        """Return the files of the requested splits, by split."""
        return {split: file for split, file in sick_files(folder).items() if split in self.splits}

    def read(
        self, files: Mapping[str, SimilarityFile], folder: Path
    ) -> dict[str, tuple[tuple[str, str], JudgedPairs]]:
        """Read the pairs of all requested splits as one set."""
        missing = [split for split in self.splits if split not in files]
        if missing:
            raise DataError(
                f"the split {missing[0]} was not found; the folder contains: {', '.join(files)}",
                path=folder,
            )
        pooled = JudgedPairs([], [], [], 0)
        for split in self.splits:
            part = read_scored_pairs(files[split])
            pooled.first.extend(part.first)
            pooled.second.extend(part.second)
            pooled.gold.extend(part.gold)
        return {"+".join(self.splits): (("eng_Latn", "eng_Latn"), pooled)}
