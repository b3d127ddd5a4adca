from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
import torch

from interlingua.kernels import calls, library
from interlingua.kernels.calls import (
    MIN_ELEMENTS,
    call_kernel,
    can_use_training_kernel,
    computed_by,
    even_parts,
    in_threads,
    threads_for,
)


def threads_of_three_parts():
    ran, together = [], threading.Barrier(3, timeout=20)

    def part(first, last):
        together.wait()  # so all three are running at the same time
        ran.append((first, last, threading.get_native_id()))

    in_threads([0, 4, 5, 9], part)
    assert sorted(places[:2] for places in ran) == [(0, 4), (4, 5), (5, 9)]
    found = {thread for _, _, thread in ran}
    assert len(found) == 3
    assert threading.get_native_id() in found
    return found


def test_every_part_is_run_once_each_in_a_thread_of_its_own():
    threads_of_three_parts()


def test_every_part_is_run_once_in_threads_of_python_without_openmp(monkeypatch):
    monkeypatch.setattr(calls, "_openmp", lambda: None)
    threads_of_three_parts()


@pytest.mark.skipif(calls._openmp() is None, reason="torch has no GNU OpenMP here")
def test_parts_are_run_in_the_threads_of_torchs_openmp():
    # The same team again and again; threads of Python would be new ones.
    assert threads_of_three_parts() == threads_of_three_parts()


@pytest.mark.parametrize("bad", [0, 2])
def test_an_error_in_any_part_is_raised(bad):
    def part(first, last):
        if first == bad:
            raise IndexError(f"part {first}")

    with pytest.raises(IndexError, match=f"part {bad}"):
        in_threads([0, 2, 4], part)


