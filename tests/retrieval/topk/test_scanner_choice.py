"""A kernel that is slower than plain torch is not taken for a large search."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua import kernels
from interlingua.encoder.executors import choice
from interlingua.retrieval.topk import exact, scanner_choice
from interlingua.retrieval.topk.bounds import Frame
from interlingua.retrieval.topk.exact import make_frame, make_scanner, mutual_topk
from interlingua.retrieval.topk.kernel_scanner import CompiledScanner
from interlingua.retrieval.topk.scanner_choice import TRIED_PAIRS, choose_scanner, describe_choices
from interlingua.retrieval.topk.torch_scanner import TorchScanner
from tests.retrieval.topk.scanners import assert_equal, crowded

needs_kernel = pytest.mark.skipif(not CompiledScanner.available(), reason="not compiled here")
FRAME = Frame(np.zeros(16, np.float32), np.zeros(16, np.float32))


class Slow(TorchScanner):
    """A kernel that finds what it should, in four times as long as torch on any machine."""

    def scan(self, x, y, of_x, of_y):
        for _ in range(4):
            super().scan(x, y, of_x, of_y)


class Instant(CompiledScanner):
    """A kernel that needs no time."""

    def scan(self, x, y, of_x, of_y):
        pass


@pytest.fixture(autouse=True)
def _measures(monkeypatch, tmp_path):
    """No stored measurements, no forced scanner, and a separate cache folder."""
    monkeypatch.delenv(choice.EXECUTOR_VARIABLE)
    monkeypatch.delenv(kernels.KERNELS_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(choice, "_MEASURED", {})


def with_kernel(monkeypatch, kernel):
    monkeypatch.setitem(scanner_choice.SCANNERS, "kernel", kernel)
    monkeypatch.setattr(exact, "CompiledScanner", kernel)


@needs_kernel
def test_a_slower_kernel_is_not_taken_and_the_results_are_equal(monkeypatch):
    x, y = crowded(3, 90, 120, 16)
    expected = mutual_topk(x, y, k=4)
    with_kernel(monkeypatch, Slow)
    monkeypatch.setattr(scanner_choice, "TRIED_PAIRS", 1)
    frame = make_frame(x, y)
    assert type(make_scanner(frame, pairs=len(x) * len(y))) is TorchScanner
    [(key, found)] = choice.remembered().items()
    assert found["kernel"] < found["torch"]
    assert "width=16" in key
    # From here on a kernel that was called would fail.
    with_kernel(monkeypatch, None)
    assert_equal(mutual_topk(x, y, k=4), expected)


@needs_kernel
def test_a_faster_kernel_is_taken(monkeypatch):
    with_kernel(monkeypatch, Instant)
    assert isinstance(make_scanner(FRAME, pairs=TRIED_PAIRS), Instant)
    choice._MEASURED.clear()  # another process
    monkeypatch.setattr(choice, "trial_rates", lambda trial: pytest.fail("measured again"))
    assert choose_scanner(FRAME, TRIED_PAIRS) == "kernel"


@needs_kernel
def test_a_small_search_has_no_trial(monkeypatch):
    monkeypatch.setattr(choice, "trial_rates", lambda trial: pytest.fail("measured"))
    assert choose_scanner(FRAME, TRIED_PAIRS - 1) == "kernel"
    assert isinstance(make_scanner(FRAME), CompiledScanner)


@needs_kernel
@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        (choice.EXECUTOR_VARIABLE, "first", "kernel"),
        (choice.EXECUTOR_VARIABLE, "kernel", "kernel"),
        (choice.EXECUTOR_VARIABLE, "torch", "torch"),
        (kernels.KERNELS_VARIABLE, "the variant", "kernel"),
        (kernels.KERNELS_VARIABLE, "0", "torch"),
    ],
)
def test_variables_decide_without_a_trial(monkeypatch, variable, value, expected):
    monkeypatch.setattr(choice, "trial_rates", lambda trial: pytest.fail("measured"))
    if value == "the variant":
        value = kernels.variant("neighbors")
    monkeypatch.setenv(variable, value)
    kernels.find_library.cache_clear()
    try:
        assert choose_scanner(FRAME, TRIED_PAIRS) == expected
    finally:
        kernels.find_library.cache_clear()


@needs_kernel
def test_executors_for_encoding_alone_leave_the_trial(monkeypatch):
    monkeypatch.setattr(choice, "trial_rates", lambda trial: {"kernel": 1.0, "torch": 2.0})
    monkeypatch.setenv(choice.EXECUTOR_VARIABLE, "onednn")
    assert choose_scanner(FRAME, TRIED_PAIRS) == "torch"


@needs_kernel
def test_widths_and_stages_have_rates_of_their_own(monkeypatch):
    measured = []
    monkeypatch.setattr(
        choice,
        "trial_rates",
        lambda trial: measured.append(trial) or {"kernel": 1.0, "torch": 1.0},
    )
    wide = np.zeros(128, np.float32)
    frames = [FRAME, Frame(wide, wide), Frame(wide, wide, np.eye(128, dtype=np.float32)), FRAME]
    for frame in frames:
        assert choose_scanner(frame, TRIED_PAIRS) == "kernel"
    assert len(measured) == 3


@needs_kernel
def test_the_description_names_choices_and_every_rate(monkeypatch):
    [unmeasured] = describe_choices()
    assert f"{TRIED_PAIRS:,}" in unmeasured
    assert unmeasured.endswith("not measured yet")
    found = iter([{"kernel": 1000.0, "torch": 2000.0}, {"kernel": 1000.0, "torch": 1049.0}])
    monkeypatch.setattr(choice, "trial_rates", lambda trial: next(found))
    wide = np.zeros(128, np.float32)
    for frame in (FRAME, Frame(wide, wide)):
        choose_scanner(frame, TRIED_PAIRS)
    expected = [
        "  width=128 stages=1: kernel, measured: kernel 1,000, torch 1,049",
        "  width=16 stages=1: torch, measured: kernel 1,000, torch 2,000",
    ]
    assert sorted(describe_choices()[1:]) == expected
    choice._MEASURED.clear()  # another process
    assert sorted(describe_choices()[1:]) == expected
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "another machine")
    assert describe_choices() == [unmeasured]


@needs_kernel
def test_the_description_names_the_variable_that_decides(monkeypatch):
    for value, expected in (("torch", "torch"), ("first", "kernel")):
        monkeypatch.setenv(choice.EXECUTOR_VARIABLE, value)
        [line] = describe_choices()
        assert f": {expected}, {choice.EXECUTOR_VARIABLE}" in line
    monkeypatch.delenv(choice.EXECUTOR_VARIABLE)
    monkeypatch.setenv(kernels.KERNELS_VARIABLE, kernels.variant("neighbors"))
    [line] = describe_choices()
    assert f": kernel, {kernels.KERNELS_VARIABLE}" in line
    monkeypatch.setattr(CompiledScanner, "available", lambda: False)
    [line] = describe_choices()
    assert ": torch, the only executor that can compute this" in line


def test_a_frame_with_axes_is_measured_with_axes(monkeypatch):
    """Measure with axes, by which a scanner skips pairs: another rate."""
    frames = []

    class Seen(TorchScanner):
        def __init__(self, frame):
            frames.append(frame)
            super().__init__(frame)

    monkeypatch.setattr(scanner_choice, "SCANNERS", {"torch": Seen})
    monkeypatch.setattr(scanner_choice, "_ROWS", 16)
    monkeypatch.setattr(scanner_choice, "_COLUMNS", 16)
    axes = np.eye(16, dtype=np.float32)
    scanner_choice._trial(FRAME)
    scanner_choice._trial(Frame(FRAME.x, FRAME.y, axes))
    assert [frame.axes is not None for frame in frames] == [False, True]
