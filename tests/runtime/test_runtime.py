from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from interlingua import runtime
from interlingua.runtime import duration, peak_rss_bytes, size_text
from interlingua.runtime.progress import Expected, StepsLeft, TimeLeft


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def followed(expected):
    clock = Clock()
    steps = StepsLeft(clock)
    steps.expect(expected)

    def at(seconds, what, done, total):
        clock.now = 100.0 + seconds
        return steps(what, done, total)

    return steps, at


def test_the_time_left_is_that_of_all_steps():
    """Embed two sides, the second twice as long, with 30 s and 5 s of expected steps after."""
    _, at = followed(
        {
            "embedding a": Expected(1000, None),
            "embedding b": Expected(2000, None),
            "search": Expected(30.0),
            "writing": Expected(100, 0.05),
        }
    )
    assert at(0, "embedding a", 0, 10) is None  # the model is not known yet
    for done in range(1, 6):
        assert at(2 * done, "embedding a", done, 10) is None  # not for long enough
    for done in range(6, 10):
        assert at(2 * done, "embedding a", done, 10) == 2 * (10 - done) + 40 + 35
    assert at(20, "embedding a", 10, 10) == 40 + 35
    assert at(20, "embedding b", 0, 20) == 40 + 35
    assert at(30, "embedding b", 5, 20) == 30 + 35  # by the speed of the first side
    assert at(60, "search", 0, 9) == 35
    for done in range(1, 5):
        assert at(60 + 10 * done, "search", done, 9) == pytest.approx(30 * (9 - done) / 9 + 5)
    assert at(110, "search", 5, 9) == 40 + 5  # measured: slower than was expected
    assert at(150, "writing", 0, 0) == 5
    assert at(151, "writing", 10, 50) == 4


def test_what_was_done_before_is_not_taken_for_speed():
    _, at = followed({"embedding a": Expected(1000, None), "search": Expected(10.0)})
    assert at(0, "embedding a", 900, 1000) is None
    for done in range(1, 4):
        assert at(5 * done, "embedding a", 900 + 10 * done, 1000) is None
    assert at(20, "embedding a", 940, 1000) == 30 + 10


def test_nothing_is_told_where_nothing_is_expected():
    steps, at = followed({})
    assert at(0, "reading a", 5, 0) is None
    assert at(1, "reading a", 10, 20) is None
    steps.expect({"reading a": Expected(3.0), "rest": Expected(2.0)})
    assert at(2, "reading a", 15, 20) == 3 * 5 / 20 + 2


def test_a_step_that_nobody_expected_has_its_own_speed():
    _, at = followed({"rest": Expected(2.0)})
    assert at(0, "surprise", 0, 10) is None
    for done in range(1, 6):
        assert at(4 * done, "surprise", done, 10) in (None, 4 * (10 - done) + 2)
    assert at(24, "surprise", 6, 10) == 16 + 2


@pytest.mark.parametrize("warm_up", [0.0, 1.0, 60.0, 600.0])
@pytest.mark.parametrize("each", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("total", [20, 1000])
@pytest.mark.parametrize("drift", [1.0, 1.5, 0.7])
def test_a_time_left_that_is_shown_is_within_a_factor_of_two(warm_up, each, total, drift):
    """Make the first piece slow, and the work slower or faster."""
    clock = Clock()
    meter = TimeLeft(clock)
    seconds = each * np.linspace(1.0, drift, total)
    seconds[0] += warm_up
    seconds[1] += warm_up / 3
    ends = 100.0 + np.cumsum(seconds)
    shown = 0
    assert meter(0, total) is None
    for done, clock.now in enumerate(ends[:-1], 1):
        left = meter(done, total)
        if left is not None:
            shown += 1
            assert 0.5 <= left / (ends[-1] - clock.now) <= 2
    # Work of a minute and more gets an estimate, once its warm-up is over.
    assert shown or each * total < 60


def test_a_slow_first_piece_is_no_speed():
    """Make the first of 100 pieces 76 s, the others 7 s: no estimate of 2.1 h for 12 min."""
    clock = Clock()
    meter = TimeLeft(clock)
    clock.now += 76
    assert meter(1, 100) is None
    for done in range(2, 6):
        clock.now += 7
        left = meter(done, 100)
        assert left is None or left == pytest.approx(7 * (100 - done))
    assert left is not None


def test_a_speed_that_changes_is_told_only_when_it_is_known_again():
    clock = Clock()
    meter = TimeLeft(clock)
    for done in range(1, 31):
        clock.now += 1
        left = meter(done, 1000)
    assert left == pytest.approx(970)
    told = []
    for done in range(31, 200):
        clock.now += 10
        told.append(meter(done, 1000))
    assert None in told
    assert told[-1] == pytest.approx(10 * 801, rel=0.5)


def test_work_that_starts_anew_has_no_estimate_until_it_is_measured():
    """Start the same work again at zero after its speed was known, as for a second prompt."""
    clock = Clock()
    meter = TimeLeft(clock)
    for done in range(31):
        clock.now += 1
        left = meter(done, 100)
    assert left == pytest.approx(70)
    for _ in range(2):
        clock.now += 1
        assert meter(0, 100) is None
    for done in range(1, 31):
        clock.now += 2
        left = meter(done, 100)
    assert left == pytest.approx(140)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (119, "119 s"), (120, "2.0 min"), (9000, "2.5 h"), (200_000, "2.3 days")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(2048, "2 KiB"), (3 * 2**20, "3.0 MiB"), (1.5 * 2**30, "1.5 GiB")]
)
def test_sizes(count, text):
    assert size_text(count) == text


def test_peak_memory_is_in_bytes():
    before = peak_rss_bytes()
    assert before > 5 * 2**20  # an interpreter
    np.ones(2**26, dtype=np.uint8).sum()  # 64 MiB, touched
    assert peak_rss_bytes() >= before


def test_progress_has_one_type():
    """Check that no callback replaces it, and that one module draws it."""
    callbacks = re.compile(r"\b(?:progress|advance|on_stage)\w*: Callable|import rich\.progress")
    source = Path(runtime.__file__).parent.parent
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if callbacks.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"runtime/progress.py"}
