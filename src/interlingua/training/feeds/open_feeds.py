"""The feeds of a run: from [data] to sources, and from sources to plans of batches.

Parallel pairs are read from the disk as they are needed. All other feeds are tokenized here, a
chunk at a time, and held in memory.

- Parallel pairs: the folder that ``interlingua prepare`` wrote.
- Labeled pairs: files read whole.
- Questions: a passage that answers several questions, or is the hard negative of others, is held
  once. All questions that share a passage are held out together, so that no validation passage was
  trained on.
- Monolingual sentences: normalized and decontaminated as pairs are. A file is read once and in
  chunks, whatever its size; a seeded reservoir samples the sentences that are kept.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int32, Int64

from interlingua.batches.feeds import FeedName, Plan
from interlingua.batches.language_mixture import ParallelPlan, named_pair, selected
from interlingua.batches.questions import QuestionPlan, QuestionRows
from interlingua.batches.table import LabeledPlan, LabeledRows, SentencePlan, TokenColumn
from interlingua.batches.token_store import TokenStore
from interlingua.config.languages import resolve_language
from interlingua.config.registry import METHODS, resolve_name
from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.cleaning.normalize import normalize_texts
from interlingua.corpus.formats.labeled_pairs import read_labeled
from interlingua.corpus.formats.monolingual import language_of, read_sentences
from interlingua.corpus.formats.questions import Question, TitledText, read_questions
from interlingua.corpus.samples.reservoir import reservoir
from interlingua.encoder.dual_encoder import with_title
from interlingua.errors import ConfigError, DataError
from interlingua.runtime.portions import portions
from interlingua.storage.files import sha256_file, sha256_tree
from interlingua.training.config import TrainConfig
from interlingua.training.feeds.data_config import (
    DataConfig,
    LabeledConfig,
    MonolingualConfig,
    QuestionsConfig,
)
from interlingua.vocabulary.vocabulary import CHUNK_TEXTS, Vocabulary

log = logging.getLogger("interlingua")
SENTENCES_AT_ONCE = 10_000
"""Monolingual sentences that are cleaned at once."""

RowSource = Any
"""A ``TokenStore``, or rows in memory. All have a ``digest`` and a length; rows in memory also have
``longest``, the number of tokens of the longest text."""


class TrainingData(NamedTuple):
    """The opened data that a run trains and validates on."""

    vocabulary: Vocabulary
    train: dict[FeedName, RowSource]
    valid: dict[FeedName, RowSource]

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages of the parallel text, sorted; none without a corpus."""
        store = self.train.get("parallel")
        if store is None:
            return ()
        return tuple(sorted({code for pair in store.language_pairs for code in pair}))

    @property
    def digest(self) -> str:
        """Digest of the training data, and of the vocabulary that made their tokens."""
        digests = {name: source.digest for name, source in self.train.items()}
        if digests.keys() == {"parallel"}:
            return str(digests["parallel"])  # this digest covers the vocabulary too
        content = repr((sorted(digests.items()), self.vocabulary.digest()))
        return hashlib.sha256(content.encode()).hexdigest()

    def digests(self, data: DataConfig) -> dict[str, str]:
        """Return digests of training and validation data, by their keys in the run's manifest."""
        measured = [f"{name} {source.digest}" for name, source in sorted(self.valid.items())]
        measured += [f"similarity {sha256_file(path)}" for path in data.similarity]
        if data.corpus is not None and (data.corpus / "valid_text").is_dir():
            measured.append(f"valid_text {sha256_tree(data.corpus / 'valid_text')}")
        valid = hashlib.sha256("\n".join(measured).encode()).hexdigest()
        return {"data_digest": self.digest, "validation_digest": valid}

    def verify(self) -> None:
        """Read the token stores completely, and compare them with their digests.

        Raises:
            DataError: a file has changed since it was written.
        """
        for source in (*self.train.values(), *self.valid.values()):
            if isinstance(source, TokenStore):
                source.verify()


