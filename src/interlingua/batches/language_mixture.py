"""The pairs of each step: a mixture of language pairs that depends only on (seed, step).

No sampler holds a state and no order is stored. Place n of the endless sequence of pairs is
computed from n: a permutation of the epoch's slots yields the language pair of the slot and how
often that pair came before, and a permutation of the pair's rows says which row that is. So a
resumed run needs nothing but its step, and any rank can make its own part of any step. torch's
samplers, and packages of data loaders, keep a state that a checkpoint has to save for each rank and
worker.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int64

from interlingua.batches.permutation import keys, permute
from interlingua.batches.token_store import LanguagePair, TokenStore
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config.languages import resolve_language
from interlingua.corpus.samples.sampling import Caps, temperature_weights
from interlingua.errors import ConfigError, DataError
from interlingua.runtime.seeds import seed_for

CHUNK_SLOTS = 1 << 20
"""Slots that are counted at once."""


class ParallelPlan:
    """Batches of translation pairs, without state: ``batch_at(step)`` needs no step before it.

    An epoch has as many slots as the store has rows. Language pair l owns m_l = round(M p_l) of the
    M slots, p_l from temperature sampling, so its exposure is exact; a keyed permutation puts the
    slots in order. The n-th slot that l ever had reads its row number n mod rows_l under a separate
    permutation for each pass over its rows. So within a pass no row comes twice, and within an
    epoch every language pair gets its share, whatever its size.

    Args:
        store: tokenized pairs.
        global_batch_size: pairs a step, over all ranks.
        seed: decides the order.
        temperature: language pairs are drawn with weight rows^(1/temperature); 1 is proportional.
        caps: limits of the rows of a language pair.
        max_tokens: longer sides are cut to this many tokens, closing special tokens kept.
        language_pairs: names of those to draw from, see ``named_pair``; default: all. Missing ones
            don't count.
        max_pairs: rows of each language pair that are ever read, drawn by the seed; more of them
            hold those of fewer.

    Raises:
        ConfigError: a number is out of range, or the store has none of the language pairs.
        DataError: the store has no rows.
    """

    def __init__(
        self,
        store: TokenStore,
        *,
        global_batch_size: int,
        seed: int = 0,
        temperature: float = 1.0,
        caps: Caps | None = None,
        max_tokens: int | None = None,
        language_pairs: Sequence[str] = (),
        max_pairs: int | None = None,
    ) -> None:
        limits = [limit for limit in (max_tokens, max_pairs) if limit is not None]
        if min(global_batch_size, *limits, 1) < 1:
            raise ConfigError(
                f"global_batch_size {global_batch_size}, max_tokens {max_tokens}, max_pairs"
                f" {max_pairs}: expected numbers of at least 1"
            )
        if len(store) == 0:
            raise DataError(
                "the token store has no rows; prepare a corpus with text", path=store.path
            )
        self.store = store
        self.global_batch_size = global_batch_size
        self.seed = seed
        self.max_tokens = max_tokens
        # Rows of each language pair: those of the store, and those that are ever read.
        self._stored_rows = np.asarray(store.counts, dtype=np.int64)
        self._rows = np.where(selected(store, language_pairs), self._stored_rows, 0)
        if max_pairs is not None:
            self._rows = np.minimum(self._rows, max_pairs)
        counts = dict(zip(store.language_pairs, self._rows.tolist(), strict=True))
        weights = temperature_weights(counts, temperature, caps)
        # m_l: language pair l owns the slots from ends[l] - slots[l] to ends[l], before they are
        # put in order.
        in_store_order = np.asarray([weights[pair] for pair in store.language_pairs])
        self._slots = apportion(in_store_order, int(self._rows.sum()))
        self._ends = np.cumsum(self._slots)
        # Keys of permutations that know nothing of one another.
        self._slot_key = seed_for(seed, "slot order")
        self._row_key = seed_for(seed, "row order")
        self._subset_key = seed_for(seed, "subset")
        self._languages = np.asarray(store.language_pairs, dtype=object)

    @property
    def epoch_size(self) -> int:
        """Pairs in an epoch: the rows that are read."""
        return int(self._ends[-1])

    @property
    def shares(self) -> dict[LanguagePair, int]:
        """Pairs of each language pair in one epoch."""
        return dict(zip(self.store.language_pairs, map(int, self._slots), strict=True))

    def batch_at(self, step: int, *, rank: int = 0, world_size: int = 1) -> ParallelBatch:
        """Return the pairs of a step, or a rank's consecutive part of them.

        With ``rank=r * n + i, world_size=w * n`` it is micro-batch i of n on rank r of w.

        Raises:
            ConfigError: the global batch can't be shared out evenly.
        """
        if self.global_batch_size % world_size:
            raise ConfigError(
                f"global_batch_size {self.global_batch_size} cannot be divided evenly among"
                f" {world_size} ranks or micro-batches; use a multiple of {world_size}"
            )
        size = self.global_batch_size // world_size
        places = step * self.global_batch_size + rank * size + np.arange(size)
        pair_indices, rows = self.rows_at(places)
        found = self.store.read_packed(pair_indices, rows, max_tokens=self.max_tokens)
        languages = self._languages[pair_indices]
        sources = languages[:, 0].tolist()
        targets = languages[:, 1].tolist()
        return ParallelBatch(
            a=TokenBatch.from_flat(found.source_ids, found.source_lengths, sources),
            b=TokenBatch.from_flat(found.target_ids, found.target_lengths, targets),
            step=step,
            first_row=rank * size,
            seed=self.seed,
        )

    def rows_at(
        self, places: Int64[np.ndarray, " n"]
    ) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
        """Return the language pair and the row at positions of the endless sequence of pairs.

        Step t starts at t * global_batch_size.
        """
        pair_indices, draws = self._draws(np.asarray(places, dtype=np.int64))
        # Draw n of a language pair is row n mod rows of pass n div rows, in the pass's own order.
        sizes = self._rows[pair_indices]
        passes, position = np.divmod(draws, sizes)
        rows = permute(position, sizes, keys(self._row_key, pair_indices, passes))
        # Where max_pairs leaves some rows out, one more permutation, the same in every pass, says
        # which: the first ``max_pairs`` of it are read. Fewer are a part of more.
        is_subset = sizes < self._stored_rows[pair_indices]
        stored = self._stored_rows[pair_indices[is_subset]]
        key = keys(self._subset_key, pair_indices[is_subset])
        rows[is_subset] = permute(rows[is_subset], stored, key)
        return pair_indices, rows

    def exposure(self, step: int) -> dict[LanguagePair, int]:
        """Return the exact number of pairs of each language pair in the steps before ``step``."""
        # Whole epochs have exact shares; only the slots of the last, started one are gone through.
        epochs, rest = divmod(step * self.global_batch_size, self.epoch_size)
        seen = epochs * self._slots
        for start in range(0, rest, CHUNK_SLOTS):
            places = epochs * self.epoch_size + np.arange(start, min(rest, start + CHUNK_SLOTS))
            pair_indices, _ = self._draws(places)
            seen = seen + np.bincount(pair_indices, minlength=len(self._slots))
        return dict(zip(self.store.language_pairs, map(int, seen), strict=True))

    def seen(self, step: int) -> dict[str, int]:
        """Return ``exposure`` of the pairs in use, by names such as ``deu_Latn-eng_Latn``."""
        shares = self.shares
        return {
            "-".join(pair): count for pair, count in self.exposure(step).items() if shares[pair]
        }

    def expected(self, step: int) -> dict[str, float]:
        """Estimate ``seen`` from the shares of an epoch, without iterating over its slots.

        Within an epoch only the shares are certain. At its end the estimate is exact.
        """
        drawn = step * self.global_batch_size
        return {
            "-".join(pair): drawn * slots / self.epoch_size
            for pair, slots in self.shares.items()
            if slots
        }

    @property
    def available(self) -> dict[str, int]:
        """Rows that are read, by the same names."""
        rows = zip(self.store.language_pairs, self._rows.tolist(), strict=True)
        return {"-".join(pair): count for pair, count in rows if count}

    def _draws(
        self, places: Int64[np.ndarray, " n"]
    ) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
        """Return the language pair at each position, and the number of its earlier slots."""
        epochs, position = np.divmod(places, self.epoch_size)
        sizes = np.full_like(position, self.epoch_size)
        slots = permute(position, sizes, keys(self._slot_key, epochs))
        # The owner of a slot is the first pair that ends behind it; pairs without slots are
        # passed over, as they end where the one before them does.
        pair_indices = np.searchsorted(self._ends, slots, side="right")
        within = slots - (self._ends - self._slots)[pair_indices]
        return pair_indices, epochs * self._slots[pair_indices] + within


def named_pair(name: str) -> frozenset[str]:
    """Return the two languages of a name such as ``eng_Latn-kor_Hang`` or ``en-ko``, in any order.

    Raises:
        ConfigError: it does not name two languages.
    """
    sides = name.split("-")
    try:
        found = frozenset(resolve_language(side).code for side in sides)
    except DataError as error:
        raise ConfigError(f"language pair {name!r}: {error}") from error
    if len(sides) != 2 or len(found) != 2:
        raise ConfigError(
            f"language pair {name!r}: expected two languages, such as eng_Latn-kor_Hang"
        )
    return found


def selected(store: TokenStore, names: Sequence[str]) -> Bool[np.ndarray, " p"]:
    """Return a mask of the store's language pairs that are named; all if no name is specified.

    Raises:
        ConfigError: no language pair of the store is named.
    """
    chosen = {named_pair(name) for name in names}
    found = np.asarray([not chosen or frozenset(pair) in chosen for pair in store.language_pairs])
    if not found.any():
        there = ", ".join(map("-".join, store.language_pairs))
        raise ConfigError(
            f"{store.path} has none of the language pairs {', '.join(names)}; use some of: {there}"
        )
    return found


def apportion(weights: np.ndarray, total: int) -> Int64[np.ndarray, " n"]:
    """Distribute ``total`` in whole numbers by weight (largest remainders).

    A positive weight gets at least 1.

    Raises:
        ConfigError: there are more positive weights than things to share.
    """
    positive = weights > 0
    if positive.sum() > total or not positive.any():
        raise ConfigError(
            f"{total} pairs cannot be divided among {int(positive.sum())} language pairs; lower"
            " the caps"
        )
    exact = weights / weights.sum() * total
    shares = np.where(positive, np.maximum(np.floor(exact), 1), 0).astype(np.int64)
    while (missing := total - int(shares.sum())) != 0:
        # Pairs most below their exact share come first; the stable sort keeps ties in order.
        order = np.argsort(shares - exact, kind="stable")
        if missing > 0:
            # Give to the largest remainders.
            below = order[positive[order]]
            shares[below[:missing]] += 1
        else:
            # The minimum of 1 took too much: take from those most above their share.
            above = order[shares[order] > 1][::-1]
            shares[above[:-missing]] -= 1
    return shares
