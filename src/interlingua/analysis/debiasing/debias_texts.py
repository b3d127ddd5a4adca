"""Texts by language for ``debias``, with the known translations among them.

Every source gives sentences with their language, and groups of sentences that mean the same:

- a folder of ``<lang>.txt`` files: the lines with the same number make a group if all files have
  equally many lines;
- a folder of ``<a>-<b>.tsv`` pair files, a single file of pairs in any known format, or a prepared
  corpus: a pair makes a group, and pairs that share a sentence are one group;
- a text file, or a table with a column of sentences, that is named after its language: each
  sentence is a group of its own.

Equal numbers of lines do not prove that lines are translations; ``debias`` checks this with the
encoder before it uses the groups.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from interlingua.analysis.debiasing.grouped_pool import join_groups
from interlingua.batches.token_store import TokenStore
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.evaluation_sets import (
    PairFile,
    aligned_files,
    pair_files,
    read_pair_file,
)
from interlingua.corpus.formats.monolingual import find_language, language_of, read_sentences
from interlingua.corpus.formats.sentence_table import has_sentences, is_table, refuse_column
from interlingua.corpus.samples.reservoir import reservoir
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import full_code
from interlingua.storage.files import open_text, stem_and_suffix
from interlingua.vocabulary.vocabulary import Vocabulary

TranslationGroup = tuple[tuple[str, str], ...]
"""Language and text of sentences that mean the same."""


class LanguageTexts(NamedTuple):
    """Sentences of several languages, each once.

    Attributes:
        texts: the sentences.
        languages: code of each.
        groups: number of each sentence's group; sentences of equal numbers are regarded as
            translations.
    """

    texts: list[str]
    languages: list[str]
    groups: Int64[ndarray, " n"]

    @property
    def codes(self) -> tuple[str, ...]:
        """The languages, sorted."""
        return tuple(sorted(set(self.languages)))

    def rows_of(self, language: str) -> Int64[ndarray, " m"]:
        """Return the indices of a language's sentences."""
        return np.flatnonzero(np.array([code == language for code in self.languages]))


def read_language_texts(
    paths: Sequence[Path],
    *,
    sentences: int,
    languages: Sequence[str] | None = None,
    seed: int = 0,
    column: str | None = None,
) -> LanguageTexts:
    """Draw sentences from all sources.

    Args:
        paths: folders and files, see the module.
        sentences: maximum number to draw from each language and source.
        languages: codes to keep; default: all.
        seed: of the draw.
        column: of tables that hold sentences of one language; default: the column named after the
            language, or ``text``.

    Raises:
        ConfigError: a column is named, and no file is a table.
        DataError: a source is missing, broken or of no known kind, or there are fewer than two
            languages.
    """
    if not any(is_table(path) for path in paths):
        refuse_column(column, paths[0])
    chosen: set[str] | None = None
    if languages is not None:
        chosen = {full_code(language) for language in languages}
    # Keep each sentence of a language once, at one place. Groups that share a sentence share this
    # place, and thus become one group.
    place_of: dict[tuple[str, str], int] = {}
    links: list[tuple[int, int]] = []
    for path in paths:
        for group in _groups_of(path, sentences, seed, column):
            kept = [item for item in group if chosen is None or item[0] in chosen]
            # If one language of a pair is not chosen, leave out the whole pair. Otherwise English
            # sentences would also come from the pairs of languages that are not chosen.
            if len(kept) < min(2, len(group)):
                continue
            places = [place_of.setdefault(item, len(place_of)) for item in kept]
            links.extend(itertools.pairwise(places))
    found = {language for language, _ in place_of}
    missing = sorted((chosen or set()) - found)
    if missing:
        raise DataError(
            f"no texts in {', '.join(missing)}; use one or more of:"
            f" {', '.join(sorted(found)) or 'none'}"
        )
    if len(found) < 2:
        raise DataError(
            f"expected texts in at least 2 languages, found {len(found)} in"
            f" {', '.join(map(str, paths))}; add texts"
        )
    return LanguageTexts(
        texts=[text for _, text in place_of],
        languages=[language for language, _ in place_of],
        groups=join_groups(links, len(place_of)),
    )


