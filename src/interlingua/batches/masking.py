"""Masked inputs, drawn anew at every step as a pure function of (seed, step, side, row, position).

Each draw is a hash of its place, not the next number of a stream. So a rank that holds rows 64-127
of the global batch draws the same numbers for them as a single process would, on any device. The
hash is that of SplitMix64, computed in torch's signed 64-bit integers, so that masks can be drawn
on the device of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from interlingua.batches.tokens import BatchPosition, TokenBatch
from interlingua.errors import ConfigError
from interlingua.runtime.seeds import seed_for

IGNORED = -100
"""Label of positions that every loss ignores (PyTorch's ``ignore_index``)."""
BITS = 31
"""Bits of a draw: its product with a number of up to 32 bits is still below 2^63."""
POSITION_BITS = 24
"""Bits of a place that hold the position in the sentence; the higher bits hold the row."""
MAX_DRAWS = 100
"""Maximum number of attempts to draw for a batch until at least one of its tokens is chosen."""


class MaskedTokens(NamedTuple):
    """A batch with some tokens hidden."""

    batch: TokenBatch
    """The batch with the hidden tokens replaced."""
    labels: Int64[Tensor, " t"]
    """The tokens at the hidden positions; ``IGNORED`` elsewhere."""


class LabeledTokens(NamedTuple):
    """The tokens that a loss predicts."""

    at: Int64[Tensor, " n"]
    """Their positions among all tokens."""
    ids: Int64[Tensor, " n"]
    """Their ids."""

    @classmethod
    def of(cls, labels: Int64[Tensor, " t"]) -> LabeledTokens:
        """Return the tokens whose label is not ``IGNORED``; this is fastest on the host."""
        at = (labels != IGNORED).nonzero()[:, 0]
        return cls(at, labels[at])


def mlm_mask(
    batch: TokenBatch,
    place: BatchPosition,
    *,
    ratio: float,
    mask_id: int,
    vocab_size: int,
    special_ids: Sequence[int],
    replace: Literal["80-10-10", "always"] = "80-10-10",
    random_specials: bool = True,
) -> MaskedTokens:
    """Mask tokens for masked language modeling, as in MEXMA (Janeiro et al. 2024) and its code.

    Each token that is not special is chosen with probability ``ratio``; if no token of the whole
    batch is chosen, all are drawn again. Of the chosen tokens 80 % become the mask, 10 % become a
    uniformly drawn id, and 10 % stay.

    This differs from the released code in one point: here the two sides of a pair are masked
    independently, there they share one random stream.

    Args:
        batch: the packed sentences.
        place: position that the draws depend on.
        ratio: share of tokens to choose, in (0, 1].
        mask_id: the mask token.
        vocab_size: random ids are below it.
        special_ids: tokens that are never chosen.
        replace: ``"always"`` puts the mask at every chosen position.
        random_specials: whether random ids may be special ones, as in the released code.

    Raises:
        ConfigError: ``ratio`` is not in (0, 1].
    """
    if not 0 < ratio <= 1:
        raise ConfigError(f"mask ratio: expected a number above 0 and at most 1, found {ratio}")
    ids = batch.input_ids
    special = _as_tensor(special_ids, batch.input_ids)
    maskable = ~torch.isin(ids, special)
    chosen = _choose(batch, place, maskable, ratio)
    # A draw below 80 % of the range makes the token the mask, a draw from 80 % to 90 % makes it a
    # random id. With "always" all draws are 0.
    kind = torch.zeros_like(ids)
    if replace == "80-10-10":
        kind = _draws(batch, place, "kind")
    replaced = torch.where(chosen & (kind < int(0.8 * 2**BITS)), mask_id, ids)
    at_random = chosen & (kind >= int(0.8 * 2**BITS)) & (kind < int(0.9 * 2**BITS))
    # A draw in [0, 2^31), multiplied by n and divided by 2^31, is an index in [0, n).
    draws = _draws(batch, place, "id")
    if random_specials:
        random_ids = (draws * vocab_size) >> BITS
    else:
        allowed = torch.arange(vocab_size, device=ids.device)
        allowed = allowed[~torch.isin(allowed, special)]
        random_ids = allowed[(draws * len(allowed)) >> BITS]
    replaced = torch.where(at_random, random_ids, replaced)
    return MaskedTokens(batch._replace(input_ids=replaced), torch.where(chosen, ids, IGNORED))


def one_token_mask(
    batch: TokenBatch,
    place: BatchPosition,
    *,
    mask_id: int,
    special_ids: Sequence[int] = (),
    where: Bool[Tensor, " b"] | None = None,
) -> tuple[TokenBatch, Int64[Tensor, " b"]]:
    """Hide one token of each sentence: the unified generative task of EMS's authors.

    All positions are equally likely.

    Args:
        batch: the packed sentences.
        place: position that the draws depend on.
        mask_id: the mask token.
        special_ids: tokens that are hidden only if a sentence has no others.
        where: hide in these sentences only; default: in all.

    Returns:
        the masked batch, and for each sentence the token at the place drawn.
    """
    ids = batch.input_ids
    rows = batch.sequence_ids()
    special = torch.isin(ids, _as_tensor(special_ids, ids))
    # A sentence hides the token with its smallest draw. The low bits hold the position, which
    # breaks ties and is read back from them. Bit 60, above the draw, sorts special tokens last.
    last = special.long() << 60
    draws = last | (_draws(batch, place, "token") << POSITION_BITS) | batch.positions()
    largest = draws.new_full((batch.batch_size,), torch.iinfo(torch.int64).max)
    smallest = largest.scatter_reduce(0, rows, draws, "amin")
    hidden_at = batch.cu_seqlens[:-1] + (smallest & (2**POSITION_BITS - 1))
    hidden = ids[hidden_at]
    masked = torch.full_like(hidden, mask_id)
    if where is not None:
        masked = torch.where(where, masked, hidden)
    replaced = ids.scatter(0, hidden_at, masked)
    return batch._replace(input_ids=replaced), hidden


def coin_flips(batch: TokenBatch, place: BatchPosition) -> Bool[Tensor, " b"]:
    """Draw one fair coin per sentence, for example to choose which side of each pair is masked."""
    # true if the draw of the sentence's first token is in the lower half of the range
    first = batch.cu_seqlens[:-1].long()
    return _draws(batch, place, "coin")[first].lt(2 ** (BITS - 1))


def random_context(
    place: BatchPosition, rows: Int64[Tensor, " n"], length: int, *, hidden: float
) -> Bool[Tensor, "n length length"]:
    """Draw, for each token of sentences of one length, the tokens that are visible to it.

    Each is hidden with probability ``hidden``.

    Args:
        place: position that the draws depend on.
        rows: of the sentences in their batch.
        length: of these sentences.
        hidden: probability that a token is hidden from another one.
    """
    positions = torch.arange(length, device=rows.device)
    token = _mix(((rows + place.first_row) << POSITION_BITS)[:, None] | positions)  # (n, length)
    key = seed_for(place.seed, "mask", "context", place.side, place.step)
    # a draw for each token that sees and each token that is seen: (n, length, length)
    draws = torch.bitwise_and(_mix(token[:, :, None] ^ _mix(positions) ^ key), 2**BITS - 1)
    return draws >= int(hidden * 2**BITS)


def _choose(
    batch: TokenBatch, place: BatchPosition, maskable: Bool[Tensor, " t"], ratio: float
) -> Bool[Tensor, " t"]:
    """Choose tokens to mask, at least one if the batch has any token that may be masked.

    Each attempt has its own draws, so the result depends only on the position of the batch.
    """
    chosen = torch.zeros_like(maskable)
    if not bool(maskable.any()):
        return chosen
    for attempt in range(MAX_DRAWS):
        chosen = maskable & (_draws(batch, place, f"chosen {attempt}") < int(ratio * 2**BITS))
        if bool(chosen.any()):
            break
    return chosen


def _draws(batch: TokenBatch, place: BatchPosition, purpose: str) -> Int64[Tensor, " t"]:
    """Draw one integer in [0, 2^31) per token."""
    key = seed_for(place.seed, "mask", purpose, place.side, place.step)
    places = ((batch.sequence_ids() + place.first_row) << POSITION_BITS) | batch.positions()
    return torch.bitwise_and(_mix(_mix(places) ^ key), 2**BITS - 1)


def _as_tensor(ids: Sequence[int], like: Tensor) -> Int64[Tensor, " n"]:
    return torch.tensor(sorted(ids), dtype=torch.int64, device=like.device)


def _mix(values: Int64[Tensor, " t"]) -> Int64[Tensor, " t"]:
    """Apply the finalizer of SplitMix64 in two's complement, where products wrap."""
    values = values + _signed(0x9E3779B97F4A7C15)
    values = (values ^ _shift_right(values, 30)) * _signed(0xBF58476D1CE4E5B9)
    values = (values ^ _shift_right(values, 27)) * _signed(0x94D049BB133111EB)
    return values ^ _shift_right(values, 31)


def _shift_right(values: Int64[Tensor, " t"], bits: int) -> Int64[Tensor, " t"]:
    """Shift logically: torch's own shift copies the sign into the vacated bits."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """Return the signed integer with the same 64 bits; it is negative for values from 2^63 on."""
    return value - (1 << 64)
