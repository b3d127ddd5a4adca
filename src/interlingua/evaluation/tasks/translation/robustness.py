"""Robustness: does a sentence keep its vector when it is typed in another form?"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from interlingua.config import AtLeast
from interlingua.corpus.formats.evaluation_sets import read_evaluation_lines
from interlingua.corpus.forms.variants import FORM_VARIANTS, check_variants
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import (
    ALIGNED,
    ENGLISH,
    FLORES_FOLDERS,
    full_code,
)
from interlingua.evaluation.examples import PER_SUBSET, cosine_of, wrong_neighbors
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.parallel import language_files
from interlingua.evaluation.scores import Items, SubsetScores
from interlingua.evaluation.task import Findings, LanguageTask, Scored, Unit
from interlingua.evaluation.tasks.translation.flores import FloresP1
from interlingua.storage.arrays import row_cosines

DEFAULT_LANGUAGES = (
    *(ENGLISH, "deu_Latn", "tur_Latn", "vie_Latn", "rus_Cyrl"),
    *("ell_Grek", "arb_Arab", "heb_Hebr", "kor_Hang", "hin_Deva"),
)
"""Ten languages: with and without case, with accents, points and syllables that decompose."""
MOST_SENTENCES = 200
"""Sentences of a language by default."""


class Forms(NamedTuple):
    """Sentences of a language, and those of them that have another form.

    Attributes:
        clean: the pool of different sentences. Sentences that have the form come first.
        variants: the other forms of these sentences, in the same order.
    """

    clean: list[str]
    variants: list[str]


@dataclass(frozen=True, kw_only=True)
class Robustness(LanguageTask):
    """Cosine of a sentence with its other form, and whether the sentence is the form's nearest.

    The forms are those of ``corpus.forms.variants``: capitals, small letters, decomposed characters
    (NFD), Arabic and Hebrew points, soft hyphens, typos and missing punctuation. A subset is a
    language in a form (``deu_Latn-capitals``); its items are the sentences that the form changes,
    and a form that changes less than half of a language's sentences has no subset.

    - ``cosine``: mean cosine of the form's vector with that of the sentence; 1 is best;
    - ``accuracy``: share of the forms whose nearest neighbor, among all original sentences of the
      language, is their own sentence.

    The random choice of points and typos depends only on language, form and sentence, so that all
    encoders are scored on the same texts.

    Attributes:
        languages: which to score; by default ten languages (``DEFAULT_LANGUAGES``), if they are
            all present, else all.
        forms: which to score; all by default.
        sentences: number of sentences of each language, taken from the start of its file; repeated
            ones count once.
        examples: forms whose nearest sentence is not their own, kept next to the result, per
            subset; 0 for none.
    """

    name: ClassVar[str] = "robustness"
    main_metric: ClassVar[str] = "cosine"
    shown: ClassVar[Sequence[str]] = ("accuracy",)
    folders: ClassVar[Sequence[str]] = FLORES_FOLDERS
    reader: ClassVar = language_files
    expected: ClassVar[str] = ALIGNED
    published: ClassVar[str | None] = FloresP1.published

    forms: tuple[str, ...] = tuple(FORM_VARIANTS)
    sentences: Annotated[int, AtLeast(2)] = MOST_SENTENCES
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.forms
        # A list, as it is read from JSON, and a single name are accepted too.
        forms = (given,) if isinstance(given, str) else tuple(self.forms)
        object.__setattr__(self, "forms", forms)
        check_variants(forms, "forms")

    def chosen(self, files: Mapping[str, Path], folder: Path) -> list[str]:
        """Return the requested languages; by default the standard ones, if all are present."""
        is_complete = all(code in files for code in DEFAULT_LANGUAGES)
        if self.languages is None and is_complete:
            return list(DEFAULT_LANGUAGES)
        return super().chosen(files, folder)

    def units(self, folder: Path) -> Iterable[Unit[Forms]]:
        """Yield a unit for each language and each form that it has."""
        files = self.files(folder)
        for key in self.chosen(files, folder):
            lines = read_evaluation_lines(files[key])
            # As dictionaries keep the order, the first of repeated sentences stays.
            clean = list(dict.fromkeys(lines))[: self.sentences]
            if len(clean) < 2:
                raise DataError("only one sentence; a pool requires at least 2", path=files[key])
            language = full_code(key)
            for form in self.forms:
                data = sentences_in_form(clean, form, language)
                # Capitals of the few foreign names in an Arabic text are no form of Arabic.
                if 2 * len(data.variants) >= len(clean):
                    yield Unit(
                        name=f"{key}-{form}",
                        languages=(language, language),
                        pairs=len(data.variants),
                        data=data,
                        # The digest is of the whole file, as in other tasks on the same data.
                        key=language,
                        contents=[lines],
                        sentences=len(data.clean) + len(data.variants),
                    )

    def score(self, encoder: CachedEncoder, unit: Unit[Forms]) -> Scored:
        """Compute the cosine of each form with its sentence, and find the nearest sentence."""
        clean, variants = unit.data
        language = unit.languages[0]
        pool = encoder.encode(clean, language=language)
        queries = encoder.encode(variants, language=language)
        cosines = row_cosines(queries, pool[: len(queries)])
        nearest, _ = nearest_both_ways(queries, pool)
        right = is_right(nearest)
        examples = wrong_neighbors(
            right,
            nearest,
            variants,
            clean,
            cosine_of(queries, pool),
            languages=unit.languages,
            limit=self.examples,
        )
        scores = {"cosine": float(cosines.mean()), "accuracy": float(right.mean())}
        return Scored(scores, Items(cosines), examples)

    def members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the group of all subsets, and one of each form in all its languages."""
        groups: dict[str, list[SubsetScores]] = {f"all_{len(found.subsets)}": found.subsets}
        for form in self.forms:
            of_form = [one for one in found.subsets if one.name.rpartition("-")[2] == form]
            if of_form:
                groups[f"{form}_{len(of_form)}"] = of_form
        return groups


def sentences_in_form(clean: Sequence[str], form: str, language: str) -> Forms:
    """Convert sentences to another form.

    Args:
        clean: the sentences.
        form: one of ``FORM_VARIANTS``.
        language: their code.
    """
    changed: list[str] = []
    others: list[str] = []
    variants: list[str] = []
    for text in clean:
        variant = FORM_VARIANTS[form](text, random.Random(f"{form} {language} {text}"), language)
        if variant == text:
            others.append(text)
        else:
            changed.append(text)
            variants.append(variant)
    return Forms([*changed, *others], variants)
