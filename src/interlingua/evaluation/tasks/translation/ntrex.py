"""NTREX-128 (Federmann et al. 2022), by xsim and by mteb's F1.

It has 1,997 sentences of news in 128 languages and varieties.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from interlingua.config.languages import parse
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import ENGLISH, choose_languages
from interlingua.evaluation.data.ntrex import code_of, english_file, ntrex_files
from interlingua.evaluation.metrics.retrieval import is_right, weighted_scores
from interlingua.evaluation.scores import Items, SubsetScores
from interlingua.evaluation.task import Findings
from interlingua.evaluation.tasks.groups import present_members
from interlingua.evaluation.tasks.translation.margin_search import MarginSearch
from interlingua.evaluation.tasks.translation.pairwise import PairwiseSearch
from interlingua.evaluation.tasks.translation.translations import TranslationPair

FOLDERS = ("NTREX-128", "ntrex", "ntrex128", "NTREX/NTREX-128")
EXPECTED = "NTREX-128 files (newstest2019-src.eng.txt, newstest2019-ref.deu.txt)"
_SENTENCES = 1997
# mteb's NTREXBitextMining: English with all, bridge languages with each other, and all pairs within
# a group
_BRIDGES = (
    "arb ben deu ell eng fas fin fra heb hin hun ind jpn kor lit nld pol por rus spa swa swe tam"
    " tur vie zho-TW zul"
)
_GROUPS = (
    "afr dan deu eng fao isl ltz nld nno nob swe",
    "amh hau ibo nso orm som ssw swa tir tsn wol xho yor zul",
    "arb ckb-Arab fas heb kmr mey prs pus shi tgk-Cyrl",
    "aze-Latn bak kaz kir tat tuk tur uig uzb",
    "bel bos bul ces hrv mkd pol rus slk slv srp-Cyrl srp-Latn ukr",
    "bem ewe fuc kin nde nya sna-Latn ven",
    "ben div eus guj hin kan mar nep pan sin snd-Arab tam tel urd",
    "bod dzo khm lao mon mya tha",
    "cat fra glg ita mlt por ron spa",
    "cym gle",
    "ell hye kat sqi",
    "fij fil ind mal mlg mri msa smo tah ton",
    "fin hun lav lit",
    "hmn",
    "jpn kor vie yue zho-CN zho-TW",
)


def mteb_pairs() -> list[tuple[str, str]]:
    """Return the 958 unordered pairs of languages that mteb scores in both directions."""
    bridges = set(_codes(_BRIDGES))
    # each language is in one group
    group_of = {code: number for number, group in enumerate(_GROUPS) for code in _codes(group)}

    def is_scored(first: str, second: str) -> bool:
        if ENGLISH in (first, second) or {first, second} <= bridges:
            return True
        return group_of[first] == group_of[second]

    pairs = itertools.combinations(sorted(group_of), 2)
    return [(first, second) for first, second in pairs if is_scored(first, second)]


class NtrexXSim(MarginSearch):
    """The protocol of ``xsim`` on NTREX-128, X -> English.

    References in English are scored only if requested.

    The files are those of github.com/MicrosoftTranslator/NTREX. With 1,997 sentences, the result
    has the task's name; with any other number, the folder's name is appended.
    """

    name: ClassVar[str] = "ntrex_xsim"
    main_metric: ClassVar[str] = "ntrex_xsim"
    folders: ClassVar[Sequence[str]] = FOLDERS
    expected: ClassVar[str] = EXPECTED

    def files(self, folder: Path) -> dict[str, TranslationPair]:
        """Return each language's reference paired with the English source."""
        files = ntrex_files(folder)
        if not files:
            return {}
        english = english_file(files, folder)
        pairs = {}
        for code, path in files.items():
            if code != ENGLISH:
                language = parse(code).language.code
                paths = (path, english)
                pairs[code] = TranslationPair(f"{code}-{ENGLISH}", language, ENGLISH, paths)
        return pairs

    def chosen(self, files: Mapping[str, TranslationPair], folder: Path) -> list[str]:
        """Return the languages to score, without English."""
        return _without_english(super().chosen(files, folder), self.languages)

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are the protocol's, by the number of sentences."""
        return _has_all_sentences(found)


