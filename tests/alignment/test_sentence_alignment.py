"""The search against an exact one written the slow way, a case worked by hand, and the work it
does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from interlingua.alignment.sentence_alignment import (
    AlignConfig,
    DocumentLevel,
    align_blocks,
    band_around,
    costs,
    doubtful_blocks,
    find_best_path,
    full_band,
    halve,
    mean_block,
    path_of,
    sides_of,
    skip_cost,
)
from interlingua.errors import ConfigError


def blocks(vectors, most):
    """Sum consecutive vectors, which represent joined sentences."""
    made = np.zeros((most, len(vectors), vectors.shape[1]), np.float32)
    for size in range(1, most + 1):
        for last in range(size - 1, len(vectors)):
            total = vectors[last - size + 1 : last + 1].sum(axis=0)
            made[size - 1, last] = total / np.linalg.norm(total)
    return made


def drawn(rng, *lengths, width=8, most=1):
    """Draw blocks of documents of random sentences."""
    sides = (rng.standard_normal((n, width)).astype(np.float32) for n in lengths)
    return tuple(blocks(side, most) for side in sides)


def sides_linked(links):
    return [link[:2] for link in links]


def translated(rng, n, *, width=48, noise=0.4, merged=0.0, dropped=0.0):
    """Return vectors of a document and of a translation with joins and omissions."""
    source = rng.standard_normal((n, width)).astype(np.float32)
    noisy = source + noise * rng.standard_normal(source.shape).astype(np.float32)
    target, links, i = [], [], 0
    while i < n:
        size = 2 if i + 1 < n and rng.random() < merged else 1
        if size == 1 and rng.random() < dropped:
            links.append(((i,), ()))
        else:
            links.append((tuple(range(i, i + size)), (len(target),)))
            target.append(noisy[i : i + size].sum(axis=0))
        i += size
    return source, np.array(target), links


def unweighted(source, target, x, y, p, q):
    """Compute the cost of linking the p sentences before x and q before y, if the link exists."""
    if not 1 <= p <= x or not 1 <= q <= y:
        return np.inf
    a, b = source.blocks[p - 1, x - 1], target.blocks[q - 1, y - 1]
    norm = source.chance[p - 1, x - 1] + target.chance[q - 1, y - 1]
    return 2 * (1 - min(float(a @ b), 0.999)) / max(norm, 0.002)


def every_chain(source, target, shapes, skip):
    """Find the cost of the cheapest chain by trying all paths.

    And how many ways are as cheap.
    """
    n, m = source.blocks.shape[1], target.blocks.shape[1]
    best = {(0, 0): (0.0, [])}
    for x, y in itertools.product(range(n + 1), range(m + 1)):
        ways = []
        for p, q in [*shapes, (1, 0), (0, 1)]:
            if (x - p, y - q) in best:
                cost = skip
                if p and q:
                    cost = unweighted(source, target, x, y, p, q)
                    # One sentence less: the first or the last of either side.
                    shorter = min(
                        unweighted(source, target, x, y, p - 1, q),
                        unweighted(source, target, x - 1, y, p - 1, q),
                        unweighted(source, target, x, y, p, q - 1),
                        unweighted(source, target, x, y - 1, p, q - 1),
                    )
                    cost = p * q * (cost + max(0, cost - shorter))
                before, links = best[x - p, y - q]
                link = (tuple(range(x - p, x)), tuple(range(y - q, y)))
                ways.append((before + cost, [*links, link]))
        if ways:
            best[x, y] = min(ways, key=lambda way: way[0])
    return best[n, m]


@pytest.mark.parametrize("seed", range(12))
def test_equals_trying_every_chain(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 9, size=2)
    config = AlignConfig(max_sentences=int(rng.integers(2, 6)), skip_quantile=float(rng.random()))
    sides = sides_of(*drawn(rng, n, m, width=6, most=4))
    skip = skip_cost(*sides, config)
    found = align_blocks(sides[0].blocks, sides[1].blocks, config)
    total, links = every_chain(*sides, config.shapes, skip)
    assert found.total == pytest.approx(total, rel=1e-5)
    assert sides_linked(found.links) == links


def test_worked_by_hand():
    # source a, b; target a + b joined, and c, which is linked to none
    a, b, c = np.eye(3, dtype=np.float32)
    source, target = blocks(np.stack([a, b]), 2), blocks(np.stack([a + b, c]), 2)
    sides = sides_of(source, target)
    # mean of the target's blocks: singles (a+b)/sqrt 2 and c, halved; the pair (a+b+sqrt 2... of
    # length 1)
    pair = (a + b + c) / np.sqrt(3)
    center = ((a + b) / np.sqrt(2) / 2 + c / 2 + pair) / 2
    assert np.allclose(mean_block(target), center)
    assert sides[0].chance[0, 0] == pytest.approx(1 - center[0])
    found = align_blocks(source, target, AlignConfig(max_sentences=3, skip_quantile=0.5))
    assert sides_linked(found.links) == [((0, 1), (0,)), ((), (1,))]
    assert found.links[0].cost == pytest.approx(0, abs=1e-6)
    assert found.links[1].cost == 0
    skip = skip_cost(*sides, AlignConfig(skip_quantile=0.5))
    # two to one, as cosines end at 0.999
    equal = 2 * 2 * 0.001 / (sides[0].chance[1, 1] + sides[1].chance[0, 0])
    assert found.total == pytest.approx(skip + equal, abs=1e-5)


@pytest.mark.parametrize("border", [0.0, 1.0])
def test_only_known_blocks_are_linked(border):
    rng = np.random.default_rng(0)
    source, target, _ = translated(rng, 40, merged=0.3)
    x, y = blocks(source, 3), blocks(target, 3)
    known = np.ones((3, len(source)), bool), np.ones((3, len(target)), bool)
    config = AlignConfig(border=border)
    everything = align_blocks(x, y, config, known=known).links
    assert everything == align_blocks(x, y, config).links
    large = next(link for link in everything if len(link.source) == 2)
    known[0][1, large.source[-1]] = False
    # The vector of an unknown block is not read.
    x[1, large.source[-1]] = np.nan
    found = align_blocks(x, y, config, known=known)
    assert np.isfinite(found.total)
    assert large[:2] not in sides_linked(found.links)


def test_the_mean_counts_a_size_by_the_share_of_its_blocks_that_are_known():
    [x] = drawn(np.random.default_rng(0), 5, most=2)
    known = np.ones((2, 5), bool)
    known[1, 2:] = False
    known[1, 0] = False
    # One of the four blocks of two sentences is known.
    expected = (x[0].mean(axis=0) + x[1, 1] / 4) / (1 + 1 / 4)
    assert np.allclose(mean_block(x, known), expected, atol=1e-6)
    assert np.allclose(mean_block(x), (x[0].mean(axis=0) + x[1, 1:].mean(axis=0)) / 2, atol=1e-6)


def test_a_sentence_without_a_translation_is_not_joined_with_its_neighbor():
    vectors = np.eye(8, dtype=np.float32)
    x, y = blocks(vectors, 3), blocks(np.delete(vectors, 3, axis=0), 3)
    alone = [((i,), (i - (i > 3),)) for i in range(8) if i != 3]
    assert sides_linked(align_blocks(x, y).links) == [*alone[:3], ((3,), ()), *alone[3:]]
    # The paper's costs join it.
    paper = align_blocks(x, y, AlignConfig(border=0.0))
    assert ((3,), ()) not in sides_linked(paper.links)


@pytest.mark.parametrize("is_source", [True, False])
def test_blocks_next_to_a_sentence_left_alone_are_in_doubt_on_its_side(is_source):
    one, other = np.eye(8, dtype=np.float32), np.eye(8, dtype=np.float32)
    # Sentence 3 has no translation; every other link is clear.
    sides = [blocks(one, 1), blocks(np.delete(other, 3, axis=0), 1)]
    if not is_source:
        sides.reverse()
    links = align_blocks(*sides, AlignConfig(max_sentences=2)).links
    levels = sides_of(*sides)
    found = doubtful_blocks(links, *levels, 2, 0.8)
    if not is_source:
        found = found[::-1]
    assert np.flatnonzero(found[0]).tolist() == [3, 4]
    assert not found[1].any()
    found = doubtful_blocks(links, *levels, 3, 0.8)
    assert np.flatnonzero(found[not is_source]).tolist() == [4]


def test_blocks_of_sentences_of_a_gap_alone_are_not_in_doubt():
    vectors = np.eye(20, dtype=np.float32)
    sides = blocks(vectors, 1), blocks(np.delete(vectors, range(5, 15), axis=0), 1)
    links = align_blocks(*sides, AlignConfig(max_sentences=2)).links
    found = doubtful_blocks(links, *sides_of(*sides), 2, 0.8)
    # Sentences 5 to 14 are missing on the other side: only its ends may belong to their neighbors.
    assert np.flatnonzero(found[0]).tolist() == [5, 15]


def test_a_border_between_two_links_of_several_sentences_is_in_doubt():
    rng = np.random.default_rng(0)
    a, b, c, d = rng.standard_normal((4, 64)).astype(np.float32)
    x, y = blocks(np.stack([a, b, c + d]), 2), blocks(np.stack([a + b, c, d]), 2)
    links = align_blocks(x, y, AlignConfig(max_sentences=3)).links
    assert sides_linked(links) == [((0, 1), (0,)), ((2,), (1, 2))]
    found = doubtful_blocks(links, *sides_of(x, y), 3, 0.8)
    assert [np.flatnonzero(flags).tolist() for flags in found] == [[2], [2]]


def test_unrelated_sentences_cost_one_and_equal_ones_nothing():
    rng = np.random.default_rng(0)
    x, y = sides_of(*drawn(rng, 200, 200, width=256))
    found = costs(x.blocks[0] @ y.blocks[0].T, x.chance[0, :, None], y.chance[0])
    assert found.mean() == pytest.approx(1, abs=1e-3)
    assert costs(np.float32(1.0), np.float32(0.9), np.float32(0.8)) == 0


def test_the_mean_is_what_a_large_sample_comes_to():
    rng = np.random.default_rng(0)
    x, y = drawn(rng, 30, 20, most=3)
    draws = rng.integers(10**9, size=(3, 200_000))
    sampled = [y[size, size + draws[size] % (20 - size)] for size in range(3)]
    expected = np.mean([(1 - x @ vectors.mean(axis=0)) for vectors in sampled], axis=0)
    assert np.allclose(sides_of(x, y)[0].chance, expected, atol=5e-3)


def test_leaving_alone_costs_a_quantile_of_all_pairs_but_translations_or_of_a_sample():
    rng = np.random.default_rng(3)
    sides = sides_of(*drawn(rng, 40, 50))
    every = [
        2 * max(1 - float(a @ b), 0.001) / (s + t)
        for a, s in zip(sides[0].blocks[0], sides[0].chance[0], strict=True)
        for b, t in zip(sides[1].blocks[0], sides[1].chance[0], strict=True)
    ]
    # 40 of the 2000 pairs may be translations
    expected = np.quantile(every, 1 / 50 + 0.3 * 49 / 50)
    assert skip_cost(*sides, AlignConfig(skip_quantile=0.3)) == pytest.approx(expected, rel=1e-5)
    sampled = skip_cost(*sides, AlignConfig(skip_quantile=0.3, sample=1500))
    assert sampled == pytest.approx(expected, abs=0.05)
    assert sampled == skip_cost(*sides, AlignConfig(skip_quantile=0.3, sample=1500))


@pytest.mark.parametrize("n", [300, 501])
def test_the_band_finds_what_the_full_search_finds(n):
    source, target, _ = translated(np.random.default_rng(n), n, merged=0.1, dropped=0.05)
    sides = blocks(source, 2), blocks(target, 2)
    options = {"max_sentences": 3}
    exact = align_blocks(*sides, AlignConfig(full_size=10_000, **options))
    near = align_blocks(*sides, AlignConfig(full_size=50, **options))
    assert near.nodes < exact.nodes / 3
    assert near.total == pytest.approx(exact.total, rel=1e-6)
    assert near.links == exact.links


def test_a_long_gap_is_crossed():
    """Omit a whole chapter in the translation."""
    rng = np.random.default_rng(0)
    source, target, _ = translated(rng, 900)
    target = np.concatenate([target[:300], target[500:]])
    config = AlignConfig(full_size=60)
    found = align_blocks(blocks(source, 3), blocks(target, 3), config)
    ones = set(sides_linked(found.links))
    expected = [((i,), (i if i < 300 else i - 200,)) for i in (*range(300), *range(500, 900))]
    assert sum(link in ones for link in expected) > 0.98 * len(expected)


def test_work_is_linear():
    config = AlignConfig(full_size=100)
    nodes = {}
    for n in (2000, 4000, 8000):
        source, target, _ = translated(np.random.default_rng(n), n, width=24)
        nodes[n] = align_blocks(blocks(source, 3), blocks(target, 3), config).nodes
    # the full search of the coarsest level differs by less than 4 * 100 squares
    assert nodes[4000] - nodes[2000] < 2000 * 100
    assert nodes[8000] - nodes[4000] == pytest.approx(2 * (nodes[4000] - nodes[2000]), rel=0.15)
    assert nodes[8000] < 8000 * 8000 / 60


def test_documents_of_one_sentence_and_of_very_unequal_lengths():
    one, many = np.eye(4, dtype=np.float32)[:1], np.eye(4, dtype=np.float32)
    found = align_blocks(blocks(one, 3), blocks(one, 3))
    assert sides_linked(found.links) == [((0,), (0,))]
    found = align_blocks(blocks(one, 1), blocks(many, 1), AlignConfig(max_sentences=2))
    assert sides_linked(found.links) == [((0,), (0,)), ((), (1,)), ((), (2,)), ((), (3,))]
    [long] = drawn(np.random.default_rng(0), 3000, width=4)
    config = AlignConfig(max_sentences=2, full_size=10)
    links = align_blocks(blocks(one, 1), long, config).links
    assert sorted(number for link in links for number in link.target) == list(range(3000))
    assert [number for link in links for number in link.source] == [0]


@pytest.mark.parametrize("seed", range(5))
def test_every_sentence_is_in_one_link_in_order(seed):
    rng = np.random.default_rng(seed)
    source, target, _ = translated(rng, 150, merged=0.2, dropped=0.2, noise=1.5)
    config = AlignConfig(full_size=int(rng.integers(2, 200)))
    links = align_blocks(blocks(source, 3), blocks(target, 3), config).links
    assert [i for link in links for i in link.source] == list(range(len(source)))
    assert [j for link in links for j in link.target] == list(range(len(target)))
    assert all(link.source or link.target for link in links)


def test_halving_sums_neighbors_less_the_mean():
    vectors = np.array([[1, 0], [0, 1], [0, -1], [1, 0], [1, 0]], np.float32)
    # sums (1,1), (1,-1), (1,0); mean (1,0); less it (0,1), (0,-1), (0,0)
    assert np.allclose(halve(vectors[None]), [[[0, 1], [0, -1], [0, 0]]])
    assert np.allclose(halve(vectors[None, :1]), [[[1, 0]]])


def test_a_band_follows_its_path():
    band = band_around([(0, 0), (4, 4), (4, 8)], 4, 10, 2)
    # the middle goes along the diagonal, then along y
    assert (band.first + 2).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10]
    assert band.width == 5
    beyond = band_around([(0, 0), (6, 6)], 5, 5, 1)
    assert (beyond.first[-1] + 1, len(beyond.first)) == (5, 11)
    everything = full_band(2, 3)
    assert (everything.first.tolist(), everything.width) == ([0, 0, 0, 1, 2, 3], 3)


def test_copied_sentences_are_linked_one_to_one():
    [x] = drawn(np.random.default_rng(0), 50, width=16, most=3)
    assert sides_linked(align_blocks(x, x).links) == [((i,), (i,)) for i in range(50)]


def test_what_lies_between_links_is_a_straight_line():
    x = blocks(np.eye(3, dtype=np.float32), 1)
    links = align_blocks(x, x, AlignConfig(max_sentences=2)).links
    assert path_of(links) == [(0, 0), (0, 0), (1, 1), (1, 1), (2, 2), (2, 2), (3, 3)]
    assert path_of(()) == [(0, 0)]


def test_a_search_in_a_narrow_band_stays_there():
    [x] = drawn(np.random.default_rng(0), 6, width=4)
    side = DocumentLevel(x, np.ones((1, 6), np.float32), np.ones((1, 6), bool))
    aside = band_around([(0, 0), (6, 0)], 6, 6, 1)
    found = find_best_path(side, side, shapes=((1, 1),), skip=5.0, band=aside)
    x_, y_ = 0, 0
    for link in found.links:
        x_, y_ = x_ + len(link.source), y_ + len(link.target)
        assert 0 <= y_ - aside.first[x_ + y_] < aside.width
    assert found.total > 0  # the diagonal, which costs nothing, is out of reach


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_sentences": 1}, "max_sentences: expected"),
        ({"skip_quantile": 1.5}, "skip_quantile: expected"),
        ({"band": 0}, "band: expected"),
    ],
)
def test_settings_that_can_not_be(options, message):
    with pytest.raises(ConfigError, match=message):
        AlignConfig(**options)


def test_blocks_that_are_missing():
    x = blocks(np.eye(3, dtype=np.float32), 2)
    with pytest.raises(ConfigError, match=r"blocks of up to 3 .* 2;"):
        align_blocks(x, x, AlignConfig(max_sentences=4))