def open_data(config: TrainConfig, feeds: Sequence[FeedName]) -> TrainingData:
    """Open the feeds that a method takes; a validation set may be missing.

    Raises:
        ConfigError: a feed that the method takes is missing, or one that it does not take is set.
        DataError: files are missing or broken, or have nothing to train on.
    """
    data = config.data
    name = config.method.name
    given = {
        "parallel": data.corpus,
        "labeled": data.labeled,
        "questions": data.questions,
        "monolingual": data.monolingual,
    }
    # First check the sections that the method needs, then those that it does not read: a section
    # without effect is refused. The second check omits the corpus, which also holds the vocabulary.
    for feed in feeds:
        if given[feed] is None:
            key = "corpus" if feed == "parallel" else feed
            raise ConfigError(f"data: the method {name} requires {feed} data; set data.{key}")
    for feed in ("labeled", "questions", "monolingual"):
        if given[feed] is not None and feed not in feeds:
            raise ConfigError(
                f"data: the method {name} does not read {feed} data; remove data.{feed}"
            )
    # Classes and scores are both numbers, so the wrong kind would train without an error.
    kind = resolve_name(METHODS, name).label_kind_for(config.method.options)
    if data.labeled is not None and kind not in (None, data.labeled.kind):
        raise ConfigError(
            f"data.labeled: kind is {data.labeled.kind!r}, but the method {name} expects"
            f" {kind!r}; change kind, or use another method"
        )
    vocabulary = _vocabulary(config)
    train: dict[FeedName, RowSource] = {}
    valid: dict[FeedName, RowSource] = {}
    for feed in feeds:
        train[feed], held_out = _OPEN[feed](config, vocabulary)
        if held_out is not None:
            valid[feed] = held_out
    if "parallel" in train and hasattr(config.method.options, "pivot"):  # e.g. distill, dap
        _need_pivot(config, train["parallel"])
    return TrainingData(vocabulary, train, valid)


def _need_pivot(config: TrainConfig, store: TokenStore) -> None:
    """Refuse pairs without a side in the pivot language, before a late step fails on them."""
    pivot = resolve_language(config.method.options.pivot).code
    chosen = selected(store, config.data.language_pairs)
    wrong = [
        pair
        for pair, is_chosen in zip(store.language_pairs, chosen, strict=True)
        if is_chosen and pivot not in pair
    ]
    if wrong:
        raise ConfigError(
            f"method: the pairs {'-'.join(wrong[0])} have no side in the pivot language {pivot};"
            " set method.pivot, or list the other pairs in data.language_pairs"
        )


def make_plan(
    feed: FeedName,
    source: RowSource,
    data: DataConfig,
    *,
    batch_size: int,
    max_tokens: int,
    seed: int,
) -> Plan:
    """Return the plan of a feed's batches.

    Args:
        feed: name of the feed.
        source: its data.
        data: specifies the mixture.
        batch_size: rows of a step, over all ranks.
        max_tokens: the encoder's limit.
        seed: decides the order.

    Raises:
        ConfigError: a sentence in memory is longer than the encoder can take.
    """
    if feed == "parallel":
        return ParallelPlan(
            source,
            global_batch_size=batch_size,
            seed=seed,
            temperature=data.temperature,
            caps=data.caps,
            max_tokens=min(max_tokens, data.max_tokens or max_tokens),
            language_pairs=data.language_pairs,
            max_pairs=data.max_pairs,
        )
    # Texts in memory were cut as they were read, before there was an encoder.
    if source.longest > max_tokens:
        raise ConfigError(
            f"data.{feed}: a text has {source.longest} tokens, but the encoder reads at most"
            f" {max_tokens}; lower the section's maximum number of tokens"
        )
    own: dict[str, Any] = {}
    if feed == "questions" and data.questions is not None:
        own["language_block"] = data.questions.language_block
    return _PLANS[feed](source, global_batch_size=batch_size, seed=seed, **own)