def _groups_of(
    path: Path, sentences: int, seed: int, column: str | None
) -> Iterator[TranslationGroup]:
    """Return a random sample of one source's groups."""
    path = path.expanduser()
    if not path.is_dir():
        return _of_file(path, sentences, seed, column)
    if (path / "train").is_dir() and (path / "vocabulary").is_dir():
        return _of_corpus(path, sentences, seed)
    if files := aligned_files(path):
        by_code = {full_code(code): file for code, file in files.items()}
        return _of_languages(by_code, sentences, seed)
    if pairs := pair_files(path):
        draws = (_drawn(_of_pairs(file), sentences, seed) for file in pairs)
        return itertools.chain.from_iterable(draws)
    raise DataError(
        "no texts found; expected <lang>.txt files, <a>-<b>.tsv files of pairs, or a prepared"
        " corpus",
        path=path,
    )


def _of_pairs(file: PairFile) -> Iterator[TranslationGroup]:
    for source, target in zip(*read_pair_file(file), strict=True):
        yield (full_code(file.source_language), source), (full_code(file.target_language), target)


def _of_file(
    path: Path, sentences: int, seed: int, column: str | None
) -> Iterator[TranslationGroup]:
    # The option is for tables; the other files among the sources have no columns.
    named = None
    if is_table(path):
        named = column
    # A table without a column of sentences contains pairs.
    is_table_of_one = named is not None or has_sentences(path, language=find_language(path))
    groups: Iterator[TranslationGroup]
    if is_table_of_one or stem_and_suffix(path)[1] == ".txt":
        language = language_of(path, column=named)
        groups = (((language, text),) for text in read_sentences(path, column=named))
    else:
        pairs = read_pairs(path)
        groups = (((p.source_language, p.source), (p.target_language, p.target)) for p in pairs)
    return _drawn(groups, sentences, seed)


def _of_languages(files: dict[str, Path], sentences: int, seed: int) -> Iterator[TranslationGroup]:
    """Yield groups of sentences from files of one language each.

    Lines of equal numbers make a group if all files have equally many.
    """
    lines = {code: _all_lines(file) for code, file in files.items()}
    lengths = {len(texts) for texts in lines.values()}
    if len(lengths) == 1:
        # A blank line is a translation that is missing; the rest of its group stays.
        for number in reservoir(range(lengths.pop()), sentences, seed=seed):
            yield tuple((code, texts[number]) for code, texts in lines.items() if texts[number])
        return
    for code, texts in lines.items():
        filled = [text for text in texts if text]
        yield from (((code, text),) for text in reservoir(filled, sentences, seed=seed))


def _all_lines(file: Path) -> list[str]:
    """Return all lines, including blank ones, which keep the others aligned."""
    with open_text(file) as lines:
        return [line.strip() for line in lines]


def _of_corpus(folder: Path, sentences: int, seed: int) -> Iterator[TranslationGroup]:
    """Yield random training pairs of a prepared corpus, decoded from their tokens."""
    store = TokenStore.open(folder / "train")
    vocabulary = Vocabulary.load(folder / "vocabulary")
    for number, (source, target) in enumerate(store.language_pairs):
        drawn = reservoir(range(store.counts[number]), sentences, seed=seed)
        rows = np.array(drawn, dtype=np.int64)
        # Read in the order of the file, which is on the disk.
        for source_ids, target_ids in zip(*store.read(number, np.sort(rows)), strict=True):
            first = vocabulary.decode(source_ids.tolist())
            second = vocabulary.decode(target_ids.tolist())
            if first.strip() and second.strip():
                yield (source, first), (target, second)


def _drawn(
    groups: Iterable[TranslationGroup], sentences: int, seed: int
) -> Iterator[TranslationGroup]:
    return iter(reservoir(groups, sentences, seed=seed))
