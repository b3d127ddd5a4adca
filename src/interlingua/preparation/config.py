"""The configuration of ``interlingua prepare``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from interlingua.config import MANY, Above, AtLeast, Between, CheckedSettings, PathText
from interlingua.config.languages import resolve_language
from interlingua.corpus.cleaning.clean import CleanConfig
from interlingua.corpus.segments.segmentation import PreTokenizer
from interlingua.errors import ConfigError, DataError
from interlingua.runtime.processes import usable_cores
from interlingua.storage.limits import MAX_LINE_CHARACTERS

MOST_PROCESSES = 8
"""Maximum number of processes by default; the process that reads and writes can't supply more of
them with work."""


def known_languages(names: Iterable[str]) -> list[str]:
    """Return the codes of the key ``languages``.

    Raises:
        ConfigError: a name is not a language.
    """
    try:
        return [resolve_language(name).code for name in names]
    except DataError as error:
        raise ConfigError(f"languages: {error}") from error


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SourceConfig(CheckedSettings):
    """A collection of bitext files of one origin and license."""

    paths: tuple[Path, ...]
    """Files, globs, folders of translators' files, Moses prefixes, or
    ``hf:NAME[:CONFIG[:SPLIT]]``; ``~`` and ``$VARIABLES`` are expanded."""
    name: str = ""
    """Name in the manifest; default: the first path's name."""
    format: str | None = None
    """tsv, csv, xlsx, jsonl, moses, opus, tmx, gettext, xliff, qt, catalog, subtitles,
    huggingface or ``package.module:Class``; guessed from each file's name."""
    languages: tuple[str, str] | None = None
    """Source and target, as any codes; default: from the content or name (``news.de-en.tsv``)."""
    columns: tuple[str, str] | None = None
    """Columns of the texts in .tsv, .csv, .xlsx, .parquet or keys in .jsonl: names, or numbers
    from 1."""
    sheet: str | None = None
    """Sheet of .xlsx, by its name or its number from 1; the first by default."""
    header_row: Annotated[int, Between(1, MANY)] | None = None
    """Row of .tsv, .csv or .xlsx with the names of the columns, from 1; found by default."""
    license: str = "unknown"
    """License for the manifest."""
    weight: Annotated[float, Above(0, 1)] = 1.0
    """Share (0 to 1] of the source's pairs to keep; use less than 1 for narrow domains."""
    min_score: Annotated[float, Between(-MANY, MANY)] | None = None
    """Minimum score of a pair, from the file's column: WikiMatrix's margin (the papers use 1.04),
    or the score or the probability that ``interlingua score`` wrote. Pairs without a score are
    refused."""
    max_pairs: Annotated[int, Between(0, MANY)] = 0
    """Pairs kept per language pair; 0 = all."""
    max_pairs_by: Literal["draw", "score"] = "draw"
    """The pairs that ``max_pairs`` and ``fill_to`` keep: drawn by the seed, or those with the best
    scores."""
    fill_to: Annotated[int, Between(0, MANY)] = 0
    """Maximum number of pairs of a language pair from this source and all earlier ones together:
    this source adds only what is missing, as MEXMA fills its languages up to 15 million with mined
    text. 0 = no limit."""
    only_missing: bool = False
    """Use it only for language pairs that no earlier source has, as EMS uses Tatoeba."""
    heldout: bool = True
    """Draw held-out and validation pairs from it too."""

    def __post_init__(self) -> None:
        if not self.paths:
            raise ConfigError("a source has no paths; add files or patterns")
        if self.max_pairs_by == "score" and not (self.max_pairs or self.fill_to):
            raise ConfigError(
                'max_pairs_by = "score" requires max_pairs or fill_to, and both are 0; set one'
                " of them"
            )
        codes = known_languages(self.languages or ())
        # "de" and "German" are one language, so the codes are compared and not the names.
        if len(codes) != len(set(codes)):
            raise ConfigError(f"languages: both sides are {codes[0]}; use two different languages")

    @property
    def needs_scores(self) -> bool:
        """True if a pair without a score can't be judged."""
        return self.min_score is not None or self.max_pairs_by == "score"

    @property
    def label(self) -> str:
        """The name in the manifest."""
        return self.name or self.paths[0].name


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DeduplicateConfig(CheckedSettings):
    """The repeated pairs to drop; exact duplicates are always dropped."""

    near: bool = False
    """Drop near-duplicate pairs too (MinHash over both sides)."""
    threshold: Annotated[float, Between(0.01, 1)] = 0.8
    """Minimum Jaccard similarity (0 to 1) of the character n-grams of two near-duplicates."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SplitConfig(CheckedSettings):
    """A set of pairs; no sentence of it, on either side, occurs in training."""

    pairs: Annotated[int, Between(0, MANY)] = 0
    """Pairs per language pair."""
    min_words: Annotated[int, Between(0, MANY)] = 4
    """Minimum number of words on the English side, or on the longer side if none is English."""
    short_pairs: Annotated[int, Between(0, MANY)] = 0
    """Further pairs per language pair that are shorter than ``min_words``."""
    max_share: Annotated[float, AtLeast(0, below=1)] = 0.2
    """Share (0 to 1) of a language pair's pairs that may go into this set."""
    english_only: bool = True
    """Draw only from language pairs with English."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyConfig(CheckedSettings):
    """The vocabulary: trained here, or taken from a model or tokenizer."""

    path: PathText = ""
    """A vocabulary, a model (folder, ``mini``, ``hf:owner/name``) or ``tokenizer.json`` to take;
    empty: train one."""
    trim: bool = False
    """Keep only the part of the vocabulary of the model at ``path`` that the pairs need.
    ``backbone/`` in the output is the model to train from: smaller, with the same results on these
    texts."""
    max_size: Annotated[int, Between(1, 10_000_000)] | None = None
    """With ``trim``: number of ids to keep, the most frequent in text sampled at ``temperature``;
    rarer pieces are spelled by shorter ones. None = all that the pairs need. BPE also keeps the
    parts that the kept pieces are merged from."""
    size: Annotated[int, Between(1, 10_000_000)] = 32_000
    """Number of ids."""
    model_type: Literal["bpe", "unigram"] = "bpe"
    """Kind of SentencePiece model."""
    lowercase: bool = True
    """Fold case before anything else."""
    byte_fallback: bool = False
    """Spell unknown characters as bytes instead of one unknown token."""
    character_coverage: Annotated[float, Between(0.01, 1)] = 0.9995
    """Share (0 to 1] of all characters that get a piece of their own."""
    temperature: Annotated[float, Between(0.01, 1e6)] = 5.0
    """Languages are sampled with weight n^(1/temperature)."""
    sample_sentences: Annotated[int, Between(1, MANY)] = 500_000
    """Distinct sentences to train on."""
    pre_tokenizer: PreTokenizer = "none"
    """Word segmentation that comes first, by language as in EMS; needs the extra
    ``pretokenizers``."""

    def __post_init__(self) -> None:
        if self.trim and not self.path:
            raise ConfigError(
                "vocabulary: trim requires path (a model with a vocabulary); set path, or remove"
                " trim"
            )
        if self.max_size is not None and not self.trim:
            raise ConfigError(
                "vocabulary: max_size requires trim = true; for a new vocabulary set size instead"
            )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PrepareConfig(CheckedSettings):
    """The config of ``interlingua prepare``: inputs, rules and output."""

    output: Path
    """The folder to make."""
    sources: tuple[SourceConfig, ...]
    """Sources in order of preference: of equal pairs the first one is kept."""
    languages: tuple[str, ...] = ()
    """Languages to keep, any codes; empty = all."""
    clean: CleanConfig = dataclasses.field(default_factory=CleanConfig)
    """Rules of cleaning."""
    deduplicate: DeduplicateConfig = dataclasses.field(default_factory=DeduplicateConfig)
    """Rules for repeated pairs."""
    decontaminate: tuple[Path, ...] = ()
    """Evaluation folders; a pair is dropped if either side is one of their sentences."""
    heldout: SplitConfig = dataclasses.field(default_factory=SplitConfig)
    """The test set."""
    validation: SplitConfig = dataclasses.field(default_factory=lambda: SplitConfig(pairs=200))
    """Validation pairs, by which a model is chosen during training."""
    vocabulary: VocabularyConfig = dataclasses.field(default_factory=VocabularyConfig)
    """The vocabulary: trained on the training pairs, or taken from a model."""
    prompt: str | None = None
    """Prompt to put in front of every stored text before it is tokenized, for a backbone that was
    trained with a prompt: a text (``query: ``), or the name of a prompt of the model at
    ``vocabulary.path``. Evaluations during training use it, and the trained model itself puts it
    before texts. Default: the model's own default prompt, if it has one; "" = none."""
    max_tokens: Annotated[int, Between(2, 2**16)] = 256
    """Maximum number of tokens of a stored text."""
    long_pairs: Literal["cut", "drop"] = "cut"
    """Handling of a pair with a side of more than ``max_tokens`` tokens: the side is ``cut``, or
    the pair is left out (``drop``). ``drop`` comes before the limits of the sources, so that the
    limits count only the remaining pairs. ``drop`` needs a vocabulary that is taken over
    (``vocabulary.path``), and tokenizes every pair once more."""
    on_error: Literal["stop", "skip"] = "stop"
    """Handling of an unreadable line: ``stop`` the work, or ``skip`` it, count it and keep it in
    ``rejected_lines.tsv``."""
    max_line_characters: Annotated[int, Between(1, MANY)] = MAX_LINE_CHARACTERS
    """Maximum number of characters in a line of a source."""
    seed: Annotated[int, Between(0, 2**62)] = 0
    """Seed of every draw; equal files, config and seed give equal bytes."""
    processes: Annotated[int, Between(1, 1024)] | None = None
    """Processes that clean, hash, compare, count and tokenize; 1 = only this process. Default: all
    cores that this process may use, at most 8. The result is the same for any number."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise ConfigError("sources are missing; add a [[sources]] table with paths")
        known_languages(self.languages)  # raises an error if a name is not a language
        if self.long_pairs == "drop" and not self.vocabulary.path:
            raise ConfigError(
                'long_pairs = "drop" requires vocabulary.path, because lengths in tokens are'
                " known only for an existing vocabulary; set it, or use cut"
            )

    @property
    def used_processes(self) -> int:
        """Processes that compute."""
        return self.processes or min(usable_cores(), MOST_PROCESSES)
