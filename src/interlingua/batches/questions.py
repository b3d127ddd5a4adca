"""Batches of questions with passages: first the answers, then the hard negatives.

A hard negative is a passage that looks like an answer but is not one. Every batch has the same
number of passages, however many hard negatives its questions have in the files.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from interlingua.batches.feeds import QuestionBatch
from interlingua.batches.permutation import keys, permute
from interlingua.batches.table import ShuffledPlan, TokenColumn
from interlingua.corpus.cleaning.keys import splitmix64
from interlingua.errors import ConfigError
from interlingua.runtime.seeds import seed_for


@dataclass(frozen=True, slots=True)
class QuestionRows:
    """Questions, tokenized, with the indices of their passages.

    A passage that several questions share is held once.
    """

    questions: TokenColumn
    passages: TokenColumn
    positives: Int64[np.ndarray, " n"]
    """Row of the passage that answers each question."""
    negatives: Int64[np.ndarray, " m"]
    """Rows of the hard negatives, question after question."""
    negative_counts: Int64[np.ndarray, " n"]
    """Number of hard negatives of each question."""
    hard_negatives: int = 0
    """Number of hard negatives per question in a batch; 0 if no question has any."""

    def __len__(self) -> int:
        return len(self.positives)

    @property
    def longest(self) -> int:
        """Tokens of the longest question or passage."""
        return max(self.questions.longest, self.passages.longest)

    @property
    def digest(self) -> str:
        """Hex SHA-256 of tokens and places."""
        found = hashlib.sha256(
            f"{self.questions.digest} {self.passages.digest} {self.hard_negatives}".encode()
        )
        for places in (self.positives, self.negatives, self.negative_counts):
            found.update(places.tobytes())
        return found.hexdigest()


class QuestionPlan(ShuffledPlan):
    """Batches of questions without state, shuffled anew in every pass.

    A question's hard negatives are drawn anew in every pass, without repetition, as a function of
    only (seed, pass, question). A question with too few hard negatives gets passages of other
    questions, so that all batches have the same number of passages.

    Args:
        rows: the questions.
        global_batch_size: questions a step, over all ranks.
        seed: decides the order and the hard negatives.
        language_block: number of consecutive questions of the same language. Each pass leaves out
            the questions of a language after its last full block, different ones in each pass.

    Raises:
        ConfigError: a batch is larger than a pass.
    """

    def __init__(
        self,
        rows: QuestionRows,
        *,
        global_batch_size: int,
        seed: int = 0,
        language_block: int = 1,
    ) -> None:
        self._block = language_block
        # The questions of each language, one language after the other.
        codes = np.unique(np.asarray(rows.questions.languages), return_inverse=True)[1]
        self._by_language = np.argsort(codes, kind="stable")
        self._language_sizes = np.bincount(codes)
        self._last_blocks = np.cumsum(self._language_sizes // language_block)
        count = int(self._last_blocks[-1]) * language_block
        if global_batch_size > count:
            raise ConfigError(
                f"data.questions: a batch has {global_batch_size} questions, but there are only"
                f" {count}; lower data.questions.batch_size or run.global_batch_size"
            )
        super().__init__(count, global_batch_size=global_batch_size, seed=seed, purpose="questions")
        self._language_key = seed_for(seed, "order within languages")
        self._rows = rows
        self._firsts = np.cumsum(rows.negative_counts) - rows.negative_counts
        self._key = seed_for(seed, "hard negatives")

    def batch_at(self, step: int, *, rank: int = 0, world_size: int = 1) -> QuestionBatch:
        """Return a rank's consecutive part of a step's questions."""
        rows, passes = self.rows_at(step, rank=rank, world_size=world_size)
        negatives = self.negatives_at(rows, passes).reshape(-1)
        passages = np.concatenate([self._rows.positives[rows], negatives])
        return QuestionBatch(
            self._rows.questions.read(rows),
            self._rows.passages.read(passages),
            step,
            rank * len(rows),
            self.seed,
        )

    def rows_at(
        self, step: int, *, rank: int = 0, world_size: int = 1
    ) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
        """Return a rank's consecutive part of a step's questions, and the pass of each.

        If a block has more than one question, each pass shuffles the questions of every language,
        cuts them into blocks, and shuffles the blocks of all languages.
        """
        if self._block == 1:
            return super().rows_at(step, rank=rank, world_size=world_size)
        passes, position = self.places_at(step, rank=rank, world_size=world_size)
        number, within = np.divmod(position, self._block)
        blocks = np.full_like(number, self._last_blocks[-1])
        block = permute(number, blocks, keys(self._order_key, passes))
        language = np.searchsorted(self._last_blocks, block, side="right")
        sizes = self._language_sizes[language]
        first_block = self._last_blocks[language] - sizes // self._block
        place = (block - first_block) * self._block + within
        place = permute(place, sizes, keys(self._language_key, passes, language))
        first_row = np.cumsum(self._language_sizes)[language] - sizes
        return self._by_language[first_row + place], passes

    def negatives_at(
        self, rows: Int64[np.ndarray, " n"], passes: Int64[np.ndarray, " n"]
    ) -> Int64[np.ndarray, "n h"]:
        """Return the passages that are the hard negatives of each question in its pass."""
        drawn = np.empty((len(rows), self._rows.hard_negatives), dtype=np.int64)
        counts = self._rows.negative_counts[rows]
        key = keys(self._key, passes, rows)
        for place in range(self._rows.hard_negatives):
            # A question with enough hard negatives of its own takes the one at index ``place`` in
            # the order of this pass; the order is a permutation, so none occurs twice.
            own = counts > place
            nth = permute(np.full(int(own.sum()), place), counts[own], key[own])
            drawn[own, place] = self._rows.negatives[self._firsts[rows[own]] + nth]
            # The others get any passage.
            others = splitmix64(key[~own] + np.uint64(place)) % np.uint64(len(self._rows.passages))
            drawn[~own, place] = self._not_the_answer(others.astype(np.int64), rows[~own])
        return drawn

    def _not_the_answer(
        self, passages: Int64[np.ndarray, " n"], rows: Int64[np.ndarray, " n"]
    ) -> Int64[np.ndarray, " n"]:
        """Replace a question's own answer by the next passage; return all others unchanged."""
        following = (passages + 1) % len(self._rows.passages)
        return np.where(passages == self._rows.positives[rows], following, passages)
