"""[data] of a run: where each feed of a method comes from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from interlingua.corpus.sampling import Caps
from interlingua.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledConfig:
    """[data.labelled]: pairs of sentences with a class or a score; ``run.global_batch_size`` pairs a step."""

    paths: tuple[Path, ...]
    """Files; see ``interlingua.corpus.labelled`` for the formats."""
    kind: Literal["nli", "sts"]
    """nli: contradiction, entailment or neutral; sts: a similarity score."""
    valid: tuple[Path, ...] = ()
    """Files of the validation pairs."""
    languages: tuple[str, str] = ("eng_Latn", "eng_Latn")
    """Languages of first and second sentences, where the file does not say."""
    max_tokens: int = 128
    """Longer sentences are cut to this many tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionsConfig:
    """[data.questions]: questions with the passages that answer them; ``run.global_batch_size`` questions a step."""

    paths: tuple[Path, ...]
    """Files; see ``interlingua.corpus.questions`` for the formats."""
    valid: tuple[Path, ...] = ()
    """Files of the validation questions."""
    languages: tuple[str, ...] = ()
    """Only questions of these languages; default: all."""
    hard_negatives: int = 1
    """Hard negatives a question, where it has some; 0 = none."""
    max_question_tokens: int = 256
    """Longer questions are cut to this many tokens."""
    max_passage_tokens: int = 256
    """Longer passages, titles included, are cut to this many tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MonolingualConfig:
    """[data.monolingual]: sentences without translations."""

    paths: tuple[Path, ...]
    """Text files of one sentence a line, called by their language (``ru.txt``, ``news.swh_Latn.txt.gz``)."""
    batch_size: int = 48
    """Sentences per step, over all processes."""
    max_sentences: int = 0
    """Per file, from its beginning; 0 = all."""
    max_tokens: int = 128
    """Longer sentences are cut to this many tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """[data]: what to train on. A method takes some of these feeds, most of them the parallel corpus alone."""

    corpus: Path | None = None
    """Folder that ``interlingua prepare`` wrote: the parallel pairs, and the vocabulary."""
    batch_size: int = 0
    """Parallel pairs per step where another feed goes by ``run.global_batch_size``; 0 = as many."""
    temperature: float = 1.0
    """T of the language pairs' shares, proportional to count^(1/T): 1 = as they are, large = all alike."""
    caps: Caps = field(default_factory=Caps)
    """Limits to what a language pair gets, e.g. ``caps.max_pairs = 100000``."""
    max_tokens: int | None = None
    """Longer sentences are cut to this many tokens; default: what the encoder can take."""
    valid_pairs: int = 1024
    """Rows of the validation set on which loss and collapse are measured."""
    labelled: LabelledConfig | None = None
    """Labelled pairs, for methods that learn from them."""
    questions: QuestionsConfig | None = None
    """Questions and passages, for retrieval."""
    monolingual: MonolingualConfig | None = None
    """Sentences without translations, for methods that use them."""

    def __post_init__(self) -> None:
        if not any((self.corpus, self.labelled, self.questions, self.monolingual)):
            raise ConfigError("data: nothing to train on; give corpus, the folder that interlingua prepare wrote")

    def with_absolute_paths(self) -> DataConfig:
        """The same config, meaning the same from any working directory."""

        def whole(section: Any) -> Any:
            if section is None:
                return None
            lists = {name: getattr(section, name) for name in ("paths", "valid") if hasattr(section, name)}
            return dataclasses.replace(
                section, **{name: tuple(path.absolute() for path in paths) for name, paths in lists.items()}
            )

        return dataclasses.replace(
            self,
            corpus=self.corpus.absolute() if self.corpus is not None else None,
            labelled=whole(self.labelled),
            questions=whole(self.questions),
            monolingual=whole(self.monolingual),
        )
