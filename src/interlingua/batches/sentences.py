"""Operations on the sentences of packed batches: join, split, take, find equal meanings.

Sentences with equal tokens are the same sentence. Pairs of translations are the edges of a graph of
sentences, and each connected component of the graph is one meaning.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.errors import DataError
from interlingua.runtime.devices import on_device


def join(*batches: TokenBatch) -> TokenBatch:
    """Concatenate the sentences of all batches, in order, into one batch."""
    return functools.reduce(_joined, batches)


def _joined(a: TokenBatch, b: TokenBatch) -> TokenBatch:
    """Concatenate two batches, with the boundaries of the second shifted behind the first."""
    return TokenBatch(
        torch.cat([a.input_ids, b.input_ids]),
        torch.cat([a.cu_seqlens, b.cu_seqlens[1:] + a.cu_seqlens[-1]]),
        max(a.max_seqlen, b.max_seqlen),
        a.languages + b.languages,
    )


def split_batch(batch: TokenBatch, size: int) -> list[TokenBatch]:
    """Split a batch into parts of ``size`` consecutive sentences; the last may be smaller.

    The parts share the memory of the batch.
    """
    ends = batch.cu_seqlens.tolist()
    parts = []
    for first in range(0, batch.batch_size, size):
        last = min(first + size, batch.batch_size)
        bounds = ends[first : last + 1]
        longest = max(end - start for start, end in pairwise(bounds))
        parts.append(
            TokenBatch(
                batch.input_ids[bounds[0] : bounds[-1]],
                batch.cu_seqlens[first : last + 1] - bounds[0],
                longest,
                batch.languages[first:last],
            )
        )
    return parts


def take(batch: TokenBatch, rows: Sequence[int]) -> TokenBatch:
    """Return the sentences of these rows, in the order of ``rows``."""
    index = torch.tensor(rows, device=batch.cu_seqlens.device)
    lengths = batch.lengths[index]
    bounds = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(batch.cu_seqlens.dtype)
    # The old place of each token: its new place plus the shift of its sentence.
    shifts = torch.repeat_interleave(batch.cu_seqlens[:-1][index] - bounds[:-1], lengths)
    tokens = torch.arange(len(shifts), device=shifts.device) + shifts
    return TokenBatch(
        batch.input_ids[tokens],
        bounds,
        int(lengths.max()),
        tuple(batch.languages[row] for row in rows),
    )


def chained(*boundaries: Int[Tensor, " b+1"]) -> tuple[Int64[Tensor, " t"], Int[Tensor, " b+1"]]:
    """Return the order that joins sequence i of several packed batches to one sequence, for each i.

    The new sequence i is sequence i of the first batch, then sequence i of the second, and so on.

    Args:
        boundaries: ``cu_seqlens`` of each batch; its sequences may be empty.

    Returns:
        ``order`` and ``cu_seqlens``, so that ``torch.cat(batches)[order]`` is the result, packed.
    """
    rows = torch.arange(len(boundaries[0]) - 1, device=boundaries[0].device)
    parts = [torch.repeat_interleave(rows, cu_seqlens.diff()) for cu_seqlens in boundaries]
    # A stable sort by sequence keeps the parts of a sequence, and their tokens, in order.
    order = torch.cat(parts).argsort(stable=True)
    return order, torch.stack(boundaries).sum(dim=0).to(boundaries[0].dtype)


class Tails(NamedTuple):
    """Positions of the tokens of packed sentences, without the first few of each (``<s>``)."""

    kept: Int64[Tensor, " t"]
    """Their index in the batch."""
    cu_seqlens: Int[Tensor, " b+1"]
    """Boundaries of the sentences among them."""
    rows: Int64[Tensor, " t"]
    """Number of the sentence that each belongs to."""
    positions: Int64[Tensor, " t"]
    """Place of each in its whole sentence, from 0."""

    @classmethod
    def of(cls, cu_seqlens: Int[Tensor, " b+1"], skip: int) -> Tails:
        """Leave out the first ``skip`` tokens of each sentence; each has ``skip`` or more."""
        count = len(cu_seqlens) - 1
        sentences = torch.arange(count, device=cu_seqlens.device)
        rows = torch.repeat_interleave(sentences, cu_seqlens.diff())
        positions = torch.arange(len(rows), device=rows.device) - cu_seqlens[:-1].long()[rows]
        kept = (positions >= skip).nonzero()[:, 0]
        # Boundary i is after i sentences, each of which has lost ``skip`` tokens.
        before = torch.arange(count + 1, device=cu_seqlens.device, dtype=cu_seqlens.dtype)
        return cls(kept, cu_seqlens - skip * before, rows[kept], positions[kept])


def by_pivot(batch: ParallelBatch, pivot: str) -> tuple[TokenBatch, TokenBatch]:
    """Return the pairs of a batch as two sides: the other language's and the pivot's.

    If both sides are in the pivot language, the stored target counts as the pivot.

    Raises:
        DataError: a pair has no side in the pivot language.
    """
    a = batch.a
    b = batch.b
    if all(code == pivot for code in b.languages):
        return a, b  # the usual order of a corpus, at no cost
    wrong = [
        row
        for row, pair in enumerate(zip(a.languages, b.languages, strict=True))
        if pivot not in pair
    ]
    if wrong:
        pair = f"{a.languages[wrong[0]]}-{b.languages[wrong[0]]}"
        raise DataError(
            f"the pair {pair} has no side in the pivot language {pivot}; set the method's pivot,"
            " or prepare the corpus without such pairs"
        )
    # In the joined batch row i of ``b`` is at i + B. Where the ``b`` side is not in the pivot
    # language, it is the side of the other language.
    size = a.batch_size
    others = [row if code == pivot else row + size for row, code in enumerate(b.languages)]
    pivots = [(row + size) % (2 * size) for row in others]
    both = join(a, b)
    return take(both, others), take(both, pivots)


def sentence_keys(batch: TokenBatch) -> Int64[Tensor, " b"]:
    """Return a 64-bit number for each sentence that depends only on its tokens and their order.

    Equal sentences have equal keys. Each (token, position) is scrambled as in SplitMix64 and the
    results are added up.
    """
    # The constants are SplitMix64's, as signed integers. Unlike in the original, the shifts copy
    # the sign bit; this does no harm, as keys only have to be the same everywhere.
    tokens = (batch.input_ids + 1) * -7046029254386353131
    z = tokens + (batch.positions() + 1) * -4658895280553007687
    z = (z ^ (z >> 30)) * -4658895280553007687
    z = (z ^ (z >> 27)) * -7723592293110705685
    return z.new_zeros(batch.batch_size).index_add(0, batch.sequence_ids(), z ^ (z >> 31))


def language_codes(batch: TokenBatch) -> Int64[Tensor, " b"]:
    """Return a number for the language of each sentence, the same in every process."""
    # not Python's own hash, which differs from process to process
    codes = [zlib.crc32(language.encode()) for language in batch.languages]
    return torch.tensor(codes, device=batch.input_ids.device)


def first_occurrences(batch: TokenBatch) -> Int64[Tensor, " n"]:
    """Return the row of the first occurrence of each distinct sentence, in order."""
    _, sentence = torch.unique(sentence_keys(batch), return_inverse=True)
    rows = torch.arange(batch.batch_size, device=sentence.device)
    # the lowest row of each distinct sentence; the batch has at most ``batch_size`` distinct ones
    beyond = rows.new_full((batch.batch_size,), batch.batch_size)
    first = beyond.scatter_reduce(0, sentence, rows, "amin")
    return rows[first[sentence] == rows]


class Meanings(NamedTuple):
    """Pairs of translations, grouped by meaning.

    Pairs that share a sentence on either side have the same meaning, also indirectly through other
    pairs. With "Hallo" = "Hello", "Salut" = "Hello" and "Salut" = "Hi", all three pairs have the
    same meaning, so a contrastive loss must not use "Hallo" and "Hi" as negatives of one another.
    """

    keys: Int64[Tensor, "b 2"]
    """Keys of the sentences of each pair."""
    groups: Int64[Tensor, " b"]
    """A number for the meaning of each pair."""

    @classmethod
    def of(cls, a: TokenBatch, b: TokenBatch) -> Meanings:
        """Group the pairs of two sides by meaning."""
        keys = torch.stack([sentence_keys(a), sentence_keys(b)], dim=1)
        return cls(keys, meaning_groups(keys))

    def gathered(self, gather: Callable[[Tensor], Tensor]) -> Meanings:
        """Group the pairs of all processes by meaning; the processes wait for one another here.

        Args:
            gather: concatenates over the processes.
        """
        keys = gather(self.keys)
        # A single process has already compared its pairs.
        if len(keys) == len(self.keys):
            return self
        return Meanings(keys, meaning_groups(keys))

    def are_same(self, device: torch.device) -> Bool[Tensor, "b b"]:
        """Return which pairs have the same meaning, on a device; true on the diagonal."""
        groups = on_device(self.groups, device)
        return groups[:, None] == groups


def meaning_groups(keys: Int64[Tensor, "b 2"]) -> Int64[Tensor, " b"]:
    """Compute ``Meanings.groups``, one number per pair, from the keys of the pairs' sentences."""
    # (B, 2): pairs are edges between distinct sentences
    _, sentence = torch.unique(keys, return_inverse=True)
    group = torch.arange(int(sentence.max()) + 1, device=keys.device)
    # Each sentence takes the lowest group of its pairs, until no group changes. This needs at most
    # as many rounds as the longest chain of pairs has links.
    while True:
        least = group[sentence].amin(dim=1, keepdim=True).expand_as(sentence)
        smaller = group.scatter_reduce(0, sentence.flatten(), least.flatten(), "amin")
        if torch.equal(smaller, group):
            return group[sentence[:, 0]]
        group = smaller