def batch_sizes(config: TrainConfig, feeds: Sequence[FeedName]) -> dict[FeedName, int]:
    """Return the rows of a step by feed.

    The size of the first feed is ``run.global_batch_size``. The others have sizes of their own.

    Raises:
        ConfigError: the first feed has a different size of its own.
    """
    whole = config.run.global_batch_size
    own = own_batch_sizes(config.data)
    first = feeds[0]
    # The batch size of monolingual data has a default, so a user need not have set it.
    if first != "monolingual" and own.get(first, 0) not in (0, whole):
        key = "data.batch_size"
        if first != "parallel":
            key = f"data.{first}.batch_size"
        raise ConfigError(
            f"{key} is {own[first]}, but the batch size of this method's {first} data is"
            f" run.global_batch_size, {whole}; remove {key}"
        )
    return {first: whole} | {feed: own.get(feed, 0) or whole for feed in feeds[1:]}


def own_batch_sizes(data: DataConfig) -> dict[FeedName, int]:
    """Return the rows per step that are set by the feeds' own keys; 0 if a feed sets none."""
    sections: dict[FeedName, Any] = {
        "parallel": data,
        "labeled": data.labeled,
        "questions": data.questions,
        "monolingual": data.monolingual,
    }
    return {feed: section.batch_size for feed, section in sections.items() if section is not None}


def _vocabulary(config: TrainConfig) -> Vocabulary:
    """Return the corpus's vocabulary, or else that of the pretrained model."""
    if config.data.corpus is not None:
        if not config.data.corpus.is_dir():
            raise DataError(
                "folder not found; run: interlingua prepare CONFIG", path=config.data.corpus
            )
        return Vocabulary.load(config.data.corpus / "vocabulary")
    if config.encoder.path is None:
        raise ConfigError(
            "data: encoder.preset requires the vocabulary of a corpus; set data.corpus, or"
            " encoder.path instead of encoder.preset"
        )
    return Vocabulary.of_model(config.encoder.path)


def _open_parallel(
    config: TrainConfig, vocabulary: Vocabulary
) -> tuple[TokenStore, TokenStore | None]:
    data = config.data
    path = data.corpus
    assert path is not None
    train = TokenStore.open(path / "train")
    if len(train) == 0:
        raise DataError(
            "the corpus has no pairs to train on; check the counts in manifest.json", path=path
        )
    _check_vocabulary(train, vocabulary)
    selected(train, data.language_pairs)  # refuses a corpus that has none of them
    # Some of the chosen pairs may be missing, so that one config fits a corpus while it grows.
    there = {frozenset(pair) for pair in train.language_pairs}
    missing = [name for name in data.language_pairs if named_pair(name) not in there]
    if missing:
        log.warning(
            "%s: no pairs of %s, which data.language_pairs lists; training continues without them",
            path,
            missing,
        )
    if not (path / "valid").is_dir():
        return train, None
    valid = TokenStore.open(path / "valid")
    _check_vocabulary(valid, vocabulary)
    # A validation set without any of the chosen pairs counts as missing.
    chosen = {named_pair(name) for name in data.language_pairs}
    if any(not chosen or frozenset(pair) in chosen for pair in valid.language_pairs):
        return train, valid
    return train, None


def _check_vocabulary(store: TokenStore, vocabulary: Vocabulary) -> None:
    """Refuse a store with ids that the vocabulary lacks or may read differently."""
    if store.vocabulary_digest != vocabulary.digest() or store.vocabulary_size != vocabulary.size:
        raise DataError(
            "the tokens were made with another vocabulary; prepare the corpus again",
            path=store.path,
        )


def _open_labeled(
    config: TrainConfig, vocabulary: Vocabulary
) -> tuple[LabeledRows, LabeledRows | None]:
    section = config.data.labeled
    assert section is not None
    train = _labeled_rows(section.paths, section, vocabulary, split="train")
    if train is None:
        raise DataError(
            "no labeled pairs to train on; check kind and languages of data.labeled",
            path=section.paths[0],
        )
    return train, _labeled_rows(section.valid, section, vocabulary, split="dev")


