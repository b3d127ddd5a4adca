"""[data] of a run: the source of each feed of a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from interlingua.batches.language_mixture import named_pair
from interlingua.config import Between, CheckedSettings
from interlingua.corpus.forms.variants import check_variants
from interlingua.corpus.samples.sampling import Caps
from interlingua.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledConfig(CheckedSettings):
    """[data.labeled]: pairs of sentences with a class or a score."""

    paths: tuple[Path, ...]
    """Files; see ``interlingua.corpus.formats.labeled_pairs`` for the formats."""
    kind: Literal["nli", "sts"]
    """nli: contradiction, entailment or neutral; sts: a similarity score."""
    valid: tuple[Path, ...] = ()
    """Files of the validation pairs."""
    languages: tuple[str, str] = ("eng_Latn", "eng_Latn")
    """Languages of first and second sentences, if the file does not say."""
    batch_size: Annotated[int, Between(0, 2**31)] = 0
    """Pairs per step if ``run.global_batch_size`` is that of another feed; 0 = the same number."""
    max_tokens: Annotated[int, Between(1, 2**31)] = 128
    """Longer sentences are cut to this many tokens."""

    def __post_init__(self) -> None:
        _refuse_no_files("labeled", self.paths)


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionsConfig(CheckedSettings):
    """[data.questions]: questions with the passages that answer them."""

    paths: tuple[Path, ...]
    """Files; see ``interlingua.corpus.formats.questions`` for the formats."""
    valid: tuple[Path, ...] = ()
    """Files of the validation questions."""
    languages: tuple[str, ...] = ()
    """Only questions of these languages; default: all."""
    held_out: Annotated[int, Between(0, 2**31)] = 0
    """Number of questions of ``paths`` that are used for validation instead of training, together
    with all questions that share a passage with them; cannot be combined with ``valid``."""
    batch_size: Annotated[int, Between(0, 2**31)] = 0
    """Questions per step if ``run.global_batch_size`` is that of another feed; 0 = the same."""
    hard_negatives: Annotated[int, Between(0, 1_000)] = 0
    """Hard negatives per question, if the files have some."""
    language_block: Annotated[int, Between(1, 2**20)] = 1
    """Number of consecutive questions of one language, for losses that compare only these; 1 = any
    order."""
    question_prompt: str = ""
    """Prompt in front of questions, for backbones that were trained with a prompt; it is saved with
    the model."""
    passage_prompt: str = ""
    """Prompt in front of passages."""
    max_question_tokens: Annotated[int, Between(1, 2**31)] = 256
    """Longer questions are cut to this many tokens."""
    max_passage_tokens: Annotated[int, Between(1, 2**31)] = 256
    """Longer passages, titles included, are cut to this many tokens."""

    def __post_init__(self) -> None:
        _refuse_no_files("questions", self.paths)
        if self.valid and self.held_out:
            raise ConfigError("data.questions: valid and held_out cannot be combined; remove one")


@dataclass(frozen=True, kw_only=True, slots=True)
class MonolingualConfig(CheckedSettings):
    """[data.monolingual]: sentences without translations."""

    paths: tuple[Path, ...]
    """Text files with one sentence per line, or tables (``.csv``, ``.xlsx``), named after their
    language (``ru.txt``, ``news.swh_Latn.txt.gz``)."""
    column: str | None = None
    """Column of tables; default: the column named after the language in the file's name, or
    ``text``."""
    batch_size: Annotated[int, Between(1, 2**31)] = 48
    """Sentences per step of all processes if ``run.global_batch_size`` is that of another feed."""
    max_sentences: Annotated[int, Between(0, 2**62)] = 0
    """Maximum number per file, drawn with ``seed``; 0 = all."""
    decontaminate: tuple[Path, ...] = ()
    """Evaluation folders, whose sentences are left out, as ``interlingua prepare`` does with
    pairs."""
    seed: int = 0
    """Seed of the draw."""
    max_tokens: Annotated[int, Between(1, 2**31)] = 128
    """Longer sentences are cut to this many tokens."""

    def __post_init__(self) -> None:
        _refuse_no_files("monolingual", self.paths)


@dataclass(frozen=True, kw_only=True, slots=True)
class FormsConfig(CheckedSettings):
    """[data.forms]: a share of all texts in other forms, with the targets of the original texts."""

    share: Annotated[float, Between(1e-6, 1)] = 0.1
    """Share of the texts that the encoder reads in another form; each step draws other texts."""
    names: tuple[str, ...] = ()
    """Forms to draw from: capitals, lower_case, decomposed, points, soft_hyphens, typos,
    no_punctuation; default: all."""

    def __post_init__(self) -> None:
        check_variants(self.names, "data.forms.names")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig(CheckedSettings):
    """[data]: the training data.

    A method takes some of these feeds, most of them only the parallel corpus.
    """

    corpus: Path | None = None
    """Folder that ``interlingua prepare`` wrote: the parallel pairs, and the vocabulary."""
    batch_size: Annotated[int, Between(0, 2**31)] = 0
    """Parallel pairs per step if ``run.global_batch_size`` is that of another feed; 0 = the same
    number."""
    temperature: Annotated[float, Between(1e-6, 1e9)] = 1.0
    """T of the language pairs' shares, which are proportional to count^(1/T): 1 = shares of the
    corpus, a large T = nearly equal shares."""
    caps: Caps = field(default_factory=Caps)
    """Limits of a language pair's share, e.g. ``caps.max_pairs = 100000``."""
    language_pairs: tuple[str, ...] = ()
    """Only these language pairs of the corpus, sides in either order, e.g. "eng_Latn-kor_Hang";
    default: all."""
    max_pairs: Annotated[int, Between(1, 2**62)] | None = None
    """Only this many pairs of each language pair, drawn by run.seed; default: all. ``caps`` limits
    their share only."""
    max_tokens: Annotated[int, Between(1, 2**31)] | None = None
    """Longer sentences are cut to this many tokens; default: the encoder's limit."""
    valid_pairs: Annotated[int, Between(0, 2**31)] = 1024
    """Rows of the validation set on which loss and collapse are measured."""
    valid_batch_size: Annotated[int, Between(1, 2**31)] | None = None
    """Rows of a validation batch, which decide how many in-batch negatives ``valid_loss`` has, on
    any number of devices and with any micro_batch_size; default: run.global_batch_size. Validation
    keeps no gradients; lower this value if memory is short."""
    labeled: LabeledConfig | None = None
    """Labeled pairs, for methods that learn from them."""
    questions: QuestionsConfig | None = None
    """Questions and passages, for retrieval."""
    monolingual: MonolingualConfig | None = None
    """Sentences without translations, for methods that use them."""
    forms: FormsConfig | None = None
    """Write a share of the texts in other forms: in capitals, with typos, without punctuation."""
    similarity: tuple[Path, ...] = ()
    """Files of pairs with similarity scores on which each evaluation measures ``valid_spearman``,
    whatever the method; default: ``labeled.valid`` where it holds scores."""

    def __post_init__(self) -> None:
        if not any((self.corpus, self.labeled, self.questions, self.monolingual)):
            raise ConfigError(
                "data: no training data; set corpus to the folder that `interlingua prepare` wrote"
            )
        # refuses names that are not pairs of languages; whether the corpus has them is checked when
        # it is opened
        for name in self.language_pairs:
            named_pair(name)


def _refuse_no_files(section: str, paths: Sequence[Path]) -> None:
    if not paths:
        raise ConfigError(f"data.{section}: paths is empty; name the files to read")