@dataclass(frozen=True, kw_only=True)
class NtrexF1(PairwiseSearch):
    """Cosine retrieval on NTREX-128 as mteb's NTREXBitextMining scores it.

    The scores are weighted F1 and accuracy (P@1).

    Weighted F1 treats every sentence as a label. It is below accuracy if a sentence is retrieved
    for queries that are not its own. mteb's mean is ``mteb_1916of1916``.

    Attributes:
        languages: which to pair; all by default, without the references in English.
        directions: ``english`` pairs each language with English; ``mteb`` takes those of mteb's
            1,916 ordered pairs of which both languages are chosen.
    """

    name: ClassVar[str] = "ntrex_f1"
    main_metric: ClassVar[str] = "f1"
    folders: ClassVar[Sequence[str]] = FOLDERS
    reader: ClassVar = ntrex_files
    expected: ClassVar[str] = EXPECTED

    directions: Literal["english", "mteb"] = "english"

    def pairs(self, files: Mapping[str, Path], folder: Path) -> list[tuple[str, str]]:
        """Return the language pairs to score."""
        # refuses a folder without the English source, which all references translate
        english_file(files, folder)
        chosen = self.chosen(files, folder)
        if self.directions == "english":
            pairs = [(code, ENGLISH) for code in chosen if code != ENGLISH]
        else:
            pairs = [pair for pair in mteb_pairs() if set(pair) <= set(chosen)]
        if not pairs:
            raise DataError(
                "at least two languages are required; add more with --languages", path=folder
            )
        return pairs

    def parts(self, data: Path) -> list[str]:
        """Return the languages to score; English is one of them only for mteb's pairs."""
        chosen = super().parts(data)
        return [code for code in chosen if code != ENGLISH or self.directions == "mteb"]

    def embedded(self, files: Mapping[str, Path], folder: Path) -> list[str]:
        """Return the languages to embed.

        A single language may be requested, but nothing can be scored then.
        """
        languages = self.chosen(files, folder)
        if self.directions == "english":
            languages.append(ENGLISH)
        return languages

    def chosen(self, files: Mapping[str, Path], folder: Path) -> list[str]:
        """Return the requested languages, without English unless it is requested."""
        languages = {code: parse(code).language.code for code in files}
        names = {code: f"{code}-{ENGLISH}" for code in files}
        chosen = choose_languages(self.languages, languages, {}, folder, names=names)
        return _without_english(chosen, self.languages)

    def scores_of(self, nearest: Int64[ndarray, " n"]) -> tuple[dict[str, float], Items]:
        """Compute the scores of one direction, and the items that the main score averages."""
        f1, _ = weighted_scores(nearest, np.arange(len(nearest)))
        return {"f1": float(f1.mean()), "accuracy": float(is_right(nearest).mean())}, Items(f1)

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are the protocol's, by the number of sentences."""
        return _has_all_sentences(found)

    def paper_members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the pairs to and from English, and mteb's."""
        groups = {}
        for name, side in (("to_english", 1), ("from_english", 0)):
            chosen = [subset for subset in found.subsets if subset.name.split("-")[side] == ENGLISH]
            if chosen:
                groups[f"{name}_{len(chosen)}"] = chosen
        # those of mteb's pairs that were scored, counted in both directions
        if self.directions == "mteb":
            names = []
            for first, second in mteb_pairs():
                names += [f"{first}-{second}", f"{second}-{first}"]
            groups |= present_members(found.subsets, {"mteb": names})
        return groups


def _has_all_sentences(found: Findings) -> bool:
    return all(subset.pairs == _SENTENCES for subset in found.subsets)


def _codes(spelled: str) -> list[str]:
    return [code_of(one) for one in spelled.split()]


def _without_english(codes: Sequence[str], requested: Sequence[str] | None) -> list[str]:
    """Leave out the English references (``eng_GB``), unless languages were requested.

    The source stays.
    """
    if requested is not None:
        return list(codes)
    return [code for code in codes if code == ENGLISH or not code.startswith("eng_")]