def _labeled_rows(
    paths: Sequence[Path], section: LabeledConfig, vocabulary: Vocabulary, *, split: str
) -> LabeledRows | None:
    pairs = [
        pair
        for path in paths
        for pair in read_labeled(path, kind=section.kind, split=split, languages=section.languages)
    ]
    if not pairs:
        return None
    a = [pair.a for pair in pairs]
    b = [pair.b for pair in pairs]
    languages_a = [pair.language_a for pair in pairs]
    languages_b = [pair.language_b for pair in pairs]
    return LabeledRows(
        token_column(a, languages_a, vocabulary, section.max_tokens),
        token_column(b, languages_b, vocabulary, section.max_tokens),
        np.asarray([pair.label for pair in pairs], dtype=np.float32),
    )


def _open_questions(
    config: TrainConfig, vocabulary: Vocabulary
) -> tuple[RowSource, RowSource | None]:
    section = config.data.questions
    assert section is not None
    return open_questions(section, vocabulary, two_towers=_has_two_towers(config.method.options))


def _has_two_towers(options: Any) -> bool:
    """Return whether a method's options give the questions an encoder of their own.

    For a combination, the options of any of its terms count.
    """
    terms = [options]
    if hasattr(options, "resolved"):
        terms = [term.options for term in options.resolved().values()]
    return any(getattr(term, "towers", None) == "separate" for term in terms)


def open_questions(
    section: QuestionsConfig, vocabulary: Vocabulary, *, two_towers: bool = True
) -> tuple[QuestionRows, QuestionRows | None]:
    """Read the questions to train and to validate on.

    Args:
        section: specifies the files, and how many questions to hold out.
        vocabulary: makes their tokens.
        two_towers: whether passages have an encoder of their own; it decides how titles are read,
            see ``with_title``.

    Raises:
        ConfigError: more questions are to be held out than there are.
        DataError: a file can't be used, or none has a question to train on.
    """
    train = _QuestionReader(section, vocabulary, two_towers).read(section.paths)
    if train is None:
        raise DataError(
            "no questions to train on in these languages; check data.questions",
            path=section.paths[0],
        )
    if not section.held_out:
        rows = train.rows()
        valid = _QuestionReader(section, vocabulary, two_towers).read(section.valid)
        return rows, None if valid is None else valid.rows()
    held_out = train.held_out(section.held_out)
    if held_out.all():
        raise ConfigError(
            f"data.questions: held_out = {section.held_out} leaves none of {len(held_out)}"
            " questions to train on; lower held_out"
        )
    rows = train.rows()
    return _chosen_questions(rows, np.flatnonzero(~held_out)), _chosen_questions(
        rows, np.flatnonzero(held_out)
    )


