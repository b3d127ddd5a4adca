"""Token sequences in memory, and an endless order of rows, for sets that need no disk.

Sets of labeled pairs, of questions and of sentences without translations are small compared with
parallel text. Like the batches of ``language_mixture``, their batches are pure functions of (seed,
step); each pass has one permutation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Int64

from interlingua.batches.feeds import LabeledBatch, SentenceBatch
from interlingua.batches.permutation import keys, permute
from interlingua.batches.tokens import TokenBatch
from interlingua.errors import ConfigError, DataError
from interlingua.runtime.seeds import seed_for


class TokenColumn:
    """Sequences concatenated in one array, 4 bytes per token.

    Args:
        sequences: token ids of each row, none empty.
        languages: one code a row.

    Raises:
        DataError: there is no sequence, or one is empty.
    """

    def __init__(
        self, sequences: Sequence[Sequence[int] | np.ndarray], languages: Sequence[str]
    ) -> None:
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        if not len(lengths) or not lengths.all():
            raise DataError(
                "there is no sentence, or an empty one; add sentences, or remove empty ones"
            )
        # ids are held as int32 to save memory; batches have int64
        self._ids = np.concatenate([np.asarray(ids, dtype=np.int32) for ids in sequences])
        self._ends = np.cumsum(lengths)
        self._lengths = lengths
        self.languages = tuple(languages)

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return int(self._lengths.max())

    def read(self, rows: Int64[np.ndarray, " n"]) -> TokenBatch:
        """Return the rows, in the order of ``rows``, packed."""
        lengths = self._lengths[rows]
        starts = self._ends[rows] - lengths
        # Token t of a row goes from its start plus t to the row's new start plus t.
        new_starts = np.cumsum(lengths) - lengths
        index = np.repeat(starts - new_starts, lengths) + np.arange(lengths.sum())
        return TokenBatch.from_flat(
            self._ids[index].astype(np.int64), lengths, [self.languages[row] for row in rows]
        )

    @property
    def digest(self) -> str:
        """Hex SHA-256 of ids and lengths."""
        return hashlib.sha256(self._ids.tobytes() + self._lengths.tobytes()).hexdigest()


class ShuffledPlan:
    """Rows of each step from an endless sequence of passes, each with its own permutation.

    A pure function of (seed, step), see ``feeds.Plan``; subclasses define the content of a batch.

    Args:
        count: rows of a pass.
        global_batch_size: rows of a step, over all ranks.
        seed: decides the order.
        purpose: name of the feed, which makes its order independent of others of the same seed.

    Raises:
        ConfigError: a number is below 1.
    """

    def __init__(self, count: int, *, global_batch_size: int, seed: int, purpose: str) -> None:
        if global_batch_size < 1 or count < 1:
            raise ConfigError(
                f"{purpose}: {count} rows in batches of {global_batch_size}; expected both"
                " numbers to be at least 1"
            )
        self.epoch_size = count
        self.global_batch_size = global_batch_size
        self.seed = seed
        self._purpose = purpose
        self._order_key = seed_for(seed, "row order", purpose)

    def seen(self, step: int) -> dict[str, int]:
        """Return the number of rows in the steps before ``step``, under the name of the feed."""
        return {self._purpose: step * self.global_batch_size}

    def rows_at(
        self, step: int, *, rank: int = 0, world_size: int = 1
    ) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
        """Return a rank's consecutive part of a step's rows, and the pass of each.

        Raises:
            ConfigError: the batch can't be shared out evenly.
        """
        passes, position = self.places_at(step, rank=rank, world_size=world_size)
        sizes = np.full_like(position, self.epoch_size)
        return permute(position, sizes, keys(self._order_key, passes)), passes

    def places_at(
        self, step: int, *, rank: int = 0, world_size: int = 1
    ) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
        """Return the pass of each row in a rank's part of a step, and its place in the pass.

        Raises:
            ConfigError: the batch can't be shared out evenly.
        """
        if self.global_batch_size % world_size:
            raise ConfigError(
                f"a batch of {self.global_batch_size} cannot be divided evenly among"
                f" {world_size} ranks or micro-batches; use a multiple of {world_size}"
            )
        # Consecutive places, so that all ranks together read the rows that one process would.
        size = self.global_batch_size // world_size
        places = step * self.global_batch_size + rank * size + np.arange(size, dtype=np.int64)
        # A batch may contain the end of one pass and the start of the next, so the pass is computed
        # for each row.
        return np.divmod(places, self.epoch_size)


@dataclass(frozen=True, slots=True)
class LabeledRows:
    """Labeled pairs, tokenized."""

    a: TokenColumn
    b: TokenColumn
    labels: Float32[np.ndarray, " n"]
    """Class or score of each pair."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def longest(self) -> int:
        """Tokens of the longest sentence."""
        return max(self.a.longest, self.b.longest)

    @property
    def digest(self) -> str:
        """Hex SHA-256 of tokens and labels."""
        sides = f"{self.a.digest} {self.b.digest}"
        return hashlib.sha256(sides.encode() + self.labels.tobytes()).hexdigest()


class LabeledPlan(ShuffledPlan):
    """Batches of labeled pairs, shuffled anew in every pass.

    Args:
        rows: the pairs.
        global_batch_size: pairs a step, over all ranks.
        seed: decides the order.
    """

    def __init__(self, rows: LabeledRows, *, global_batch_size: int, seed: int = 0) -> None:
        super().__init__(
            len(rows), global_batch_size=global_batch_size, seed=seed, purpose="labeled"
        )
        self._rows = rows

    def batch_at(self, step: int, *, rank: int = 0, world_size: int = 1) -> LabeledBatch:
        """Return a rank's consecutive part of a step's pairs."""
        rows, _ = self.rows_at(step, rank=rank, world_size=world_size)
        labels = torch.from_numpy(self._rows.labels[rows])
        return LabeledBatch(
            self._rows.a.read(rows),
            self._rows.b.read(rows),
            labels,
            step,
            rank * len(rows),
            self.seed,
        )


class SentencePlan(ShuffledPlan):
    """Batches of sentences without translations, of all languages together.

    Shuffled anew in every pass.

    Args:
        sentences: the texts' tokens.
        global_batch_size: sentences a step, over all ranks.
        seed: decides the order.
    """

    def __init__(self, sentences: TokenColumn, *, global_batch_size: int, seed: int = 0) -> None:
        super().__init__(
            len(sentences), global_batch_size=global_batch_size, seed=seed, purpose="monolingual"
        )
        self._sentences = sentences

    def batch_at(self, step: int, *, rank: int = 0, world_size: int = 1) -> SentenceBatch:
        """Return a rank's consecutive part of a step's sentences."""
        rows, _ = self.rows_at(step, rank=rank, world_size=world_size)
        return SentenceBatch(self._sentences.read(rows), step, rank * len(rows), self.seed)
