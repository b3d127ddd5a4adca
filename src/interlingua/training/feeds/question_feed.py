"""The feed of questions: files read one question at a time, tokenized, and split.

A passage that answers several questions, or is the hard negative of others, is held once. All
questions that share a passage are held out together, so that no validation passage was trained on.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from interlingua.batches.questions import QuestionRows
from interlingua.batches.table import TokenColumn
from interlingua.corpus.formats.questions import Question, TitledText, read_questions
from interlingua.encoder.dual_encoder import with_title
from interlingua.errors import ConfigError, DataError
from interlingua.training.feeds.columns import ColumnBuilder
from interlingua.training.feeds.data_config import QuestionsConfig
from interlingua.vocabulary.vocabulary import Vocabulary

log = logging.getLogger("interlingua")


def open_questions(
    section: QuestionsConfig, vocabulary: Vocabulary, *, two_towers: bool = True
) -> tuple[QuestionRows, QuestionRows | None]:
    """Read the questions to train and to validate on.

    Args:
        section: says where they are, and how many of them to hold out.
        vocabulary: makes their tokens.
        two_towers: whether passages have an encoder of their own; it decides how titles are read,
            see ``with_title``.

    Raises:
        ConfigError: more questions are to be held out than there are.
        DataError: a file can't be used, or none has a question to train on.
    """
    train = _Reader(section, vocabulary, two_towers).read(section.paths)
    if train is None:
        raise DataError(
            "no question to train on in these languages; see data.questions", path=section.paths[0]
        )
    if not section.held_out:
        rows = train.rows()
        valid = _Reader(section, vocabulary, two_towers).read(section.valid)
        return rows, None if valid is None else valid.rows()
    held_out = train.held_out(section.held_out)
    if held_out.all():
        raise ConfigError(
            f"data.questions: held_out = {section.held_out} leaves none of {len(held_out)}"
            " questions to train on; lower it"
        )
    rows = train.rows()
    return _selected(rows, np.flatnonzero(~held_out)), _selected(rows, np.flatnonzero(held_out))


class _Reader:
    """Questions as they are read: tokens at once, passages that come again by their place."""

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

    def read(self, paths: Sequence[Path]) -> _Reader | None:
        """Take files in; none if no question is in them."""
        for path in paths:
            skipped: Counter[str] = Counter()
            for question in read_questions(
                path, languages=self._section.languages, skipped=skipped
            ):
                self._add(question)
            for reason, count in skipped.items():
                log.warning("%s: left out %d: %s", path, count, reason)
        if not self._positives:
            return None
        return self

    def rows(self) -> QuestionRows:
        """What was read."""
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
        """Which questions to hold out: those of whole passages, in the order of their hashes.

        At least ``count``, as the last passage brings all its questions.
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
        # Each once, in their order; two passages may be one once their prompt and title are in.
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


def _selected(rows: QuestionRows, chosen: Int64[np.ndarray, " n"]) -> QuestionRows:
    """Some of the questions, with all passages, which others may share."""
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