class _QuestionReader:
    """Reader that tokenizes questions while reading, and stores each passage once."""

    def __init__(self, section: QuestionsConfig, vocabulary: Vocabulary, two_towers: bool) -> None:
        self._section = section
        self._separating: Vocabulary | None = None
        if two_towers:
            self._separating = vocabulary
        self._questions = ColumnBuilder(vocabulary, section.max_question_tokens)
        self._passages = ColumnBuilder(vocabulary, section.max_passage_tokens)
        self._places: dict[bytes, int] = {}
        self._positives: list[int] = []
        self._negatives: list[list[int]] = []

    def read(self, paths: Sequence[Path]) -> _QuestionReader | None:
        """Read files; return none if there is no question in them."""
        for path in paths:
            skipped: Counter[str] = Counter()
            for question in read_questions(
                path, languages=self._section.languages, skipped=skipped
            ):
                self._add(question)
            for reason, count in skipped.items():
                log.warning("%s: skipped %d: %s", path, count, reason)
        if not self._positives:
            return None
        return self

    def rows(self) -> QuestionRows:
        """Return the rows read so far."""
        counts = np.asarray([len(negatives) for negatives in self._negatives], dtype=np.int64)
        flat = [place for negatives in self._negatives for place in negatives]
        return QuestionRows(
            self._questions.column(),
            self._passages.column(),
            np.asarray(self._positives, dtype=np.int64),
            np.asarray(flat, dtype=np.int64),
            counts,
            min(self._section.hard_negatives, int(counts.max())),
        )

    def held_out(self, count: int) -> Bool[np.ndarray, " n"]:
        """Return which questions to hold out, passage by passage in the order of the hashes.

        These are at least ``count``, because all questions of the last passage are held out.
        """
        order = {place: rank for rank, (_, place) in enumerate(sorted(self._places.items()))}
        ranks = np.asarray([order[place] for place in self._positives])
        last = np.sort(ranks)[min(count, len(ranks)) - 1]
        return np.asarray(ranks <= last)

    def _add(self, question: Question) -> None:
        self._questions.add(self._section.question_prompt + question.text, question.language)
        right = self._place(question.positives[0], question.language)
        wrong: list[TitledText] = []
        if self._section.hard_negatives:  # else they are not even tokenized
            wrong = [
                passage for passage in question.hard_negatives if passage not in question.positives
            ]
        # Keep each passage once, in order: two may be equal after prompt and title are added.
        places = dict.fromkeys(self._place(passage, question.language) for passage in wrong)
        places.pop(right, None)
        self._positives.append(right)
        self._negatives.append([*places])

    def _place(self, passage: TitledText, language: str) -> int:
        text = self._section.passage_prompt + with_title(
            passage.text, passage.title, self._separating
        )
        language = passage.language or language
        # Hashes in place of the texts, which would take most of the memory.
        key = hashlib.blake2b(f"{language}\0{text}".encode(), digest_size=16).digest()
        if key not in self._places:
            self._places[key] = self._passages.add(text, language)
        return self._places[key]


def _chosen_questions(rows: QuestionRows, chosen: Int64[np.ndarray, " n"]) -> QuestionRows:
    """Return some of the questions, with all passages, because other questions may share them."""
    questions = rows.questions.read(chosen)
    firsts = np.cumsum(rows.negative_counts) - rows.negative_counts
    sequences = np.split(questions.input_ids.numpy(), questions.cu_seqlens.numpy()[1:-1])
    counts = rows.negative_counts[chosen]
    negatives = [
        rows.negatives[firsts[row] : firsts[row] + rows.negative_counts[row]] for row in chosen
    ]
    return QuestionRows(
        TokenColumn(sequences, questions.languages),
        rows.passages,
        rows.positives[chosen],
        np.concatenate(negatives),
        counts,
        rows.hard_negatives if counts.any() else 0,
    )


def _open_monolingual(config: TrainConfig, vocabulary: Vocabulary) -> tuple[TokenColumn, None]:
    section = config.data.monolingual
    assert section is not None
    return open_monolingual(section, vocabulary), None


def open_monolingual(section: MonolingualConfig, vocabulary: Vocabulary) -> TokenColumn:
    """Read the sentences of all files.

    Args:
        section: specifies the files, how many to draw, and what to leave out.
        vocabulary: makes their tokens.

    Raises:
        DataError: a file or an evaluation folder can't be used, or nothing of a file is left.
    """
    # One object for all files: it counts the removed sentences by evaluation set.
    evaluation = EvaluationKeys.from_folders(section.decontaminate)
    texts: list[str] = []
    languages: list[str] = []
    for path in section.paths:
        found = drawn_sentences(path, section, evaluation)
        texts += found
        languages += [language_of(path)] * len(found)
    for name, count in evaluation.counts.items():
        if count:
            log.warning(
                "data.monolingual: removed %d sentences that occur in the evaluation set %s",
                count,
                name,
            )
    return token_column(texts, languages, vocabulary, section.max_tokens)


