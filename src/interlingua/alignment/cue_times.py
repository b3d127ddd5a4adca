"""Times of subtitles as evidence for links of cues, in addition to meaning.

Two files of one film differ by an offset (another intro), by a rate (25 against 23.976 frames a
second), and by another offset after each cut. Links found by meaning are the anchors. The
candidates for the rate are a list of usual rates and the median slope between anchors; the rate is
the candidate with which most anchors agree. The offset at a cue is the median of the anchors around
it. Times are not used for a cue if most of the anchors around it disagree.

The distance of two blocks of cues is the part of the longer one that they do not share. A small
difference does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

CueSpans = Float64[ndarray, "n 2"]
"""Start and end of each sentence, in seconds; NaN if unknown."""
LinkedCues = tuple[Sequence[int], Sequence[int]]
"""Numbers of sentences of the source and of the target."""
_FILM = 24 / 1.001
_FRAMES = (_FILM, 24.0, 25.0, 30 / 1.001)
_RATES = (1.0, *sorted({a / b for a in _FRAMES for b in _FRAMES if a != b}))
"""Seconds of the target in a second of the source; 1 (equal rates) comes first."""
_TOLERANCE = 0.6
"""Seconds by which the start of a translated cue may differ."""
_LEAST_ANCHORS = 5
_AGREEING = 0.5
"""Minimum share of the anchors around a cue that agree."""
_AROUND = 7
"""Anchors before and after a cue that determine its offset."""
_SLOPES = 2000
"""Number of pairs of anchors to take the median slope of."""
_SLACK = 0.2
"""Seconds by which two spans may differ and still have distance 0. Without this slack, a block of
two cues on each side would have a smaller distance than the single cues, because the same
difference is a smaller part of a longer span."""
_SHORTEST = 1e-3


class TimeMap(NamedTuple):
    """Estimated times of the source's sentences in the target.

    Attributes:
        spans: of each sentence of the source, in the target's time.
        rate: seconds of the target in a second of the source.
        offset: median, in seconds.
        agreeing: share of the anchors within the tolerance.
    """

    spans: CueSpans
    rate: float
    offset: float
    agreeing: float

    def __str__(self) -> str:
        return (
            f"times of the target: {self.rate:.4f} x source {self.offset:+.2f} s;"
            f" {self.agreeing:.0%} of the links by meaning agree"
        )


def fit_times(
    links: Iterable[LinkedCues], source: CueSpans, target: CueSpans, *, seed: int = 0
) -> TimeMap | None:
    """Estimate the times of the source's sentences in the target; None if links do not agree.

    Args:
        links: found by meaning.
        source: spans of the source.
        target: spans of the target.
        seed: of the choice of pairs of anchors.
    """
    anchors = [(own[0], other[0]) for own, other in links if len(own) == len(other) == 1]
    if len(anchors) < _LEAST_ANCHORS:
        return None
    own, other = np.array(anchors).T
    x = source[own, 0]
    y = target[other, 0]
    rates = [*_RATES, _median_slope(x, y, seed)]
    agreeing = [_most_in_window(np.sort(y - rate * x)) for rate in rates]
    # If several rates agree equally often, take the first: rate 1 comes first, others are rare.
    rate = rates[int(np.argmax(agreeing))]
    offsets, shares = _local_offsets(x, y - rate * x, source[:, 0])
    offsets[shares < _AGREEING] = np.nan
    if np.isnan(offsets).all():
        return None
    is_near = np.abs(y - rate * x - offsets[own]) <= _TOLERANCE
    return TimeMap(
        rate * source + offsets[:, None],
        float(rate),
        float(np.nanmedian(offsets)),
        float(is_near.mean()),
    )


def _median_slope(x: Float64[ndarray, " n"], y: Float64[ndarray, " n"], seed: int) -> float:
    """Return the median slope between random anchors (Theil and Sen); 1 if there is none."""
    # All pairs would be too many in a long film.
    draw = np.random.default_rng(seed)
    first, second = draw.integers(len(x), size=(2, _SLOPES))
    distance = x[second] - x[first]
    # Anchors near each other have slopes of any size.
    is_far = np.abs(distance) > 0.1 * np.ptp(x)
    if not is_far.any():
        return 1.0
    return float(np.median((y[second] - y[first])[is_far] / distance[is_far]))


def _most_in_window(values: Float64[ndarray, " n"]) -> int:
    """Return how many of the sorted values can, at most, be within the tolerance of one offset."""
    ends = np.searchsorted(values, values + 2 * _TOLERANCE, side="right")
    return int((ends - np.arange(len(values))).max())


def _local_offsets(
    anchors: Float64[ndarray, " a"], offsets: Float64[ndarray, " a"], times: Float64[ndarray, " n"]
) -> tuple[Float64[ndarray, " n"], Float64[ndarray, " n"]]:
    """Return the median offset of the anchors around each time, and the share that agrees."""
    # The median ignores wrong anchors as long as they are fewer than half.
    order = np.argsort(anchors, kind="stable")
    places = np.searchsorted(anchors[order], times)
    medians = np.zeros(len(times))
    shares = np.zeros(len(times))
    for row, place in enumerate(places.tolist()):
        some = offsets[order[max(place - _AROUND, 0) : place + _AROUND]]
        medians[row] = np.median(some)
        shares[row] = np.mean(np.abs(some - medians[row]) <= _TOLERANCE)
    return medians, shares


def time_distances(
    source: CueSpans, target: CueSpans, shape: tuple[int, int], places: tuple[slice, slice]
) -> Float64[ndarray, "a b"]:
    """Compute the distances of blocks: 1 - shared time / time of the longer block; NaN if unknown.

    Args:
        source: spans of the source's sentences in the target's time.
        target: spans of the target's sentences.
        shape: sentences in a block of the source, and of the target.
        places: last sentences of the blocks.
    """
    own = _block_spans(source, shape[0], places[0])
    other = _block_spans(target, shape[1], places[1])
    return span_distances(own[:, None], other[None, :])


def span_distances(
    spans: Float64[ndarray, "*#s 2"], others: Float64[ndarray, "*#s 2"]
) -> Float64[ndarray, "*s"]:
    """Compute the distances of any number of pairs of spans; see ``time_distances``."""
    start = np.maximum(spans[..., 0], others[..., 0])
    end = np.minimum(spans[..., 1], others[..., 1])
    longer = np.maximum(spans[..., 1] - spans[..., 0], others[..., 1] - others[..., 0])
    shared = np.where(end > start, end - start + _SLACK, 0)
    # A missing time stays missing.
    shared = np.where(np.isnan(longer), np.nan, shared)
    return np.asarray(1 - np.clip(shared / np.maximum(longer, _SHORTEST), 0, 1))


def _block_spans(spans: CueSpans, size: int, places: slice) -> CueSpans:
    """Return the spans of blocks by their last sentences."""
    lasts = np.arange(len(spans))[places]
    firsts = np.maximum(lasts - size + 1, 0)
    return np.stack([spans[firsts, 0], spans[lasts, 1]], axis=1)


def alone_shares(spans: CueSpans, others: CueSpans) -> Float64[ndarray, " n"]:
    """Compute the share of each span that no span of the other side covers; 0 for unknown times.

    Args:
        spans: of one side.
        others: of the other side, in the same time.
    """
    known = others[~np.isnan(others[:, 0])]
    if not len(known):
        return np.zeros(len(spans))
    order = known[np.argsort(known[:, 0], kind="stable")]
    # Spans may overlap: keep only the part of each span after the ends of all earlier spans.
    latest = np.maximum.accumulate(order[:, 1])
    starts = np.maximum(order[:, 0], np.concatenate([[-np.inf], latest[:-1]]))
    ends = np.maximum(starts, order[:, 1])
    borders = np.stack([starts, ends], axis=1).ravel()
    totals = np.stack([np.zeros(len(starts)), ends - starts], axis=1).ravel().cumsum()
    covered = np.interp(spans[:, 1], borders, totals) - np.interp(spans[:, 0], borders, totals)
    lengths = np.maximum(spans[:, 1] - spans[:, 0], _SHORTEST)
    return np.asarray(np.nan_to_num(1 - np.clip(covered / lengths, 0, 1)))
