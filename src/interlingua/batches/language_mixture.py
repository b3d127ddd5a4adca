"""The pairs of each step: a mixture of language pairs that depends only on (seed, step).

No sampler holds a state and no order is stored. The pair at position n of the endless sequence is
computed from n: a permutation of the epoch's slots yields the slot's language pair and the number
of earlier slots of this language pair, and a permutation of the language pair's rows then yields
the row. So a resumed run needs only its step, and each rank can make its own part of any step.
torch's samplers, and packages of data loaders, keep a state that a checkpoint has to save for each
rank and worker.
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
"""Number of slots that are counted at once."""


class ParallelPlan:
    """Batches of translation pairs, without state: ``batch_at(step)`` needs no earlier step.

    An epoch has as many slots as there are rows to read. Language pair l owns m_l = round(M p_l) of
    the M slots, where p_l comes from temperature sampling, so its exposure is exact; a keyed
    permutation puts the slots in order. The n-th slot of l, counted over all epochs, reads row
    number n mod rows_l in the order of the current pass: each pass over the rows has a permutation
    of its own.
    So no row occurs twice within a pass, and every language pair gets its share in each epoch,
    whatever its size.

    Args:
        store: tokenized pairs.
        global_batch_size: pairs a step, over all ranks.
        seed: decides the order.
        temperature: language pairs are drawn with weight rows^(1/temperature); 1 is proportional.
        caps: limits of the rows of a language pair.
        max_tokens: longer sides are cut to this many tokens, closing special tokens kept.
        language_pairs: names of the language pairs to draw from, see ``named_pair``; default: all.
            Pairs that the store does not have are ignored.
        max_pairs: maximum number of rows of each language pair that are ever read, drawn by the
            seed; a larger number reads all rows that a smaller number reads, and more.

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
        # Rows of each language pair: in the store, and those of them that are ever read.
        self._stored_rows = np.asarray(store.counts, dtype=np.int64)
        self._rows = np.where(selected(store, language_pairs), self._stored_rows, 0)
        if max_pairs is not None:
            self._rows = np.minimum(self._rows, max_pairs)
        counts = dict(zip(store.language_pairs, self._rows.tolist(), strict=True))
        weights = temperature_weights(counts, temperature, caps)
        # m_l: language pair l owns the slots from ends[l] - slots[l] to ends[l], before the
        # permutation puts them in order.
        in_store_order = np.asarray([weights[pair] for pair in store.language_pairs])
        self._slots = apportion(in_store_order, int(self._rows.sum()))
        self._ends = np.cumsum(self._slots)
        # Keys of permutations that are independent of one another.
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
        # Draw n of a language pair is row number n mod rows in pass number n div rows; each pass
        # has its own order.
        sizes = self._rows[pair_indices]
        passes, position = np.divmod(draws, sizes)
        rows = permute(position, sizes, keys(self._row_key, pair_indices, passes))
        # Where max_pairs leaves out some rows, one more permutation, the same in every pass,
        # chooses the rows: only its first ``max_pairs`` are read. So a smaller ``max_pairs`` reads
        # a subset.
        is_subset = sizes < self._stored_rows[pair_indices]
        stored = self._stored_rows[pair_indices[is_subset]]
        key = keys(self._subset_key, pair_indices[is_subset])
        rows[is_subset] = permute(rows[is_subset], stored, key)
        return pair_indices, rows

    def exposure(self, step: int) -> dict[LanguagePair, int]:
        """Return the exact number of pairs of each language pair in the steps before ``step``."""
        # Whole epochs have exact shares; only the slots of the last, unfinished epoch are counted.
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

        The estimate is exact at the end of an epoch; within one it is approximate.
        """
        drawn = step * self.global_batch_size
        return {
            "-".join(pair): drawn * slots / self.epoch_size
            for pair, slots in self.shares.items()
            if slots
        }

    @property
    def available(self) -> dict[str, int]:
        """Number of rows that are read, by names such as ``deu_Latn-eng_Latn``."""
        rows = zip(self.store.language_pairs, self._rows.tolist(), strict=True)
        return {"-".join(pair): count for pair, count in rows if count}

    def _draws(
        self, places: Int64[np.ndarray, " n"]
    ) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
        """Return the language pair at each position, and how many earlier slots that pair has."""
        epochs, position = np.divmod(places, self.epoch_size)
        sizes = np.full_like(position, self.epoch_size)
        slots = permute(position, sizes, keys(self._slot_key, epochs))
        # The owner of a slot is the first pair whose end is greater than the slot. A pair without
        # slots has the same end as the pair before it, so it is never found.
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
    """Return a mask of the store's language pairs: true for named pairs; if none is named, for all.

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
        ConfigError: there are more positive weights than ``total``.
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
        # The entries furthest below their exact share come first; the stable sort keeps the order
        # of ties.
        order = np.argsort(shares - exact, kind="stable")
        if missing > 0:
            # Give to the largest remainders.
            below = order[positive[order]]
            shares[below[:missing]] += 1
        else:
            # The minimum of 1 gave out too much: take from those furthest above their share.
            above = order[shares[order] > 1][::-1]
            shares[above[:-missing]] -= 1
    return shares
