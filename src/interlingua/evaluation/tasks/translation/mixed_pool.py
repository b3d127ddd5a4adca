"""Mixed pool: is a translation still found among the sentences of all languages together?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray

from interlingua.config.languages import parse
from interlingua.corpus.formats.evaluation_sets import read_evaluation_lines
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import (
    ALIGNED,
    ENGLISH,
    FLORES_FOLDERS,
    check_enough,
    content_sha256,
)
from interlingua.evaluation.examples import PER_SUBSET, choose_examples, cut
from interlingua.evaluation.metrics.pool import Pool, accuracy_by_pair, search_pool
from interlingua.evaluation.parallel import (
    ParallelTexts,
    choose_files,
    language_files,
    read_parallel,
    unit_vectors,
)
from interlingua.evaluation.scores import Example, Items, SubsetScores
from interlingua.evaluation.task import Findings, LanguageTask, Scored
from interlingua.evaluation.tasks.groups import group_members
from interlingua.evaluation.tasks.translation.flores import FloresP1
from interlingua.runtime.progress import Progress

LEAST_LANGUAGES = 2
PASSES = 2
"""Pieces of work that progress counts for each sentence: embedding and search."""


@dataclass(frozen=True, kw_only=True)
class MixedPool(LanguageTask):
    """Retrieval of translations by cosine, from one language and from all languages together.

    LAReQA (Roy et al. 2020) calls a space strongly aligned if a sentence's translation is nearer
    than unrelated sentences of the sentence's own language; retrieval within one language at a time
    only needs weak alignment. Each sentence is a query, and each of its translations in turn the
    right answer:

    - ``accuracy_own_pool``: the translation is nearer than all other lines of its own language;
    - ``accuracy_mixed_pool``: it is nearer than all other lines of all languages, the query's own
      language included. Other translations of the query are not candidates, so this accuracy is
      never higher than ``accuracy_own_pool``;
    - ``mixed_pool_drop``: the first minus the second;
    - ``same_language_bias``: share of sentences whose nearest other sentence is in their own
      language, although their translations are in the pool;
    - ``same_language_bias_without_translations``: the same with the translations taken out; if
      vectors did not depend on the language, it would be about 1 / L for L languages.

    A subset contains the queries in one language; its scores are means over lines and target
    languages. The tables hold both accuracies for every ordered pair of languages. The search is
    exact, in tiles: memory holds the vectors of one language and a few numbers per sentence and
    language.

    Attributes:
        languages: the pool, in any code or name, or a group (``muse``, ``low_resource``,
            ``mexma``); by default ``muse`` and English, 15 languages, if they are all present,
            else all. A single language is pooled with English.
        examples: sentences with a wrong nearest neighbor kept next to the result, per language; 0
            for none.
    """

    name: ClassVar[str] = "mixed_pool"
    main_metric: ClassVar[str] = "accuracy_mixed_pool"
    shown: ClassVar[Sequence[str]] = ("accuracy_own_pool", "same_language_bias")
    lower_is_better: ClassVar[Sequence[str]] = (
        "mixed_pool_drop",
        "same_language_bias",
        "same_language_bias_without_translations",
    )
    folders: ClassVar[Sequence[str]] = FLORES_FOLDERS
    reader: ClassVar = language_files
    expected: ClassVar[str] = ALIGNED
    published: ClassVar[str | None] = FloresP1.published

    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Embed all languages, search the mixed pool, and score each language."""
        texts = read_parallel(
            folder, self.languages, also=self._also(folder), at_least=LEAST_LANGUAGES
        )
        if texts.sentences < 2:
            raise DataError(
                "only one line in each language; a pool requires at least 2", path=folder
            )
        # sentences embedded, then searched for: progress counts each twice
        work = len(texts.languages) * texts.sentences
        progress.start(PASSES * work, "sentences", self.name)
        vectors = unit_vectors(encoder, texts, progress=progress.within(work))
        # k = 0: neighbors are for hubness, which is not needed here
        pool = search_pool(vectors, k=0, progress=progress.within(work))
        found = Findings(folder=folder)
        found.digests = {code: content_sha256([lines]) for code, lines in texts.lines.items()}
        examples = _examples(pool, vectors, texts, self.examples)
        found.tables.update(accuracy_by_pair(pool, texts.languages))
        by_line = _scores_by_line(pool)
        for number, code in enumerate(texts.languages):
            language = parse(code).language.code
            scores = {metric: float(values[number].mean()) for metric, values in by_line.items()}
            scored = Scored(scores, Items(by_line[self.main_metric][number]), examples[code])
            found.add_scores(code, (language, language), texts.sentences, scored)
        return found

    def members(self, found: Findings) -> dict[str, list[SubsetScores]]:
        """Return the groups of all languages and of each kind of script."""
        return group_members(found.subsets, {})

    def parts(self, data: Path) -> list[str]:
        """Return the chosen languages; each may be scored separately.

        A pool of only some of the languages is another pool, so the data of its result differ too.
        """
        files = choose_files(data, self.languages, also=self._also(data))
        folder = next(iter(files.values())).parent
        check_enough(list(files), LEAST_LANGUAGES, self.languages, folder)
        # without the English that was added: it is not a part that could be left out
        return list(choose_files(data, self.languages))

    def _also(self, data: Path) -> tuple[str, ...]:
        """Return English if only one language was requested."""
        folder = self.find(data)
        is_alone = len(choose_files(data, self.languages)) == 1
        if is_alone and ENGLISH in self.files(folder):
            return (ENGLISH,)
        return ()

    def embed(self, encoder: CachedEncoder, data: Path) -> None:
        """Embed the texts of the chosen languages."""
        for code, path in choose_files(data, self.languages, also=self._also(data)).items():
            encoder.encode(read_evaluation_lines(path), language=parse(code).language.code)


