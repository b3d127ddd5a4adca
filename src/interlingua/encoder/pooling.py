"""Pooling of the hidden states of tokens to one vector per sentence, without padding."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Int64, Shaped
from torch import Tensor

from interlingua.runtime.devices import on_device

PoolingMode = Literal["cls", "mean", "max"]
POOLING_MODES: tuple[PoolingMode, ...] = ("cls", "mean", "max")
SEVERAL_THREADS = 1 << 15
"""If there are fewer numbers than this, one thread adds them up. ``index_add`` uses several threads
even for one row, and for a while these occupy cores that the encoding of the next query needs."""


class HiddenStates(NamedTuple):
    """Last-layer states of a batch's tokens, packed in the batch's order.

    A sentence without tokens pools to zeros.

    The states may be on a device; the other fields should stay on the host, see ``devices.py``.
    """

    states: Float[Tensor, "t d"]
    cu_seqlens: Int[Tensor, " b+1"]
    special: Bool[Tensor, " t"] | None = None
    """Tokens that the tokenizer put around the text (``<s>``, ``[SEP]``); None = unknown, no token
    is treated as special."""

    def cls(self) -> Float[Tensor, "b d"]:
        """Return the state of each sentence's first token."""
        if not len(self.states):
            return self._zeros()
        # Empty sentences at the end start after the last token; their result is set to zeros.
        first = self._bounds()[:-1].clamp(max=len(self.states) - 1)
        return self._blank_empty(self._wide()[first])

    def mean(self, *, include_special: bool = True) -> Float[Tensor, "b d"]:
        """Return the mean state of each sentence's tokens, summed in float32."""
        kept = self._kept(include_special=include_special)
        # The mean of a sentence without tokens is 0 / 1.
        return kept._sums() / kept.lengths().clamp(min=1)[:, None]

    def max(self, *, include_special: bool = True) -> Float[Tensor, "b d"]:
        """Return the largest state of each sentence's tokens, per dimension."""
        kept = self._kept(include_special=include_special)
        if not len(kept.states):
            return kept._zeros()
        rows = kept.sentence_of_token()[:, None].expand_as(kept.states)
        # Without `include_self` the zeros count only if a sentence has no token.
        return kept._zeros().scatter_reduce(
            0, rows, kept._wide(), reduce="amax", include_self=False
        )

    def pool(self, mode: PoolingMode, *, include_special: bool = True) -> Float[Tensor, "b d"]:
        """Pool by the method named ``mode``."""
        if mode == "cls":
            return self.cls()
        by_name = {"mean": self.mean, "max": self.max}
        return by_name[mode](include_special=include_special)

    def _sums(self) -> Float[Tensor, "b d"]:
        """Sum the states of each sentence, in the order of its tokens."""
        states = self._wide()
        if states.device.type == "cpu" and states.numel() < SEVERAL_THREADS:
            return torch.segment_reduce(states, "sum", offsets=self._bounds(), axis=0, unsafe=True)
        return self._zeros().index_add(0, self.sentence_of_token(), states)

    def lengths(self) -> Int[Tensor, " b"]:
        """Return the number of tokens of each sentence."""
        return self._bounds().diff()

    def sentence_of_token(self) -> Int[Tensor, " t"]:
        """Return, for each token, the index of its sentence."""
        lengths = self.lengths()
        sentences = torch.arange(len(lengths), device=lengths.device)
        # If the result's size is passed, torch need not wait for the device to sum the lengths.
        return torch.repeat_interleave(sentences, lengths, output_size=len(self.states))

    def without_special(self) -> HiddenStates:
        """Return the same sentences without the tokenizer's own tokens."""
        if self.special is None:
            return self
        kept = ~self.special
        # Number of kept tokens before each token; at a boundary, this is its new position.
        counts = torch.cat([kept.new_zeros(1, dtype=torch.long), kept.long().cumsum(0)])
        rows = self._here(kept.nonzero()[:, 0])
        return HiddenStates(self.states[rows], counts[self.cu_seqlens.long()])

    def _kept(self, *, include_special: bool) -> HiddenStates:
        """Return the tokens that are pooled."""
        if include_special:
            return self
        return self.without_special()

    def _here(self, index: Shaped[Tensor, " *n"]) -> Shaped[Tensor, " *n"]:
        """Return an index on the device of the states."""
        return on_device(index, self.states.device)

    def _bounds(self) -> Int64[Tensor, " b+1"]:
        """Return the boundaries on the device of the states."""
        return self._here(self.cu_seqlens).long()

    def _wide(self) -> Float[Tensor, "t d"]:
        """Return the states in float32 or wider: sums over a long sentence need its precision."""
        if self.states.dtype == torch.float64:
            return self.states
        return self.states.float()

    def _zeros(self) -> Float[Tensor, "b d"]:
        return self._wide().new_zeros(len(self.cu_seqlens) - 1, self.states.shape[1])

    def _blank_empty(self, vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        return vectors * (self.lengths() > 0)[:, None]
