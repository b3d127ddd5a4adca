from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
import torch

from interlingua.kernels import calls, library
from interlingua.kernels.calls import (
    MIN_ELEMENTS,
    call_in_parts,
    call_kernel,
    can_use_training_kernel,
    computed_by,
    even_parts,
    threads_for,
)

X = torch.linspace(-3, 3, 9 * 16).view(9, 16)


def activated(bounds):
    """Compute GELU of X, one part from each bound to the next."""
    y = torch.zeros_like(X)

    def part(first, last):
        return 1, last - first, 16, X[first:], torch.zeros(16), y[first:]

    call_in_parts("activation", X, bounds, part)
    return y


needs_kernel = pytest.mark.skipif(library("training") is None, reason="needs the compiled kernel")


@needs_kernel
@pytest.mark.parametrize("openmp", [True, False])
def test_every_part_is_computed(monkeypatch, openmp):
    if not openmp:
        monkeypatch.setattr(calls, "_openmp", lambda: None)
    expected = torch.nn.functional.gelu(X)
    torch.testing.assert_close(activated([0, 9]), expected, rtol=1e-5, atol=1e-6)
    for bounds in ([0, 4, 5, 9], [0, 0, 9], list(range(10))):
        assert torch.equal(activated(bounds), activated([0, 9]))
    assert not activated([0, 4])[4:].any()


@pytest.mark.parametrize("openmp", [True, False])
@pytest.mark.parametrize("bad", [0, 2])
def test_an_error_in_any_part_is_raised(monkeypatch, openmp, bad):
    if not openmp:
        monkeypatch.setattr(calls, "_openmp", lambda: None)

    def part(first, last):
        if first == bad:
            raise IndexError(f"part {first}")
        return 1, 2, 16, X, X[0], X

    with pytest.raises(IndexError, match=f"part {bad}"):
        call_in_parts("activation", X, [0, 2, 4], part)


@needs_kernel
@pytest.mark.skipif(calls._openmp() is None, reason="torch has no GNU OpenMP here")
def test_parts_are_run_in_the_threads_of_torchs_openmp():
    # A function of this test in place of GOMP_parallel: it is called, and with all threads.
    asked = []
    kind = ctypes.CFUNCTYPE(
        None, ctypes.CFUNCTYPE(None, ctypes.c_void_p), ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint
    )

    @kind
    def team(work, data, threads, flags):
        asked.append((threads, flags))
        work(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "_openmp", lambda: ctypes.cast(team, ctypes.c_void_p))
        patch.setattr(torch, "get_num_threads", lambda: 5)
        activated([0, 9])
        assert torch.equal(activated([0, 4, 9]), activated([0, 9]))
    assert asked == [(5, 0)]


def test_the_passes_are_in_the_order_of_the_c_source():
    source = Path(calls.__file__).with_name("training.c").read_text(encoding="utf-8")
    [table] = re.findall(r"passes\[\] = \{([^}]*)\}", source)
    assert re.findall(r"pass_(\w+)", table) == list(calls._FUNCTIONS)
    for name, kinds in calls._FUNCTIONS.items():
        [slots] = re.findall(rf"return {name}\(([^;]*)\);", source)
        # The type of the activations first; then each argument once, in order.
        found = re.findall(r"AT\((\d+)\)|a\[(\d+)\]|(eps)", slots)
        numbers = ["9" if eps else address or number for address, number, eps in found]
        assert numbers == [str(place) for place in range(len(kinds) + 1)]
        for (address, _, _), kind in zip(found[1:], kinds, strict=True):
            assert address or kind == "."


def test_as_many_threads_as_pay(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    counts = [threads_for(size) for size in (0, MIN_ELEMENTS, 2 * MIN_ELEMENTS, 9 * MIN_ELEMENTS)]
    assert counts == [1, 1, 2, 4]
    assert even_parts(7, MIN_ELEMENTS) == [0, 1, 3, 5, 7]
    assert even_parts(2, 9 * MIN_ELEMENTS) == [0, 1, 2]
    assert even_parts(0, 10) == [0, 0]


@needs_kernel
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
    [arguments] = re.findall(
        rf"^static int {name}\(int64_t type, ([^)]*)\) {{", source, re.MULTILINE
    )
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
        with pytest.raises(TypeError, match=r"activation: .*torch\.float32 on the CPU"):
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
        with pytest.raises(ValueError, match=rf"{name}: expected {short.numel() + 1} elements"):
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
