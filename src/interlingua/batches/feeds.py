"""Feeds of a step besides translations: labeled pairs, questions, single sentences.

A method names its feeds (``Objective.feeds``). It is called with the batch of its feed, or, if it
has several feeds, with a dict of batches by feed. This module counts the rows of all kinds of
batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol, get_args

from jaxtyping import Float32
from torch import Tensor

from interlingua.batches.tokens import BatchPosition, TokenBatch

FeedName = Literal["parallel", "labeled", "questions", "monolingual"]
FEEDS: tuple[FeedName, ...] = get_args(FeedName)


class LabeledBatch(NamedTuple):
    """Pairs of sentences with a class (natural language inference) or a score (similarity) each."""

    a: TokenBatch
    b: TokenBatch
    labels: Float32[Tensor, " b"]
    """Index of the class, or score in [0, 1]."""
    step: int
    first_row: int = 0
    seed: int = 0

    def place(self, side: str) -> BatchPosition:
        """Return the position that random draws on side ``"a"`` or ``"b"`` depend on."""
        return BatchPosition(self.seed, self.step, side, self.first_row)


class QuestionBatch(NamedTuple):
    """Questions and the passages that answer them."""

    questions: TokenBatch
    passages: TokenBatch
    """Passage i answers question i; after the answers come the hard negatives, if any."""
    step: int
    first_row: int = 0
    seed: int = 0


class SentenceBatch(NamedTuple):
    """Sentences without a translation."""

    sentences: TokenBatch
    step: int
    first_row: int = 0
    seed: int = 0

    def place(self) -> BatchPosition:
        """Return the position that random draws on the sentences depend on."""
        return BatchPosition(self.seed, self.step, "a", self.first_row)


class PreparedBatch(NamedTuple):
    """A batch, and the data that its method has prepared ahead of the step."""

    batch: Any
    """Batch of the only feed, or a dict of the feeds' batches."""
    inputs: Any
    """The result of ``Objective.prepare``."""


class Plan(Protocol):
    """Batches of one feed, each a pure function of (seed, step)."""

    global_batch_size: int
    """Rows of a step, over all ranks."""

    @property
    def epoch_size(self) -> int:
        """Rows of one pass."""
        ...

    def batch_at(self, step: int, *, rank: int = 0, world_size: int = 1) -> Any:
        """Return a rank's consecutive part of a step's rows."""
        ...

    def seen(self, step: int) -> dict[str, int]:
        """Return the number of rows in the steps before ``step``, by name.

        The name is that of a language pair, for example.
        """
        ...


def token_batches(batch: Any) -> Iterator[TokenBatch]:
    """Yield all token batches inside a batch of any kind, in order."""
    # A token batch is a tuple itself, so this check comes before that for tuples.
    if isinstance(batch, TokenBatch):
        yield batch
    elif isinstance(batch, PreparedBatch):
        yield from token_batches(batch.batch)
    elif isinstance(batch, Mapping):
        yield from token_batches(tuple(batch.values()))
    elif isinstance(batch, tuple | list):
        for part in batch:
            yield from token_batches(part)


def rows(batch: Any) -> int:
    """Return the number of rows of a batch, summed over its feeds."""
    if isinstance(batch, PreparedBatch):
        return rows(batch.batch)
    if isinstance(batch, Mapping):
        return sum(rows(part) for part in batch.values())
    # the first token batch has one sequence a row: a pair's first side, or the question
    return next(token_batches(batch)).batch_size


def pinned(batch: Any) -> Any:
    """Return a batch of any kind with all its tensors in page-locked memory."""
    if isinstance(batch, Tensor):
        return batch.pin_memory()
    if isinstance(batch, TokenBatch):
        return batch.pinned()
    if isinstance(batch, Mapping):
        return {key: pinned(part) for key, part in batch.items()}
    if isinstance(batch, tuple | list):
        parts = [pinned(part) for part in batch]
        # The class of a named tuple takes its fields as arguments; list and tuple take one list.
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
