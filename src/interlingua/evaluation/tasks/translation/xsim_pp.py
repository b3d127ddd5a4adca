"""xsim++ (Chen et al. 2023): xsim among sentences that were altered to mislead.

LASER has it in ``tasks/xsimplusplus``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from interlingua.corpus.negatives.hard_negatives import (
    NEGATIVE_KINDS,
    Altered,
    check_request,
    hard_negatives,
)
from interlingua.errors import DataError
from interlingua.evaluation.data.augmented_sets import (
    GENERATED,
    altered_file,
    read_altered,
    write_altered,
)
from interlingua.evaluation.data.folders import ALIGNED, ENGLISH, FLORES, FLORES_FOLDERS, full_code
from interlingua.evaluation.task import Findings
from interlingua.evaluation.tasks.groups import FLORES_GROUPS
from interlingua.evaluation.tasks.translation.margin_search import MarginSearch
from interlingua.evaluation.tasks.translation.translations import TranslationPair, translation_pairs


@dataclass(frozen=True, kw_only=True)
class XSimPP(MarginSearch):
    """xsim with altered English sentences as additional candidates.

    They take part in the margin as the other candidates do.

    In addition to the error rates of ``MarginSearch``, the scores include the share of sentences
    for which an altered form of the right sentence was retrieved, by kind of alteration
    (``errors_<kind>``), and the share of other errors (``errors_misaligned``). LASER prints these
    errors as counts. The shares sum to ``xsim_pp``.

    The task needs ``eng_Latn_augmented.devtest`` and ``eng_Latn_errtype.devtest.json`` in the
    folder, or in one next to it named ``<folder>_augmented``. Files that ``xsim_pp_generated``
    wrote are read too; their result is named after the folder.

    Attributes:
        target: the language to retrieve, which has the altered sentences.
    """

    name: ClassVar[str] = "xsim_pp"
    main_metric: ClassVar[str] = "xsim_pp"
    folders: ClassVar[Sequence[str]] = FLORES_FOLDERS
    expected: ClassVar[str] = ALIGNED
    published: ClassVar[str | None] = FLORES
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = FLORES_GROUPS

    target: str = ENGLISH

    def files(self, folder: Path) -> dict[str, TranslationPair]:
        """Return the language pairs with the target language, by source language."""
        return translation_pairs(folder, self.target)

    def altered(self, folder: Path, language: str, targets: Sequence[str]) -> list[Altered]:
        """Read the altered sentences of the files.

        Raises:
            DataError: there are none, or they were made from other sentences.
        """
        path = altered_file(folder, language)
        if path is None:
            raise DataError(
                f"no {language}_augmented.devtest found, neither in this folder nor in"
                f" {folder.resolve().name}_augmented; LASER publishes one for English, and the"
                " task xsim_pp_generated creates one for any language",
                path=folder,
            )
        altered = read_altered(path)
        # altered forms of other sentences would mislead less, and the error would look small
        known = {target.strip() for target in targets}
        if not any(one.original in known for one in altered):
            raise DataError(
                f"the sentences were made from other sentences than those of {language}; use the"
                " file of the same split",
                path=path,
            )
        return altered

    def is_official(self, altered: Sequence[Altered]) -> bool:
        """Return whether the sentences are not our own.

        The digest of the published file is not known here.
        """
        return not any(one.kind.startswith(GENERATED) for one in altered)

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are FLORES with English as the target."""
        if found.revision is None or not found.is_official:
            return False
        return full_code(self.target) == ENGLISH


@dataclass(frozen=True, kw_only=True)
class XSimPPGenerated(MarginSearch):
    """The protocol of ``xsim_pp`` with altered sentences made here, in any language and domain.

    They are made from the target side.

    They are ours and not LASER's set (see ``corpus.negatives.hard_negatives``). Compare these
    numbers only with each other, never with xsim++. The data are those of ``xsim``.
    ``errors_<kind>`` is the share of sentences for which an altered form of the right one was
    retrieved, ``errors_misaligned`` that of other errors. They sum to ``xsim_pp_generated``.

    Attributes:
        target: the language to retrieve and alter; by default English for aligned files, and the
            second language of each file for pairs.
        kinds: of alterations; all of ``number``, ``entity``, ``negation``, ``antonym``,
            ``word_order`` by default.
        per_sentence: altered forms of a sentence per kind, at most.
        seed: of all draws.
        into: a folder for the altered sentences, as ``xsim_pp`` reads them.
    """

    name: ClassVar[str] = "xsim_pp_generated"
    main_metric: ClassVar[str] = "xsim_pp_generated"
    folders: ClassVar[Sequence[str]] = (*FLORES_FOLDERS, "heldout")
    expected: ClassVar[str] = ALIGNED
    published: ClassVar[str | None] = FLORES
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = FLORES_GROUPS

    target: str | None = None
    kinds: tuple[str, ...] = NEGATIVE_KINDS
    per_sentence: int = 5
    seed: int = 1
    into: Path | None = field(default=None, metadata={"output": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_request(self.kinds, self.per_sentence)

    def files(self, folder: Path) -> dict[str, TranslationPair]:
        """Return the files of each language, paired with English."""
        return translation_pairs(folder, self.target)

    def altered(self, folder: Path, language: str, targets: Sequence[str]) -> list[Altered]:
        """Generate altered forms of the targets.

        Raises:
            DataError: there are none.
        """
        found = hard_negatives(
            targets, language, kinds=self.kinds, per_sentence=self.per_sentence, seed=self.seed
        )
        made = list(found)
        if not made:
            what = ", ".join(self.kinds)
            raise DataError(
                f"no sentence of {language} can be altered by {what}; choose other kinds",
                path=folder,
            )
        if self.into is not None:
            # marked in the file, so that xsim_pp does not take them for the published ones
            marked = (one._replace(kind=f"{GENERATED}{one.kind}") for one in made)
            write_altered(self.into, language, marked)
        return made

    def kinds_in(self, altered: Sequence[Altered]) -> list[str]:
        """Return all requested kinds, so that all languages have the same metrics."""
        return list(self.kinds)

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are FLORES with English as the target."""
        return found.revision is not None and found.subsets[0].languages[1] == ENGLISH

    def notes(self, altered: Sequence[Altered]) -> list[str]:
        """Return notes: the number of altered sentences, and the kinds that altered none."""
        made = {one.kind for one in altered}
        # a kind without altered sentences has no errors, which does not show that the encoder is
        # good
        lacking = [kind for kind in self.kinds if kind not in made]
        notes = super().notes(altered)
        notes.append(
            "the altered sentences were made by interlingua, so the scores are not comparable"
            " with published xsim++ scores"
        )
        if lacking:
            notes.append(f"no sentence could be altered by: {', '.join(lacking)}")
        return notes
