"""The base class of tasks on translations: finding the files, and choosing those to score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from interlingua.corpus.formats.evaluation_sets import (
    PairFile,
    aligned_files,
    one_each,
    read_aligned,
    read_pair_file,
)
from interlingua.corpus.negatives.hard_negatives import Altered
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import (
    ENGLISH,
    choose_languages,
    full_code,
    pair_files_by_key,
)
from interlingua.evaluation.examples import PER_SUBSET
from interlingua.evaluation.scores import SubsetScores
from interlingua.evaluation.task import Findings, LanguageTask, Unit
from interlingua.evaluation.tasks.groups import group_members


class TranslationPair(NamedTuple):
    """The files of a language's sentences and their translations."""

    name: str
    source: str
    target: str
    file: PairFile | tuple[Path, Path]
    turned: bool = False
    """True if the file's second side is the source."""

    def read(self) -> tuple[list[str], list[str]]:
        """Read sources and targets, line by line."""
        if isinstance(self.file, PairFile):
            first, second = read_pair_file(self.file)
        else:
            first, second = read_aligned(self.file)
        if self.turned:
            return second, first
        return first, second


class Translations(NamedTuple):
    """The data of a unit.

    Attributes:
        sources: sentences of one language.
        targets: their translations, line by line.
        altered: further candidates, all of them wrong.
    """

    sources: list[str]
    targets: list[str]
    altered: Sequence[Altered] = ()


@dataclass(frozen=True, kw_only=True)
class TranslationTask(LanguageTask):
    """A search for translations among the sentences of the other language.

    ``files`` gives a ``TranslationPair`` by source language, as the files spell it.

    Attributes:
        languages: languages, pairs or groups of them to score; all that have a file by default.
        compare: ``index`` counts only the sentence's own translation as right, ``text`` also a
            candidate of the same text (LASER's option for duplicates).
        examples: wrong neighbors kept next to the result, per language pair; 0 for none.
    """

    compare: Literal["index", "text"] = "index"
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def chosen(self, files: Mapping[str, TranslationPair], folder: Path) -> list[str]:
        """Return the keys of the language pairs to score."""
        languages = {key: pair.source for key, pair in files.items()}
        names = {key: pair.name for key, pair in files.items()}
        # if English is the target, a request for German and English means only German
        pivots = {pair.target for pair in files.values()}
        return choose_languages(
            self.languages, languages, self.paper_groups, folder, names=names, pivots=pivots
        )

    def unit(self, key: str, file: TranslationPair, folder: Path) -> Unit[Translations]:
        """Read a pair of languages."""
        sources, targets = file.read()
        return Unit(
            key=key,
            name=file.name,
            languages=(file.source, file.target),
            pairs=len(sources),
            data=Translations(sources, targets),
            contents=(sources, targets),
            sentences=len(sources) + len(targets),
        )

    def members(self, found: Findings) -> dict[str, list[SubsetScores]]:
        """Return the groups: all, by script and, for the protocol's data, those of papers."""
        groups: Mapping[str, Sequence[str]] = {}
        if self.is_protocol(found):
            groups = self.paper_groups
        return group_members(found.subsets, groups)


def paired_files(folder: Path, target: str | None = None) -> dict[str, TranslationPair]:
    """Return a folder's ``<a>-<b>.tsv`` files; ``deu-eng`` as ``deu``, ``deu-fra`` unchanged.

    Args:
        folder: of the files.
        target: the language to retrieve; by default the second one of each file.

    Raises:
        DataError: two files are of one pair.
    """
    found = {}
    for file in pair_files_by_key(folder).values():
        first = full_code(file.source_language)
        second = full_code(file.target_language)
        # a file with the target language on neither side is left out
        if target in (None, second):
            found[file.name.removesuffix("-eng")] = TranslationPair(file.name, first, second, file)
        elif target == first:
            # the language to retrieve is the file's first one, so its sides change places
            name = f"{file.target_language}-{file.source_language}"
            pair = TranslationPair(name, second, first, file, turned=True)
            found[name.removesuffix("-eng")] = pair
    return found


def aligned_pairs(folder: Path, target: str) -> dict[str, TranslationPair]:
    """Return a folder's ``<lang>.txt`` files, each with the line-aligned target file.

    Raises:
        DataError: there are such files, but none in that language, or two in one language.
    """
    files = aligned_files(folder)
    if not files:
        return {}
    one_each((full_code(code), path) for code, path in files.items())
    spelled = {full_code(code): code for code in files}
    if target not in spelled:
        raise DataError(
            f"{target}.txt, the file of the language to retrieve, not found; add it", path=folder
        )
    last = files.pop(spelled[target])
    pairs = {}
    for code, path in files.items():
        name = f"{code}-{spelled[target]}"
        pairs[code] = TranslationPair(name, full_code(code), target, (path, last))
    return pairs


def translation_pairs(folder: Path, target: str | None = None) -> dict[str, TranslationPair]:
    """Return the pairs of a folder by source language, as its files spell it.

    Args:
        folder: of line-aligned ``<lang>.txt`` files or of ``<a>-<b>.tsv`` pairs.
        target: the language to retrieve; by default English for aligned files, and the second
            language of each file for pairs.

    Raises:
        DataError: the folder has aligned files, but none in the target language, or two in one
            language; or two files are of one pair.
    """
    if target is None:
        return aligned_pairs(folder, ENGLISH) or paired_files(folder)
    code = full_code(target)
    return aligned_pairs(folder, code) or paired_files(folder, code)
