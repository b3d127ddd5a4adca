r"""Sentence alignment of two documents from vectors, in time and memory linear in their lengths.

Vecalign (Thompson & Koehn, EMNLP 2019). A link joins a block x of p source sentences to a block
y of q target sentences, where p + q is bounded, or leaves one sentence unaligned. The algorithm
finds the cheapest chain of links from the starts to the ends of both documents, by the cost

.. math:: c(x, y) = \frac{2\, p\, q\, (1 - \cos(x, y))}
                   {\frac{1}{S} \sum_s (1 - \cos(x, y_s)) + \frac{1}{S} \sum_s (1 - \cos(x_s, y))}

where x_s and y_s are any blocks of the two documents. A link of two unrelated sentences therefore
costs about 1. If a link costs more than it would without the first or last sentence of a block,
the difference is added once more, so that a sentence without a translation is not joined with its
neighbor.

The resolution of long documents is halved repeatedly, until a search of all chains is possible. The
path found at one resolution is the middle of a band at twice this resolution.

``doubtful_blocks`` finds the blocks of several sentences that may allow better links than smaller
blocks do. All other blocks of several sentences are never embedded.

*Differences from the released code*: The means are over all blocks instead of a random sample, at
the same cost, because the mean of the products is the product with the mean. Documents that are
short enough are searched with all sizes of blocks at once, which is exact. If the number of
sentences is odd, the last one is not left out when the document is halved. The quantile for the
cost of an unaligned sentence is exact. It leaves out the cheapest pairs; their number is the
largest possible number of translations. In the search, 1 - cos below 0.001 counts as 0.001. The
first or last sentence of a block may have an extra cost.

``LinkCounts`` compares links with right ones: strict and lax precision, recall and F1, as
vecalign's ``score.py``.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int16, Int64
from numpy import ndarray
from numpy.lib.stride_tricks import sliding_window_view

from interlingua.alignment.cue_times import (
    CueSpans,
    TimeMap,
    alone_shares,
    span_distances,
    time_distances,
)
from interlingua.config import AtLeast, Between, CheckedSettings
from interlingua.errors import ConfigError
from interlingua.mining import defaults

DIAGONALS_AT_ONCE = 64
"""Diagonals with costs that are computed by one matrix product."""
GRAIN = 1e-3
"""Minimum of 1 - cos; smaller values are raised to it. One-to-one links of copied texts are then
cheaper than two-to-two links."""
BlockVectors = Float32[ndarray, "k n d"]
"""``blocks[p - 1, i]``: the vector, of length 1, of the p sentences that end with sentence i. If
the block is not known, the vector is arbitrary."""
KnownBlocks = Bool[ndarray, "k n"]
"""``known[p - 1, i]``: whether the block of p sentences that ends with sentence i is embedded."""
SentenceKinds = Bool[ndarray, " n"]
"""True for each sentence that is a heading. A link has headings on both sides, or on neither."""
LinkShape = tuple[int, int]
"""Sentences of the source and of the target in a link."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlignConfig(CheckedSettings):
    """Settings of the search for links between two documents.

    The server creates these settings without a command of the command line. ``AlignOptions`` has
    options for the first three fields; types and defaults of both are in ``mining/defaults.py``.
    """

    max_sentences: defaults.MaxSentences = defaults.MAX_SENTENCES
    """Maximum number of sentences in a link, both sides together; must be at least 2."""
    skip_quantile: defaults.SkipQuantile = defaults.SKIP_QUANTILE
    """Cost of an unaligned sentence: a quantile (0 to 1) of the costs of random sentence pairs."""
    band: defaults.BandWidth = defaults.BAND
    """Sentences on either side of the coarse path that the search for the fine path visits."""
    full_size: Annotated[int, AtLeast(1)] = 300
    """Two documents are searched in full if the product of their lengths, in sentences, is at most
    the square of this number."""
    sample: Annotated[int, AtLeast(1)] = 20_000
    """Random pairs of sentences of which the quantile is taken."""
    seed: int = 0
    """Seed for drawing the random pairs of sentences."""
    clear: Annotated[float, Between(0, 1)] = 0.85
    """A link is clear if it is much cheaper than the links next to it. Such a link has one of the
    two blocks on one side, and a sentence before or after the other block on the other side. The
    cost of a clear link is at most this share of the cost of each of them."""
    border: Annotated[float, Between(0, 100)] = 1.0
    """Weight of a block's extra cost for its first or last sentence; 0 = none, as in the paper."""
    times: Annotated[float, Between(0, 1)] = 0.5
    """Weight of times against meaning, 0 to 1, if both documents are subtitles."""

    @property
    def shapes(self) -> tuple[LinkShape, ...]:
        """Shapes of links with sentences on both sides.

        One to one is first, so that the search takes the simplest of several chains of equal cost.
        """
        sizes = range(1, self.max_sentences)
        pairs = [(p, q) for p in sizes for q in sizes if p + q <= self.max_sentences]
        return tuple(sorted(pairs, key=sum))


