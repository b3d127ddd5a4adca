"""Retrieval: does the passage that answers a question come first among all passages?

Each class is one data set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from interlingua.errors import DataError
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.data.retrieval import (
    Sets,
    answer_sentence_sets,
    beir_sets,
    miracl_sets,
    mr_tydi_sets,
    question_sets,
)
from interlingua.evaluation.task import Findings
from interlingua.evaluation.tasks.retrieval.passages import OF_ALL
from interlingua.evaluation.tasks.retrieval.retrieval_task import RetrievalTask

PARALLEL_GROUPS = {
    "with_parallel": ("ar", "bn", "en", "fi", "id", "ja", "ko"),
    "without_parallel": ("ru", "sw", "te", "th"),
}
"""Averages of Tables 5 and 10 of multilingual IR (Hu et al. 2022), where four languages have no
parallel text."""

MIRACL_LANGUAGES = "ar bn de en es fa fi fr hi id ja ko ru sw te th yo zh"


@dataclass(frozen=True, kw_only=True)
class TyDiGoldP(RetrievalTask):
    """TyDi QA's gold passages as retrieval: which passage is this question about?

    It is a small substitute for Mr.TyDi.

    Attributes:
        split: dev, or train.
    """

    name: ClassVar[str] = "tydi_goldp"
    published: ClassVar[str | None] = "tydi_goldp"
    main_metric: ClassVar[str] = f"mrr_at_100{OF_ALL}"
    folders: ClassVar[Sequence[str]] = ("tydiqa_goldp",)
    expected: ClassVar[str] = "TyDi GoldP files (sw.dev.questions.tsv and sw.dev.passages.txt)"
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = PARALLEL_GROUPS
    pools_all: ClassVar[bool] = True

    split: Literal["dev", "train"] = "dev"

    def files(self, folder: Path) -> Sets:
        """Return the question sets of the split, by language."""
        return question_sets(folder, self.split)

    def result_name(self, found: Findings) -> str:
        """Return the result's name, with the split unless it is ``dev``."""
        return _with_split(super().result_name(found), self.split, "dev")


class XQuAD(RetrievalTask):
    """XQuAD's paragraphs as retrieval.

    In the pool of all languages each translation of the paragraph is right.
    """

    name: ClassVar[str] = "xquad"
    published: ClassVar[str | None] = "xquad"
    main_metric: ClassVar[str] = f"mrr_at_100{OF_ALL}"
    folders: ClassVar[Sequence[str]] = ("xquad",)
    reader: ClassVar = question_sets
    expected: ClassVar[str] = "XQuAD files (ar.questions.tsv and ar.passages.txt)"
    pools_all: ClassVar[bool] = True
    parallel: ClassVar[bool] = True


class XQuADR(RetrievalTask):
    """XQuAD-R (Roy et al. 2020): the sentence with the answer, among those of all paragraphs.

    In the pool of all languages, a question's sentence in each language is right. Sentences are
    embedded without the paragraph around them.
    """

    name: ClassVar[str] = "xquad_r"
    published: ClassVar[str | None] = "xquad_r"
    main_metric: ClassVar[str] = f"mrr_at_100{OF_ALL}"
    folders: ClassVar[Sequence[str]] = ("xquad_r", "xquad-r")
    reader: ClassVar = answer_sentence_sets
    expected: ClassVar[str] = "XQuAD-R files (ar.json)"
    pools_all: ClassVar[bool] = True
    parallel: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class MrTyDi(RetrievalTask):
    """Mr.TyDi v1.1 (Zhang et al. 2021): MRR@100 in the Wikipedia of the question's language.

    It has 11 languages.

    Attributes:
        split: test, dev or train.
    """

    name: ClassVar[str] = "mr_tydi"
    folders: ClassVar[Sequence[str]] = ("mrtydi", "mr_tydi", "mr.tydi")
    expected: ClassVar[str] = "Mr.TyDi folders (mrtydi-v1.1-arabic/)"
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {
        "mr_tydi": ("ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th"),
        **PARALLEL_GROUPS,
    }

    split: Literal["test", "dev", "train"] = "test"

    def files(self, folder: Path) -> Sets:
        """Return the question sets of the split, by language."""
        return mr_tydi_sets(folder, self.split)

    def result_name(self, found: Findings) -> str:
        """Return the result's name, with the split unless it is ``test``."""
        return _with_split(self.name, self.split, "test")


@dataclass(frozen=True, kw_only=True)
class Miracl(RetrievalTask):
    """MIRACL (Zhang et al. 2023): nDCG@10 in the Wikipedia of the question's language.

    Recall@100 is the other metric of the paper.

    Attributes:
        split: dev, which has public judgments, or train.
    """

    name: ClassVar[str] = "miracl"
    main_metric: ClassVar[str] = "ndcg_at_10"
    folders: ClassVar[Sequence[str]] = ("miracl",)
    expected: ClassVar[str] = "MIRACL folders (miracl-v1.0-ar/ and miracl-corpus-v1.0-ar/)"
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {
        "miracl": MIRACL_LANGUAGES.split(),
    }

    split: Literal["dev", "train"] = "dev"

    def files(self, folder: Path) -> Sets:
        """Return the question sets of the split, by language."""
        return miracl_sets(folder, self.split)

    def result_name(self, found: Findings) -> str:
        """Return the result's name, with the split unless it is ``dev``."""
        return _with_split(self.name, self.split, "dev")


@dataclass(frozen=True, kw_only=True)
class Beir(RetrievalTask):
    """Any passages, queries and judgments in BEIR's layout, or a folder of them per language.

    The files of a single set do not specify its language: pass that language as ``languages``.

    Attributes:
        split: the file of ``qrels/`` to use.
    """

    name: ClassVar[str] = "beir"
    main_metric: ClassVar[str] = "ndcg_at_10"
    folders: ClassVar[Sequence[str]] = ("beir",)
    expected: ClassVar[str] = (
        "retrieval set in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/test.tsv)"
    )

    split: str = "test"

    def files(self, folder: Path) -> Sets:
        """Return the question sets of the split by name; a single set has the name ""."""
        return beir_sets(folder, self.split)

    def codes(self, files: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Return each set's language code: its name, or the requested language of a single set."""
        # "" is a lone set in the folder itself
        if "" not in files:
            return {name: full_code(name) for name in files}
        if self.languages is None or len(self.languages) != 1:
            raise DataError(
                "the language of the files is unknown; pass it, for example --languages en",
                path=folder,
            )
        return {"": full_code(self.languages[0])}

    def result_name(self, found: Findings) -> str:
        """Return the result's name with the folder's, and with the split unless it is ``test``."""
        return _with_split(f"{self.name}_{found.folder.resolve().name}", self.split, "test")


def _with_split(name: str, split: str, usual: str) -> str:
    """Return a result's name with the split that was scored, unless it is the usual one."""
    if split == usual:
        return name
    return f"{name}_{split}"
