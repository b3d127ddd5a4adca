"""Development data, on which a change of a model is judged: translations and scored pairs.

Translations are retrieved from one another (P@1), and the cosines of scored pairs are correlated
with people's scores (Spearman).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from interlingua.config.languages import resolve_language
from interlingua.corpus.formats.bitext import languages_from_name, read_pairs
from interlingua.corpus.formats.evaluation_sets import aligned_files, pair_files
from interlingua.corpus.formats.labeled_pairs import LabeledPair, read_labeled
from interlingua.encoder.protocol import TextEncoder
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import choose_languages
from interlingua.evaluation.metrics.correlation import spearman
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.tasks.translation.translations import translation_pairs
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.arrays import row_cosines
from interlingua.storage.files import PathLike


class TranslationSet(NamedTuple):
    """Sentences of two languages that translate each other, row by row."""

    name: str
    """``tatoeba: deu-eng``; a name is unique in a development set."""
    languages: tuple[str, str]
    sources: list[str]
    targets: list[str]


class ScoredSet(NamedTuple):
    """Pairs with people's similarity scores."""

    name: str
    pairs: list[LabeledPair]


@dataclass(frozen=True, slots=True)
class DevelopmentScores:
    """The scores of a model on development data, in percent."""

    retrieval: Mapping[str, float]
    """P@1 by set, the mean of both directions; candidates are the set's own sentences, compared by
    cosine."""
    similarity: Mapping[str, float]
    """100 x Spearman's correlation of cosines with people's scores, by set."""

    @property
    def mean_retrieval(self) -> float | None:
        """Mean P@1 over the sets; None without any."""
        return _mean(self.retrieval.values())

    @property
    def mean_similarity(self) -> float | None:
        """Mean correlation over the sets; None without any."""
        return _mean(self.similarity.values())


@dataclass(frozen=True, slots=True)
class Development:
    """All development data of a model."""

    translations: tuple[TranslationSet, ...] = ()
    scored: tuple[ScoredSet, ...] = ()

    def measure(
        self, encoder: TextEncoder, *, prompt: str | None = None, progress: Progress = SILENT
    ) -> DevelopmentScores:
        """Embed each sentence once and score all sets.

        Args:
            encoder: the model.
            prompt: a text put in front of every text, or the name of one of the model's prompts;
                None = the model's default.
            progress: counts the sets.
        """
        retrieval = {}
        similarity = {}
        with CachedEncoder(encoder, prompt=prompt) as cached:
            for one in self.translations:
                retrieval[one.name] = _precision_at_1(cached, one)
                progress.advance()
            for scored in self.scored:
                similarity[scored.name] = _correlation(cached, scored)
                progress.advance()
        return DevelopmentScores(retrieval, similarity)


def read_translations(
    path: PathLike,
    *,
    pivot: str = "eng_Latn",
    languages: Sequence[str] | None = None,
    max_pairs: int | None = None,
) -> list[TranslationSet]:
    """Read one bitext, or a folder of them: ``<a>-<b>.tsv`` pairs or line-aligned ``<lang>.txt``.

    Args:
        path: a file in any format of ``read_pairs``, or a folder.
        pivot: code of the language that a folder's aligned files are paired with.
        languages: languages to read from a folder, in any code; default: all.
        max_pairs: rows of each set, evenly spread over it; default: all.

    Raises:
        DataError: there is nothing to read, a file is broken, or a language is not there.
    """
    folder = Path(path).expanduser()
    sets: list[TranslationSet] = []
    if folder.is_dir() and (aligned_files(folder) or pair_files(folder)):
        # Files of pairs name both languages themselves.
        found = translation_pairs(folder, pivot if aligned_files(folder) else None)
        sources = {key: pair.source for key, pair in found.items()}
        for key in choose_languages(languages, sources, {}, folder):
            pair = found[key]
            name = f"{folder.name}: {pair.name}"
            sets.append(TranslationSet(name, (pair.source, pair.target), *pair.read()))
    else:
        sets = _of_file(path)
    if not sets:
        raise DataError("no translations found; name a bitext or a folder of bitexts", path=path)
    return [_spread(one, max_pairs) for one in sets]