class Link(NamedTuple):
    """Sentences that are translations of each other.

    One side is empty if a sentence is unaligned.

    Attributes:
        source: their numbers, from 0.
        target: their numbers on the other side.
        cost: 0 for equal vectors, about 1 for unrelated ones, not weighted by the sizes; 0 where a
            side is empty.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    cost: float


class Alignment(NamedTuple):
    """The links of two documents in their order, and the extent of the search.

    Attributes:
        links: each sentence of both documents is in exactly one link.
        total: cost of the chain, with the weights of sizes and of unaligned sentences.
        nodes: pairs of places in both documents that were visited, at all resolutions.
        times: map from the times of the source to those of the target, if times were used.
    """

    links: tuple[Link, ...]
    total: float
    nodes: int
    times: TimeMap | None = None


class DocumentLevel(NamedTuple):
    """A document at one resolution.

    Attributes:
        blocks: vectors by size and last sentence.
        chance: mean of 1 - cos to the other document's blocks.
        known: which blocks are embedded; links of others are not considered.
        kinds: of each sentence, if links join only sentences of one kind.
        spans: times of each sentence, in the target's time.
        times: weight of the times.
        skips: factor of the cost of leaving each sentence unaligned; default: 1.
    """

    blocks: BlockVectors
    chance: Float32[ndarray, "k n"]
    known: KnownBlocks
    kinds: SentenceKinds | None = None
    spans: CueSpans | None = None
    times: float = 0.0
    skips: Float64[ndarray, " n"] | None = None


class SearchBand(NamedTuple):
    """Positions (x, y) to visit: on diagonal a, y starts at ``first[a]``, and x is a - y.

    Attributes:
        first: the smallest y of every diagonal, which may be outside the document.
        width: places on a diagonal.
    """

    first: Int64[ndarray, " a"]
    width: int


def align_blocks(
    source: BlockVectors,
    target: BlockVectors,
    config: AlignConfig | None = None,
    *,
    known: tuple[KnownBlocks, KnownBlocks] | None = None,
    kinds: tuple[SentenceKinds, SentenceKinds] | None = None,
    spans: tuple[CueSpans, CueSpans] | None = None,
) -> Alignment:
    """Find the cheapest chain of links between two documents, as far as the bands reach.

    Args:
        source: blocks of up to ``max_sentences - 1`` sentences.
        target: blocks of the other document.
        config: how to search.
        known: which blocks of either side are embedded; default: all.
        kinds: of the sentences of either side; links that mix kinds are forbidden. A known block
            has one kind. Default: there is one kind.
        spans: times of the sentences of either side, in the target's time. Default: only meaning
            counts.

    Raises:
        ConfigError: blocks are missing for the links that are requested.
    """
    config = config or AlignConfig()
    if min(len(source), len(target)) < config.max_sentences - 1:
        raise ConfigError(
            f"links of {config.max_sentences} sentences require blocks of up to"
            f" {config.max_sentences - 1} sentences, found blocks of up to"
            f" {min(len(source), len(target))}; embed longer blocks or reduce max_sentences"
        )
    # Halve both documents until the coarsest level is small enough to be searched in full.
    levels = [(source, target)]
    while levels[-1][0].shape[1] * levels[-1][1].shape[1] > config.full_size**2:
        levels.append((halve(levels[-1][0]), halve(levels[-1][1])))
    # Search each level, from the coarsest to the finest, in a band around the path of the previous
    # level.
    path: list[tuple[int, int]] | None = None
    visited = 0
    for depth in range(len(levels) - 1, -1, -1):
        x, y = levels[depth]
        # Merged sentences are linked one to one, because only their path is needed.
        sides = sides_of(x, y)
        shapes: tuple[LinkShape, ...] = ((1, 1),)
        if depth == 0:
            sides = sides_of(x, y, known)
            if kinds is not None:
                sides = sides[0]._replace(kinds=kinds[0]), sides[1]._replace(kinds=kinds[1])
            if spans is not None:
                sides = _with_spans(sides, spans, config.times)
            shapes = _known_shapes(config.shapes, sides[0].known, sides[1].known)
        n = x.shape[1]
        m = y.shape[1]
        band = full_band(n, m)
        if path is not None:
            band = band_around(path, n, m, config.band + max(map(max, shapes)))
        found = find_best_path(
            *sides,
            shapes=shapes,
            skip=skip_cost(*sides, config),
            band=band,
            border=config.border,
        )
        visited += len(band.first) * band.width
        # Each sentence of this level is a merger of two sentences of the next level.
        path = [(2 * i, 2 * j) for i, j in path_of(found.links)]
    return found._replace(nodes=visited)


def _with_spans(
    sides: tuple[DocumentLevel, DocumentLevel], spans: tuple[CueSpans, CueSpans], weight: float
) -> tuple[DocumentLevel, DocumentLevel]:
    """Return both sides with the times of their sentences.

    Leaving a sentence unaligned costs less if no sentence of the other side overlaps its time.
    """
    alone = alone_shares(spans[0], spans[1]), alone_shares(spans[1], spans[0])
    found = [
        side._replace(spans=own, times=weight, skips=1 - weight * share)
        for side, own, share in zip(sides, spans, alone, strict=True)
    ]
    return found[0], found[1]


def _known_shapes(
    shapes: tuple[LinkShape, ...], source: KnownBlocks, target: KnownBlocks
) -> tuple[LinkShape, ...]:
    """Return the shapes for which both sides have known blocks; one to one is always included."""
    return tuple(
        (p, q)
        for p, q in shapes
        if (p, q) == (1, 1) or (source[p - 1].any() and target[q - 1].any())
    )


def halve(blocks: BlockVectors) -> BlockVectors:
    """Merge sentences two by two: sum their vectors, subtract the mean of all sums, and normalize.

    Only blocks of one sentence are used.
    """
    vectors = blocks[:1]
    n, d = vectors.shape[1:]
    # The last of an odd number of sentences is joined with a vector of zeros.
    padded = np.zeros((1, n + n % 2, d), np.float32)
    padded[:, :n] = vectors
    half = padded.reshape(1, -1, 2, d).sum(axis=2)
    # A single vector equals its mean, so that subtracting the mean would leave zeros.
    if half.shape[1] > 1:
        half -= half.mean(axis=1, keepdims=True)
    # If a vector equals the mean, rounding may leave a small difference without a meaningful
    # direction. ``normalize_rows`` could scale it to length 1, and is therefore not used.
    lengths = np.linalg.norm(half, axis=2, keepdims=True)
    return np.asarray(half / np.maximum(lengths, 1e-6), dtype=np.float32)


def sides_of(
    source: BlockVectors, target: BlockVectors, known: tuple[KnownBlocks, KnownBlocks] | None = None
) -> tuple[DocumentLevel, DocumentLevel]:
    """Compute the mean distance of every block of both documents to the other one's blocks.

    Args:
        source: blocks of the source.
        target: blocks of the target.
        known: which of them are embedded; default: all.
    """
    if known is None:
        known = (np.ones(source.shape[:2], bool), np.ones(target.shape[:2], bool))
    # The mean of products with many vectors is the product with their mean.
    centers = mean_block(source, known[0]), mean_block(target, known[1])
    return (
        DocumentLevel(source, 1 - source @ centers[1], known[0]),
        DocumentLevel(target, 1 - target @ centers[0], known[1]),
    )


def mean_block(blocks: BlockVectors, known: KnownBlocks | None = None) -> Float32[ndarray, " d"]:
    """Average all known blocks: first those of each size, then the sizes.

    The weight of a size is the share of its blocks that are known. If all blocks are known, all
    sizes have the same weight.
    """
    if known is None:
        known = np.ones(blocks.shape[:2], bool)
    means = []
    shares = []
    # No block of p + 1 sentences ends before sentence p, so that a short document has no
    # block of the larger sizes.
    for p in range(min(len(blocks), blocks.shape[1])):
        is_known = known[p, p:]
        if is_known.any():
            means.append(blocks[p, p:][is_known].mean(axis=0))
            shares.append(is_known.mean())
    return np.average(means, axis=0, weights=shares).astype(np.float32)


def costs(
    products: Float32[ndarray, "*s"],
    x: Float32[ndarray, "*#s"],
    y: Float32[ndarray, "*#s"],
    *,
    least: float = 0.0,
) -> Float32[ndarray, "*s"]:
    """Compute c(x, y) / (p q) of any number of pairs of blocks.

    Args:
        products: cosines.
        x: mean of 1 - cos of the source's blocks.
        y: mean of 1 - cos of the target's blocks.
        least: minimum of 1 - cos; smaller values are raised to it.
    """
    distances = 2 * np.maximum(1 - products, least)
    return np.asarray(distances / np.maximum(x + y, 2 * GRAIN), dtype=np.float32)


def skip_cost(source: DocumentLevel, target: DocumentLevel, config: AlignConfig) -> float:
    """Compute the cost of an unlinked sentence: a quantile of the costs of random sentence pairs.

    The cheapest min(n, m) of all n m pairs, the maximum number of translations, are not counted:
    they are a large share in short documents.
    """
    n = source.blocks.shape[1]
    m = target.blocks.shape[1]
    # Use all pairs if there are few.
    if n * m <= config.sample:
        x, y = (place.ravel() for place in np.indices((n, m)))
    else:
        draw = np.random.default_rng(config.seed)
        x = draw.integers(n, size=config.sample)
        y = draw.integers(m, size=config.sample)
    products = np.einsum("sd,sd->s", source.blocks[0, x], target.blocks[0, y])
    found = costs(products, source.chance[0, x], target.chance[0, y], least=GRAIN)
    if source.spans is not None and target.spans is not None:
        distances = span_distances(source.spans[x], target.spans[y])
        found = _with_distances(found, distances, source.times)
    # min(n, m) is this share of all n m pairs; the quantile is taken of the other pairs.
    translations = 1 / max(n, m)
    return float(np.quantile(found, translations + (1 - translations) * config.skip_quantile))


def _with_distances(
    cost: Float32[ndarray, "*s"], distances: Float64[ndarray, "*s"], weight: float
) -> Float32[ndarray, "*s"]:
    """Return the weighted means of costs of meaning and of known distances in time.

    Both are about 1 for two random sentences.
    """
    mixed = (1 - weight) * cost + weight * distances
    return np.where(np.isnan(distances), cost, mixed).astype(np.float32)


def full_band(n: int, m: int) -> SearchBand:
    """Return all positions of two documents."""
    # On diagonal a, x = a - y is at most n, so that y starts with a - n.
    return SearchBand(np.maximum(np.arange(n + m + 1) - n, 0), min(n, m) + 1)


def band_around(path: list[tuple[int, int]], n: int, m: int, reach: int) -> SearchBand:
    """Return the positions within ``reach`` of a path, which is straight between its points.

    Args:
        path: points in order, including the start; points beyond the end are moved to the end.
        n: sentences of the source.
        m: of the target.
        reach: number of positions on either side of the path.
    """
    # If the number of sentences is odd, the coarse path may end one sentence after the last.
    inside = [(min(i, n), min(j, m)) for i, j in path] + [(n, m)]
    # The y of the path on every diagonal, by straight lines between its points.
    diagonals = np.array([i + j for i, j in inside])
    middle = np.interp(np.arange(n + m + 1), diagonals, [j for _, j in inside])
    return SearchBand(np.floor(middle + 0.5).astype(np.int64) - reach, 2 * reach + 1)


def path_of(links: tuple[Link, ...]) -> list[tuple[int, int]]:
    """Return the positions at which links start and end.

    Links with an empty side carry little information. Between two links with sentences on both
    sides, a straight line replaces them.
    """
    points = [(0, 0)]
    for source, target, _ in links:
        if source and target:
            points += [(source[0], target[0]), (source[-1] + 1, target[-1] + 1)]
    return points


def find_best_path(
    source: DocumentLevel,
    target: DocumentLevel,
    *,
    shapes: tuple[LinkShape, ...],
    skip: float,
    band: SearchBand,
    border: float = 0.0,
) -> Alignment:
    """Find the best path by dynamic programming over the positions of a band, diagonal by diagonal.

    A position (x, y) follows the first x and the first y sentences. A link of shape (p, q) leads
    there from (x - p, y - q), which is on an earlier diagonal. Therefore all positions of a
    diagonal are computed together.

    Args:
        source: one document.
        target: the other one.
        shapes: of links with sentences on both sides, the smallest first.
        skip: cost of an unlinked sentence.
        band: positions to visit.
        border: see ``AlignConfig.border``.
    """
    n = source.blocks.shape[1]
    m = target.blocks.shape[1]
    # All shapes of a link; those with an unaligned sentence come last.
    steps = np.array([*shapes, (1, 0), (0, 1)])
    ahead = int(steps.sum(axis=1).max())
    # ``best[ahead + a, 1 + t]``: the cost of the cheapest chain to place t of diagonal a. There
    # is a dummy row of infinite costs for each diagonal before the first, and a dummy column on
    # either side.
    best = np.full((ahead + n + m + 1, band.width + 2), np.inf)
    # ``chosen[a, t]``: the last link of that chain, as a row of ``steps``.
    chosen = np.zeros((n + m + 1, band.width), np.int16)
    best[ahead, 1 - band.first[0]] = 0
    places = np.arange(band.width)
    at_once = max(DIAGONALS_AT_ONCE, band.width)
    for start in range(0, n + m + 1, at_once):
        stop = min(start + at_once, n + m + 1)
        price = _prices(source, target, shapes, skip, band, border, range(start, stop))
        for a in range(max(start, 1), stop):
            # For every shape: the diagonal from which its link comes, and the shift between the
            # places of that diagonal and those of this one.
            before = a - steps.sum(axis=1)
            moved = band.first[a] - steps[:, 1] - band.first[np.maximum(before, 0)]
            # Positions outside of the band are mapped to the dummy columns.
            columns = np.clip(places + moved[:, None], -1, band.width) + 1
            reached = best[np.maximum(before + ahead, 0)[:, None], columns] + price[a - start]
            # If several shapes have the same cost, take the first, which is the simplest.
            chosen[a] = reached.argmin(axis=0)
            best[ahead + a, 1:-1] = reached[chosen[a], places]
    total = float(best[ahead + n + m, 1 + m - band.first[n + m]])
    links = _links(chosen, steps, source, target, band)
    return Alignment(links, total, len(band.first) * band.width)


def _prices(
    source: DocumentLevel,
    target: DocumentLevel,
    shapes: tuple[LinkShape, ...],
    skip: float,
    band: SearchBand,
    border: float,
    diagonals: range,
) -> Float64[ndarray, "a t w"]:
    """Compute the cost of the last link of every shape, for the positions of some diagonals.

    It is infinite if such a link would start outside a document.
    """
    n = source.blocks.shape[1]
    m = target.blocks.shape[1]
    y = band.first[diagonals.start : diagonals.stop, None] + np.arange(band.width)
    x = np.array(diagonals)[:, None] - y
    is_inside = (x >= 0) & (x <= n) & (y >= 0) & (y <= m)
    # The last two shapes have an unaligned sentence.
    prices = np.full((len(diagonals), len(shapes) + 2, band.width), np.inf)
    for row, side, place in ((-2, source, x), (-1, target, y)):
        is_left = is_inside & (place > 0)
        factors = 1.0 if side.skips is None else side.skips[place[is_left] - 1]
        prices[:, row][is_left] = skip * factors
    is_linked = is_inside & (x > 0) & (y > 0)
    if not is_linked.any():
        return prices
    # The rectangle of sentences around these places: one product of matrices holds the cosines of
    # all of them. It starts one sentence earlier, for the costs of blocks without their last
    # sentence. Place x is after sentence x - 1.
    lowest = (max(x[is_linked].min() - 1, 1), max(y[is_linked].min() - 1, 1))
    left = slice(lowest[0] - 1, x[is_linked].max())
    right = slice(lowest[1] - 1, y[is_linked].max())
    tables = link_costs(source, target, shapes, (left, right), border)
    for k, (p, q) in enumerate(shapes):
        # At least p source sentences and q target sentences must be before the place.
        fits = is_linked & (x >= p) & (y >= q)
        prices[:, k][fits] = tables[k][x[fits] - lowest[0], y[fits] - lowest[1]]
    return prices


def link_costs(
    source: DocumentLevel,
    target: DocumentLevel,
    shapes: tuple[LinkShape, ...],
    places: tuple[slice, slice],
    border: float,
) -> list[Float32[ndarray, "a b"]]:
    """Compute the costs of links of every shape, by the last sentences of their blocks.

    This is p q (c + border max(0, c - c')). c' is the least cost of the link without the first or
    the last sentence of a block: if this sentence has no translation there, the block costs more
    with the sentence than without it. With times, c is a weighted mean of the cost by meaning and
    the distance in time.

    Args:
        source: one document.
        target: the other one.
        shapes: those of fewer sentences before those of more.
        places: last sentences of the source's blocks, and of the target's.
        border: see ``AlignConfig.border``.
    """
    left, right = places
    found: dict[LinkShape, Float32[ndarray, "a b"]] = {}
    tables = []
    for p, q in shapes:
        products = source.blocks[p - 1, left] @ target.blocks[q - 1, right].T
        chances = source.chance[p - 1, left, None], target.chance[q - 1, right]
        cost = costs(products, *chances, least=GRAIN)
        if source.spans is not None and target.spans is not None:
            distances = time_distances(source.spans, target.spans, (p, q), places)
            cost = _with_distances(cost, distances, source.times)
        cost[~source.known[p - 1, left]] = np.inf
        cost[:, ~target.known[q - 1, right]] = np.inf
        if source.kinds is not None and target.kinds is not None:
            cost[source.kinds[left, None] != target.kinds[right]] = np.inf
        shorter = np.full_like(cost, np.inf)
        # Without the first sentence of the source's block, and without the last one.
        if (p - 1, q) in found:
            shorter = np.minimum(shorter, found[p - 1, q])
            shorter[1:] = np.minimum(shorter[1:], found[p - 1, q][:-1])
        if (p, q - 1) in found:
            shorter = np.minimum(shorter, found[p, q - 1])
            shorter[:, 1:] = np.minimum(shorter[:, 1:], found[p, q - 1][:, :-1])
        excess = np.zeros_like(cost)
        # Unknown blocks cost infinitely much: there is no difference to compute.
        np.subtract(cost, shorter, out=excess, where=np.isfinite(cost) & np.isfinite(shorter))
        found[p, q] = cost
        tables.append(p * q * (cost + border * np.maximum(excess, 0)))
    return tables


def _links(
    chosen: Int16[ndarray, "a w"],
    steps: Int64[ndarray, "t 2"],
    source: DocumentLevel,
    target: DocumentLevel,
    band: SearchBand,
) -> tuple[Link, ...]:
    """Follow the choices back from the end."""
    x = source.blocks.shape[1]
    y = target.blocks.shape[1]
    links = []
    while x or y:
        p, q = steps[chosen[x + y, y - band.first[x + y]]].tolist()
        # This cost is computed without the weight p q and without the minimum of 1 - cos.
        cost = 0.0
        if p and q:
            product = source.blocks[p - 1, x - 1] @ target.blocks[q - 1, y - 1]
            cost = float(costs(product, source.chance[p - 1, x - 1], target.chance[q - 1, y - 1]))
        links.append(Link(tuple(range(x - p, x)), tuple(range(y - q, y)), cost))
        x -= p
        y -= q
    return tuple(reversed(links))


def doubtful_blocks(
    links: Sequence[Link],
    source: DocumentLevel,
    target: DocumentLevel,
    size: int,
    clear: float,
) -> tuple[Bool[ndarray, " n"], Bool[ndarray, " m"]]:
    """Find the blocks of some size that may be needed for better links than these.

    An unaligned sentence is in doubt. A block of a link is in doubt if linking the other block
    with a sentence next to this block would cost nearly as little. It is also in doubt if it has
    several sentences and a neighboring link joins several sentences, too. A block is needed if
    it contains a sentence in doubt, and all of its other sentences are in links next to doubtful
    links. A block within a longer run of unaligned sentences is not needed, because the other side
    has nothing to link it with.

    Args:
        links: found with the blocks that are known.
        source: one document.
        target: the other one.
        size: number of sentences in a block.
        clear: see ``AlignConfig.clear``.

    Returns:
        Flags for both documents: for each sentence, whether the block that ends with it is needed.
    """
    alone = _alone(links, size)
    levels = (source, target)
    sentences = [(link.source, link.target) for link in links]
    needed = []
    for side in (0, 1):
        own = [number for number, link in enumerate(sentences) if link[side]]
        lengths = [len(sentences[number][side]) for number in own]
        in_doubt = _in_doubt(links, levels, side, clear)[own]
        # Links next to doubtful ones on this side.
        is_near = in_doubt.copy()
        is_near[1:] |= in_doubt[:-1]
        is_near[:-1] |= in_doubt[1:]
        near, doubtful, unlinked = (
            _windows(np.repeat(flags, lengths), size) for flags in (is_near, in_doubt, alone[own])
        )
        found = np.zeros(sum(lengths), bool)
        found[size - 1 :] = near.all(axis=1) & doubtful.any(axis=1) & ~unlinked.all(axis=1)
        needed.append(found)
    return needed[0], needed[1]


def _windows(flags: Bool[ndarray, " n"], size: int) -> Bool[ndarray, "w s"]:
    """Return all windows of ``size`` consecutive flags; none if there are fewer flags."""
    if len(flags) < size:
        return np.zeros((0, size), bool)
    return sliding_window_view(flags, size)


def _alone(links: Sequence[Link], size: int) -> Bool[ndarray, " l"]:
    """Mark links in runs of more than ``size`` unaligned sentences of the same side."""
    flags = np.zeros(len(links), bool)
    start = 0
    for is_gap, run in itertools.groupby(links, lambda link: not (link.source and link.target)):
        gap = list(run)
        is_one_sided = not any(link.source for link in gap) or not any(link.target for link in gap)
        flags[start : start + len(gap)] = is_gap and is_one_sided and len(gap) > size
        start += len(gap)
    return flags


def _in_doubt(
    links: Sequence[Link], levels: tuple[DocumentLevel, DocumentLevel], side: int, clear: float
) -> Bool[ndarray, " l"]:
    """Find the links that have doubtful sentences on one side."""
    joining = np.array([bool(link.source and link.target) for link in links])
    # Unaligned sentences; links with sentences on both sides follow below.
    flags = np.array([bool((link.source, link.target)[side]) for link in links])
    if not joining.any():
        return flags
    own = levels[side]
    other = levels[1 - side]
    kept = [link for link in links if link.source and link.target]
    own_sentences = [(link.source, link.target)[side] for link in kept]
    other_sentences = [(link.target, link.source)[side] for link in kept]
    first = np.array([numbers[0] for numbers in own_sentences])
    last = np.array([numbers[-1] for numbers in own_sentences])
    other_size = np.array([len(numbers) for numbers in other_sentences])
    other_last = np.array([numbers[-1] for numbers in other_sentences])
    price = np.array([link.cost for link in kept], np.float32)
    vectors = other.blocks[other_size - 1, other_last]
    chance = other.chance[other_size - 1, other_last]
    n = own.blocks.shape[1]
    doubtful = np.zeros(len(kept), bool)
    for neighbor in (first - 1, last + 1):
        place = np.clip(neighbor, 0, n - 1)
        products = np.einsum("ld,ld->l", own.blocks[0, place], vectors)
        others = costs(products, own.chance[0, place], chance)
        doubtful |= (neighbor == place) & (price > clear * others)
    # Where two links next to each other join several sentences, the border between them may be one
    # sentence off: a sentence at this border may belong to the other link.
    own_size = last - first + 1
    is_large = own_size + other_size > 2
    has_large_neighbor = np.zeros(len(kept), bool)
    has_large_neighbor[1:] |= is_large[:-1]
    has_large_neighbor[:-1] |= is_large[1:]
    doubtful |= has_large_neighbor & (own_size > 1)
    flags[joining] = doubtful
    return flags


LinkSentences = tuple[tuple[int, ...], tuple[int, ...]]
"""The sentences of a link, without its cost."""


class LinkScores(NamedTuple):
    """Shares, 0 to 1."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """Counts of found links, gold links and right ones; counts of several documents add up.

    A link is strictly right if it is among the gold links. In the lax sense, it is also right if
    one of its source sentences and one of its target sentences are in the same gold link. Gold
    links with an unaligned sentence count for precision and not for recall.

    Attributes:
        links: found, each once, including unaligned sentences.
        strict: of these, right.
        lax: of these, right in the lax sense.
        gold: links with sentences on both sides.
        gold_strict: of these, found.
        gold_lax: of these, found in the lax sense.
    """

    links: int = 0
    strict: int = 0
    lax: int = 0
    gold: int = 0
    gold_strict: int = 0
    gold_lax: int = 0

    @classmethod
    def of(cls, links: Iterable[Link], gold: Iterable[Link]) -> LinkCounts:
        """Compare the links of a document with the right ones."""
        found = {link[:2] for link in links if link.source or link.target}
        right = {link[:2] for link in gold if link.source or link.target}
        # Recall counts only links with sentences on both sides: the share of the gold links that
        # are found.
        found_joining = {link for link in found if all(link)}
        right_joining = {link for link in right if all(link)}
        precision_counts = _agreement(found, right)
        recall_counts = _agreement(right_joining, found_joining)
        return cls(*precision_counts, *recall_counts)

    def __add__(self, other: LinkCounts) -> LinkCounts:
        return LinkCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def strict_scores(self) -> LinkScores:
        """Scores by equal links."""
        return _scores(self.strict, self.links, self.gold_strict, self.gold)

    @property
    def lax_scores(self) -> LinkScores:
        """Scores by links that overlap on both sides."""
        return _scores(self.lax, self.links, self.gold_lax, self.gold)


def _agreement(links: set[LinkSentences], right: set[LinkSentences]) -> tuple[int, int, int]:
    """Count all links, right links, and links that overlap with a right link."""
    # Of each source sentence, the target sentences that are linked with it.
    targets: dict[int, set[int]] = defaultdict(set)
    for source, target in right:
        for number in source:
            targets[number].update(target)
    strict = len(links & right)
    lax = 0
    for source, target in links - right:
        lax += any(not targets[number].isdisjoint(target) for number in source)
    return len(links), strict, strict + lax


def _scores(right: int, links: int, found: int, gold: int) -> LinkScores:
    """Compute precision, recall and F1; each is 0 if its denominator is 0."""
    precision = right / max(links, 1)
    recall = found / max(gold, 1)
    f1 = 0.0
    if right and found:
        f1 = 2 * precision * recall / (precision + recall)
    return LinkScores(precision, recall, f1)
