from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from interlingua import runtime
from interlingua.runtime import Expected, Steps, duration, peak_rss_bytes, size_text, time_left


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def followed(expected):
    clock, shown = Clock(), []
    steps = Steps(lambda *at: shown.append(at), clock)
    steps.expect(expected)

    def at(seconds, what, done, total):
        clock.now = 100.0 + seconds
        steps(what, done, total)
        return shown[-1][3]

    return steps, at


def test_the_time_left_is_that_of_all_steps():
    """Two sides embedded, the second twice as long as the first, then 30 s and 5 s that are
    expected."""
    _, at = followed(
        {
            "embedding a": Expected(1000, None),
            "embedding b": Expected(2000, None),
            "search": Expected(30.0),
            "writing": Expected(100, 0.05),
        }
    )
    assert at(0, "embedding a", 0, 10) is None  # the model is not known yet
    assert at(2, "embedding a", 1, 10) == 9 * 2 + 40 + 35
    assert at(20, "embedding a", 10, 10) == 40 + 35
    assert at(20, "embedding b", 0, 20) == 40 + 35
    assert at(30, "embedding b", 10, 20) == 10 + 35
    assert at(40, "search", 0, 9) == 35
    assert at(60, "search", 3, 9) == 40 + 5
    assert at(120, "writing", 0, 0) == 5
    assert at(121, "writing", 10, 50) == 4


def test_what_was_done_before_is_not_taken_for_speed():
    _, at = followed({"embedding a": Expected(1000, None), "search": Expected(10.0)})
    assert at(0, "embedding a", 900, 1000) is None
    assert at(5, "embedding a", 950, 1000) == 5 + 10


def test_nothing_is_told_where_nothing_is_expected():
    steps, at = followed({})
    assert at(0, "reading a", 5, 0) is None
    assert at(1, "reading a", 10, 20) is None
    steps.expect({"reading a": Expected(3.0), "rest": Expected(2.0)})
    assert at(2, "reading a", 15, 20) == 2 * 5 / 10 + 2


def test_a_step_that_nobody_expected_has_its_own_speed():
    _, at = followed({"rest": Expected(2.0)})
    assert at(0, "surprise", 0, 10) is None
    assert at(1, "surprise", 5, 10) == 3


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (119, "119 s"), (120, "2.0 min"), (9000, "2.5 h"), (200_000, "2.3 days")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_time_left_is_by_the_speed_so_far():
    assert time_left(25, 100, 60) == ", 3.0 min left"
    for done, total in ((0, 100), (5, None), (100, 100)):
        assert time_left(done, total, 9.0) == ""


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


def test_the_types_of_progress_are_defined_once():
    defined = re.compile(r"^(?:Progress|Streamed|Counted) = |^class Progress\b|^def silent\(", re.M)
    source = Path(runtime.__file__).parent
    found = {
        path.relative_to(source).as_posix(): defined.findall(path.read_text(encoding="utf-8"))
        for path in source.rglob("*.py")
    }
    assert {name for name, lines in found.items() if lines} == {"runtime.py"}
    assert len(found["runtime.py"]) == 4