def drawn_sentences(
    path: Path, section: MonolingualConfig, evaluation: EvaluationKeys
) -> list[str]:
    """Draw up to ``max_sentences`` of a file's sentences, all with the same probability.

    Raises:
        DataError: none is left.
    """
    clean = _clean_sentences(path, section.column, evaluation)
    if section.max_sentences:
        texts = reservoir(clean, section.max_sentences, seed=section.seed)
    else:
        texts = list(clean)
    if not texts:
        raise DataError(
            "no sentences remain: the file is empty, or all of them are in evaluation sets; add"
            " other sentences",
            path=path,
        )
    return texts


def _clean_sentences(path: Path, column: str | None, evaluation: EvaluationKeys) -> Iterator[str]:
    for chunk in portions(read_sentences(path, column=column), SENTENCES_AT_ONCE):
        texts = normalize_texts(chunk)
        # which sentences are in evaluation sets; hashing is skipped if there are no sets
        known = np.zeros(len(texts), bool)
        if len(evaluation):
            known = evaluation.contaminated_keys(text_keys(texts))
        for text, is_known in zip(texts, known, strict=True):
            if text and not is_known:
                yield text


class ColumnBuilder:
    """Builder of a column of tokens from texts of any languages, in order.

    It never holds all texts or all Python integers at once. A token takes four bytes in an array,
    and about thirty as an integer in a list.

    Args:
        vocabulary: makes the tokens.
        max_tokens: longer texts are cut to this many.
    """

    def __init__(self, vocabulary: Vocabulary, max_tokens: int) -> None:
        self._vocabulary = vocabulary
        self._max_tokens = max_tokens
        self._texts: list[str] = []
        self._languages: list[str] = []
        self._sequences: list[Int32[np.ndarray, " t"]] = []

    def __len__(self) -> int:
        return len(self._languages)

    def add(self, text: str, language: str) -> int:
        """Add a text.

        Returns:
            its row.
        """
        self._texts.append(text)
        self._languages.append(language)
        # as many as the tokenizer takes at once
        if len(self._texts) == CHUNK_TEXTS:
            self._tokenize()
        return len(self._languages) - 1

    def column(self) -> TokenColumn:
        """Return the texts added so far as a column.

        Raises:
            DataError: there are none.
        """
        self._tokenize()
        return TokenColumn(self._sequences, self._languages)

    def _tokenize(self) -> None:
        """Tokenize the waiting texts language by language.

        This is because some vocabularies first segment words by language.
        """
        # Texts are cleared once they are tokenized, but languages are kept: the last languages are
        # those of the waiting texts.
        languages = self._languages[len(self._sequences) :]
        found: dict[int, Int32[np.ndarray, " t"]] = {}
        for language in sorted(set(languages)):
            rows = [row for row, code in enumerate(languages) if code == language]
            texts = [self._texts[row] for row in rows]
            encoded = self._vocabulary.encode(texts, language=language, max_tokens=self._max_tokens)
            for row, ids in zip(rows, encoded, strict=True):
                found[row] = np.asarray(ids, dtype=np.int32)
        self._sequences += [found[row] for row in range(len(languages))]
        self._texts.clear()


def token_column(
    texts: Iterable[str], languages: Iterable[str], vocabulary: Vocabulary, max_tokens: int
) -> TokenColumn:
    """Return a column of texts with the language of each."""
    builder = ColumnBuilder(vocabulary, max_tokens)
    for text, language in zip(texts, languages, strict=True):
        builder.add(text, language)
    return builder.column()


_PLANS: dict[FeedName, Callable[..., Plan]] = {
    "labeled": LabeledPlan,
    "questions": QuestionPlan,
    "monolingual": SentencePlan,
}
_OPEN: dict[FeedName, Any] = {
    "parallel": _open_parallel,
    "labeled": _open_labeled,
    "questions": _open_questions,
    "monolingual": _open_monolingual,
}