def _scores_by_line(pool: Pool) -> dict[str, ndarray]:
    """Compute each metric's value for each query (languages, lines)."""
    own_pool = pool.accuracy_alone
    mixed_pool = pool.accuracy_among_all
    bias = pool.own_language.astype(np.float64)
    bias_without_translations = pool.own_language_without_translations.astype(np.float64)
    return {
        "accuracy_mixed_pool": mixed_pool,
        "accuracy_own_pool": own_pool,
        "mixed_pool_drop": own_pool - mixed_pool,
        "same_language_bias": bias,
        "same_language_bias_without_translations": bias_without_translations,
    }


def _examples(
    pool: Pool, vectors: Float32[ndarray, "l n d"], texts: ParallelTexts, limit: int
) -> dict[str, tuple[Example, ...]]:
    """Return the sentences with a translation missed in the mixed pool, by language."""
    found = {}
    for number, code in enumerate(texts.languages):
        # at least one translation of the line was not found
        wrong = pool.accuracy_among_all[number] < 1
        kept = choose_examples(wrong, texts.lines[code], limit, of=code)
        found[code] = tuple(_example(pool, vectors, texts, number, line) for line in kept)
    return found


def _example(
    pool: Pool, vectors: Float32[ndarray, "l n d"], texts: ParallelTexts, number: int, line: int
) -> Example:
    """Return an example: a translation that was not found, and the nearest sentence instead."""
    codes = texts.languages
    expected = _missed_language(pool.found_among_all[number, line], number, codes)
    # nearest_other numbers the sentences through all languages: language * lines + line
    retrieved, retrieved_line = divmod(int(pool.nearest_other[number, line]), texts.sentences)
    query = vectors[number, line]
    return Example(
        item=line,
        query=cut(texts.lines[codes[number]][line]),
        expected=cut(texts.lines[codes[expected]][line]),
        retrieved=cut(texts.lines[codes[retrieved]][retrieved_line]),
        expected_score=float(query @ vectors[expected, line]),
        retrieved_score=float(query @ vectors[retrieved, retrieved_line]),
        languages=(parse(codes[number]).language.code, parse(codes[retrieved]).language.code),
    )


def _missed_language(found: Bool[ndarray, " l"], query: int, codes: Sequence[str]) -> int:
    """Return a language with a missed translation: English if possible, which most readers know."""
    missed = [number for number in np.flatnonzero(~found).tolist() if number != query]
    in_english = [number for number in missed if codes[number] == ENGLISH]
    return (in_english or missed)[0]
