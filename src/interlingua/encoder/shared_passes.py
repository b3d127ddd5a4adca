"""Passes over an encoder that several terms of a loss share.

A sum of methods over one encoder often reads the same sentences more than once: one method
contrasts them, another predicts their words, a third compares them with a teacher. Here later terms
reuse the token states that an earlier term has computed. Sentences are compared by their token ids,
so it does not matter how a method joins its batches, and a masked sentence is a different sentence.

Two rules keep the loss unchanged. A term never reuses states that it has computed itself, since it
may depend on two passes with different dropout (SimCSE). And each stored sentence is used at most
once per term, so that repeated sentences stay different rows. Without dropout the gradients are
those of separate passes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from interlingua.batches.sentences import take
from interlingua.batches.tokens import TokenBatch
from interlingua.runtime.devices import on_device

Key = tuple[bool, tuple[int, ...]]
"""Key of a pass: whether gradients are recorded, and a sentence's token ids."""


class _Stored(NamedTuple):
    """Position of a sentence's states."""

    states: Float[Tensor, "t d"]
    first: int


class SharesPasses(Protocol):
    """An encoder that takes its token states from ``shared_passes`` while that is set."""

    shared_passes: SharedPasses | None


class SharedPasses:
    """Token states of one micro-batch; a new object is made for each."""

    def __init__(self) -> None:
        self._stored: dict[Key, list[_Stored]] = defaultdict(list)
        self._left: dict[Key, list[_Stored]] = {}
        self._own: list[tuple[Key, _Stored]] = []
        self.encoded_sentences = 0
        self.reused_sentences = 0

    @contextmanager
    def for_term(self, encoder: SharesPasses) -> Iterator[None]:
        """Let the encoder reuse states of earlier terms and store its own until the block ends."""
        self.begin_term()
        encoder.shared_passes = self
        try:
            yield
        finally:
            encoder.shared_passes = None

    def begin_term(self) -> None:
        """Allow the use of the states that earlier terms have computed."""
        for key, stored in self._own:
            self._stored[key].append(stored)
        self._own = []
        self._left = {key: list(stored) for key, stored in self._stored.items()}

    def states(
        self, batch: TokenBatch, encode: Callable[[TokenBatch], Tensor]
    ) -> Float[Tensor, "t d"]:
        """Return the states of all tokens, in order.

        Args:
            batch: sentences; an earlier term may have read some of them.
            encode: computes the states of the tokens of sentences; called with the sentences for
                which no stored states are left.
        """
        lengths = batch.lengths.tolist()
        sentences = torch.split(batch.input_ids, lengths)
        keys = [(torch.is_grad_enabled(), tuple(ids.tolist())) for ids in sentences]
        found = [self._take_stored(key) for key in keys]
        new = [row for row, stored in enumerate(found) if stored is None]
        self.encoded_sentences += len(new)
        self.reused_sentences += len(found) - len(new)
        if new:
            all_new = len(new) == len(found)
            states = encode(batch if all_new else take(batch, new))
            first = 0
            for row in new:
                found[row] = _Stored(states, first)
                # For the terms after this one: `begin_term` makes them available.
                self._own.append((keys[row], _Stored(states, first)))
                first += lengths[row]
            # Returned as they are: a gather would copy all states in the most common case.
            if all_new:
                return states
        return _gathered([stored for stored in found if stored is not None], lengths)

    def _take_stored(self, key: Key) -> _Stored | None:
        """Take a sentence that an earlier term has computed; this term can take it only once."""
        stored = self._left.get(key)
        if not stored:
            return None
        return stored.pop(0)


def _gathered(stored: list[_Stored], lengths: list[int]) -> Float[Tensor, "t d"]:
    """Gather rows of several tensors by one selection.

    With one slice per sentence, the backward pass would make a gradient of the size of the whole
    tensor for each sentence.
    """
    # Each tensor once, and its offset when they are concatenated.
    sources = list({id(one.states): one.states for one in stored}.values())
    starts: dict[int, int] = {}
    total = 0
    for source in sources:
        starts[id(source)] = total
        total += len(source)
    begins = torch.tensor([starts[id(one.states)] + one.first for one in stored])
    counts = torch.tensor(lengths)
    # Token j of the result, in a sentence with `before` tokens in front of it, is row
    # `begin + j - before` of the concatenated tensors.
    before = torch.cumsum(counts, dim=0) - counts
    index = torch.repeat_interleave(begins - before, counts) + torch.arange(int(counts.sum()))
    return torch.cat(sources)[on_device(index, sources[0].device)]