def test_as_many_threads_as_pay(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    counts = [threads_for(size) for size in (0, MIN_ELEMENTS, 2 * MIN_ELEMENTS, 9 * MIN_ELEMENTS)]
    assert counts == [1, 1, 2, 4]
    assert even_parts(7, MIN_ELEMENTS) == [0, 1, 3, 5, 7]
    assert even_parts(2, 9 * MIN_ELEMENTS) == [0, 1, 2]
    assert even_parts(0, 10) == [0, 0]


@pytest.mark.skipif(library("training") is None, reason="needs the compiled kernel")
def test_what_it_is_available_for():
    for dtype, expected in ((torch.float32, True), (torch.bfloat16, True), (torch.float64, False)):
        assert can_use_training_kernel(torch.ones(1, dtype=dtype)) == expected
    assert not can_use_training_kernel(torch.ones(1, device="meta"))


@pytest.fixture
def kernel(monkeypatch):
    """Functions without effect that return the kernel's attribute ``status``."""

    class Kernel:
        status = 0

        def __getattr__(self, name):
            return lambda *arguments: self.status

    made = Kernel()
    monkeypatch.setattr(calls, "library", lambda name: made)
    return made


def test_want_of_memory_is_an_error(kernel):
    kernel.status = 1
    x = torch.ones(1)
    with pytest.raises(MemoryError, match="memory for attention"):
        call_kernel("attention", x, 3, 0, 1, x, x, x, x)


def kinds_in_c(name):
    """Return the types to which the arguments of a function of training.c point.

    See ``calls._FUNCTIONS``.
    """
    source = Path(calls.__file__).with_name("training.c").read_text(encoding="utf-8")
    [arguments] = re.findall(rf"^int {name}\(int64_t type, ([^)]*)\) {{", source, re.MULTILINE)
    letters = {"void*": "a", "float*": "f", "int64_t*": "i"}
    types = [re.sub(r"const |\w+$| ", "", argument.strip()) for argument in arguments.split(",")]
    return "".join(letters.get(kind, ".") for kind in types)


@pytest.mark.parametrize("name", calls._FUNCTIONS)
def test_what_is_checked_is_what_the_c_source_says(name):
    assert calls._FUNCTIONS[name] == kinds_in_c(name)


@pytest.mark.parametrize(
    "bad",
    [
        torch.ones(4, dtype=torch.float64),
        torch.ones(4, dtype=torch.bfloat16),
        torch.ones(4, device="meta"),
        torch.ones(8)[::2],
        None,
    ],
)
@pytest.mark.usefixtures("kernel")
def test_no_address_of_another_type_or_place_goes_to_c(bad):
    x = torch.ones(4)
    call_kernel("activation", x, 1, 1, 4, x, x, x)
    for place in range(3):
        tensors = [x, x, x]
        tensors[place] = bad
        with pytest.raises(TypeError, match=r"activation .*torch\.float32 on cpu"):
            call_kernel("activation", x, 1, 1, 4, *tensors)


WIDE, NARROW, TALL, WHOLE = torch.ones(3, 16), torch.ones(16), torch.ones(3), torch.ones(3).long()
TENSORS = {"n": WIDE, "w": NARROW, "r": TALL, "i": WHOLE, ".": None}
TAKEN = {
    "residual_norm": [3, 16, *"nnw.ww.nnr"],
    "residual_norm_back": [3, 16, *"nnr.wnnwww"],
    "activation": [1, 3, 16, *"nwn"],
    "activation_back": [1, 3, 16, *"nnwnw"],
    "observe": [3, 16, *"nwirrr"],
    "slopes_of": [3, 16, *"nwirrnw"],
}
"""Arguments of each function, by the letters of ``TENSORS``."""


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.usefixtures("kernel")
def test_no_tensor_that_is_too_small_goes_to_c(name):
    good = [TENSORS.get(value, value) for value in TAKEN[name]]
    call_kernel(name, WIDE, *good)
    places = [place for place, value in enumerate(good) if isinstance(value, torch.Tensor)]
    for place in places:
        short = good[place].flatten()[:-1].clone()
        with pytest.raises(ValueError, match=rf"{name} takes {short.numel() + 1} numbers"):
            call_kernel(name, WIDE, *good[:place], short, *good[place + 1 :])
    with pytest.raises(ValueError, match="at least 0"):
        call_kernel(name, WIDE, *good[: places[0] - 2], -3, -16, *good[places[0] :])


def test_sizes_are_known_of_all_functions_but_attention():
    assert calls._FUNCTIONS.keys() - calls._SIZES.keys() == {"attention", "attention_back"}
    for name, sizes in calls._SIZES.items():
        assert [size == "." for size in sizes] == [kind == "." for kind in calls._FUNCTIONS[name]]


def test_a_variant_that_was_never_measured_has_to_be_named(monkeypatch):
    monkeypatch.setattr(calls, "library", lambda name: object())
    monkeypatch.setattr(calls, "variant", lambda name: "neon")
    monkeypatch.setattr(calls.chosen, "executor", None)
    for value, used in (("", False), ("1", False), ("neon", True)):
        monkeypatch.setenv("INTERLINGUA_KERNELS", value)
        assert can_use_training_kernel(torch.ones(1)) == used
    monkeypatch.setattr(calls, "variant", lambda name: "avx2")
    monkeypatch.delenv("INTERLINGUA_KERNELS")
    assert can_use_training_kernel(torch.ones(1))


def test_who_is_chosen_computes_until_the_end_of_the_block(monkeypatch):
    monkeypatch.setattr(calls, "library", lambda name: object())
    monkeypatch.setattr(calls, "variant", lambda name: "neon")
    monkeypatch.setattr(calls.chosen, "executor", None)
    with computed_by("kernel"):
        assert can_use_training_kernel(torch.ones(1))
        assert not can_use_training_kernel(torch.ones(1, dtype=torch.float16))
        with computed_by("torch"):
            assert not can_use_training_kernel(torch.ones(1))
        assert can_use_training_kernel(torch.ones(1))
        monkeypatch.setattr(calls, "library", lambda name: None)
        assert not can_use_training_kernel(torch.ones(1))
    assert calls.chosen.executor is None