def _of_file(path: PathLike) -> list[TranslationSet]:
    """Return one set for each language pair of a bitext."""
    by_languages: dict[tuple[str, str], TranslationSet] = {}
    for pair in read_pairs(path):
        codes = (pair.source_language, pair.target_language)
        if codes not in by_languages:
            name = Path(path).name
            # A file whose name gives no languages may contain several sets.
            if not languages_from_name(path):
                name += f": {'-'.join(codes)}"
            by_languages[codes] = TranslationSet(name, codes, [], [])
        by_languages[codes].sources.append(pair.source)
        by_languages[codes].targets.append(pair.target)
    return list(by_languages.values())


def read_similarity(path: PathLike) -> ScoredSet:
    """Read scored pairs; see ``corpus.formats.labeled_pairs`` for the formats.

    If a file has splits, the rows of dev are read.

    Raises:
        DataError: the file is missing or broken.
    """
    # Texts of files that name no languages are taken as English.
    english = resolve_language("eng").code
    pairs = read_labeled(Path(path), kind="sts", split="dev", languages=(english, english))
    return ScoredSet(Path(path).name, pairs)


def read_development(
    pairs: Iterable[PathLike],
    sts: Iterable[PathLike],
    *,
    pivot: str = "eng_Latn",
    languages: Sequence[str] | None = None,
    max_pairs: int | None = None,
) -> Development:
    """Read all development data; see ``read_translations`` and ``read_similarity``.

    Raises:
        DataError: a file is missing or broken, or two sets have one name.
    """
    translations: list[TranslationSet] = []
    for path in pairs:
        translations += read_translations(
            path, pivot=pivot, languages=languages, max_pairs=max_pairs
        )
    scored = [read_similarity(path) for path in sts]
    # Scores are stored by name: of two sets with the same name, one would be lost.
    names = [*(one.name for one in translations), *(one.name for one in scored)]
    duplicates = [name for name in names if names.count(name) > 1]
    if duplicates:
        raise DataError(
            f"two data sets have the name {duplicates[0]!r}; rename the file or folder of one"
        )
    return Development(tuple(translations), tuple(scored))


def _spread(one: TranslationSet, most: int | None) -> TranslationSet:
    """Return at most ``most`` rows, evenly spread; all if there is no limit."""
    most = most or len(one.sources)
    return one._replace(
        sources=sample_evenly(one.sources, most), targets=sample_evenly(one.targets, most)
    )


def sample_evenly(texts: Sequence[str], most: int) -> list[str]:
    """Return texts evenly spread over a list."""
    rows = np.linspace(0, len(texts) - 1, min(most, len(texts))).round().astype(int).tolist()
    return [texts[row] for row in rows]


def _precision_at_1(encoder: CachedEncoder, one: TranslationSet) -> float:
    """Compute P@1 in percent, the mean of both directions."""
    x = encoder.encode(one.sources, language=one.languages[0])
    y = encoder.encode(one.targets, language=one.languages[1])
    nearest_target, nearest_source = nearest_both_ways(x, y)
    # Half of 100 for each direction.
    return 50 * float(is_right(nearest_target).mean() + is_right(nearest_source).mean())


def _correlation(encoder: CachedEncoder, scored: ScoredSet) -> float:
    """Compute 100 times Spearman's correlation of cosines and scores."""
    # All rows of a file have the same languages, or each row names its own languages.
    languages = [(pair.language_a, pair.language_b) for pair in scored.pairs]
    cosines = np.zeros(len(scored.pairs))
    for codes in sorted(set(languages)):
        rows = [row for row, own in enumerate(languages) if own == codes]
        u = encoder.encode([scored.pairs[row].a for row in rows], language=codes[0])
        v = encoder.encode([scored.pairs[row].b for row in rows], language=codes[1])
        cosines[rows] = row_cosines(u, v)
    return 100 * spearman(cosines, np.array([pair.label for pair in scored.pairs]))


def _mean(values: Iterable[float]) -> float | None:
    """Compute the mean of numbers; None if there are none."""
    known = list(values)
    if not known:
        return None
    return sum(known) / len(known)
