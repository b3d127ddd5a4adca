"""``run.precision`` and ``run.executor`` = "auto" on a CPU: the fastest way of a trial."""

from __future__ import annotations

import pytest
import torch

from interlingua import kernels
from interlingua.encoder.executors import choice, training_passes
from interlingua.encoder.executors.choice import EXECUTOR_VARIABLE, remembered
from interlingua.encoder.executors.training_passes import (
    Way,
    choose_way,
    fastest_on_cpu,
    fastest_way,
)
from interlingua.kernels import calls
from tests.encoder.executors.test_choice import keep_busy
from tests.encoder.executors.test_fused import NoKernel
from tests.verbs.test_info import _own_cache as _own_cache

keeps_float32 = training_passes.onednn_keeps_float32


@pytest.fixture(autouse=True)
def _kernel(monkeypatch):
    """A training kernel without effect, so that these tests need neither it nor oneDNN."""
    use_kernel(monkeypatch, NoKernel())
    with_onednn(monkeypatch, False)


def use_kernel(monkeypatch, kernel, variant="avx2"):
    monkeypatch.setattr(calls, "library", lambda name: kernel)
    monkeypatch.setattr(calls, "variant", lambda name: variant if kernel else None)


def with_unit(monkeypatch, has_it):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_it)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)


def with_rates(monkeypatch, **rates):
    """Set rates by the names of ways, with "_" for the space."""
    monkeypatch.delenv(EXECUTOR_VARIABLE)
    found = {name.replace("_", " "): rate for name, rate in rates.items()}
    monkeypatch.setattr(
        choice,
        "trial_rates",
        lambda trial: {name: found.get(name, 0.1) for name in trial().runs},
    )


@pytest.mark.parametrize(("fp32", "expected"), [(1.04, "bf16"), (1.06, "fp32"), (0.4, "bf16")])
def test_fp32_has_to_be_faster_by_the_margin(monkeypatch, fp32, expected):
    with_unit(monkeypatch, True)
    with_rates(monkeypatch, bf16_kernel=1.0, fp32_kernel=fp32)
    assert fastest_on_cpu() == Way(expected, "kernel")
    assert fastest_on_cpu("bf16") == Way("bf16", "kernel")


@pytest.mark.parametrize(("torchs", "expected"), [(1.04, "kernel"), (1.06, "torch")])
@pytest.mark.parametrize("which", ["bf16", "fp32"])
def test_torch_has_to_be_faster_by_the_margin(monkeypatch, which, torchs, expected):
    with_rates(monkeypatch, **{f"{which}_kernel": 1.0, f"{which}_torch": torchs})
    assert fastest_on_cpu(which) == Way(which, expected)


def test_the_precision_is_that_of_the_fastest_way(monkeypatch):
    with_unit(monkeypatch, True)
    with_rates(monkeypatch, bf16_kernel=1.0, bf16_torch=3.0, fp32_kernel=2.0)
    assert fastest_on_cpu() == Way("bf16", "torch")
    assert fastest_on_cpu(executor="kernel") == Way("fp32", "kernel")


class SlowKernel:
    """Kernel that takes ten milliseconds for each call."""

    def __getattr__(self, name):
        def call(*arguments):
            keep_busy(0.01)
            return 0

        return call


@pytest.mark.parametrize("which", ["bf16", "fp32"])
def test_a_slow_kernel_is_not_taken(monkeypatch, which):
    monkeypatch.delenv(EXECUTOR_VARIABLE)
    use_kernel(monkeypatch, SlowKernel())
    assert fastest_on_cpu(which).executor == "torch"
    assert calls.chosen.executor is None  # the trial leaves nothing behind


@pytest.mark.parametrize(("variable", "expected"), [("kernel", "kernel"), ("torch", "torch")])
def test_a_named_executor_is_not_tried(monkeypatch, variable, expected):
    with_unit(monkeypatch, False)
    monkeypatch.setattr(choice, "trial_rates", lambda trial: pytest.fail("measured"))
    monkeypatch.setenv(EXECUTOR_VARIABLE, variable)
    assert fastest_on_cpu().executor == expected
    for named in training_passes.TRAINING_EXECUTORS:
        assert fastest_on_cpu(executor=named).executor == named


@pytest.mark.parametrize(
    ("variant", "variable", "expected"),
    [("avx2", "", "kernel"), ("neon", "", "torch"), ("neon", "neon", "kernel")],
)
def test_the_first_is_a_variant_that_was_measured_or_named(
    monkeypatch, variant, variable, expected
):
    monkeypatch.setattr(choice, "trial_rates", lambda trial: pytest.fail("measured"))
    use_kernel(monkeypatch, NoKernel(), variant)
    monkeypatch.setenv(kernels.KERNELS_VARIABLE, variable)
    assert fastest_on_cpu("fp32").executor == expected  # the variable is "first"


def test_a_named_variant_is_not_tried(monkeypatch):
    monkeypatch.setattr(choice, "trial_rates", lambda trial: pytest.fail("measured"))
    monkeypatch.delenv(EXECUTOR_VARIABLE)
    use_kernel(monkeypatch, NoKernel(), "neon")
    monkeypatch.setenv(kernels.KERNELS_VARIABLE, "neon")
    assert fastest_on_cpu("fp32").executor == "kernel"


def test_a_variant_that_was_never_measured_is_tried(monkeypatch):
    with_rates(monkeypatch, fp32_kernel=1.0)
    use_kernel(monkeypatch, NoKernel(), "dotprod")
    assert fastest_on_cpu("fp32").executor == "kernel"


def test_nothing_is_measured_without_a_choice(monkeypatch):
    monkeypatch.setattr(choice, "trial_rates", lambda trial: pytest.fail("measured"))
    with_unit(monkeypatch, True)
    assert fastest_on_cpu() == Way("bf16", "kernel")  # the variable is "first"
    monkeypatch.delenv(EXECUTOR_VARIABLE)
    assert fastest_on_cpu("fp16") == Way("fp16", "torch")
    use_kernel(monkeypatch, None)
    with_unit(monkeypatch, False)
    assert fastest_on_cpu() == Way("fp32", "torch")


def test_the_trial_is_remembered_and_draws_no_random_number(monkeypatch):
    monkeypatch.delenv(EXECUTOR_VARIABLE)
    with_unit(monkeypatch, True)
    state = torch.get_rng_state()
    rates = choose_way().rates
    assert torch.equal(torch.get_rng_state(), state)
    assert list(rates) == ["bf16 kernel", "bf16 torch", "fp32 kernel", "fp32 torch"]
    assert min(rates.values()) > 0
    of_one = choose_way("fp32").rates
    assert list(of_one) == ["fp32 kernel", "fp32 torch"]
    assert rates in remembered().values()
    assert of_one in remembered().values()


def with_onednn(monkeypatch, is_exact):
    monkeypatch.setattr(training_passes, "onednn_keeps_float32", lambda: is_exact)


@pytest.mark.parametrize(
    ("rate", "expected"), [(1.04, "kernel"), (1.06, "kernel-onednn"), (2.0, "kernel-onednn")]
)
def test_onednn_has_to_be_faster_by_the_margin(monkeypatch, rate, expected):
    with_onednn(monkeypatch, True)
    with_rates(monkeypatch, fp32_kernel=1.0, **{"fp32_kernel-onednn": rate})
    assert fastest_on_cpu("fp32") == Way("fp32", expected)


def test_onednn_is_tried_for_float32_alone_and_where_it_is_exact(monkeypatch):
    with_unit(monkeypatch, True)
    with_rates(monkeypatch)
    with_onednn(monkeypatch, True)
    named = ["bf16 kernel", "bf16 torch", "fp32 kernel", "fp32 torch"]
    products = ["fp32 kernel-onednn", "fp32 torch-onednn"]
    assert list(choose_way().rates) == [*named, *products]
    with_onednn(monkeypatch, False)
    assert list(choose_way().rates) == named


@pytest.mark.parametrize("variable", ["first", "kernel", "torch"])
def test_a_variable_leaves_no_products_to_try(monkeypatch, variable):
    with_onednn(monkeypatch, True)
    monkeypatch.setenv(EXECUTOR_VARIABLE, variable)
    assert fastest_on_cpu("fp32").executor == variable.replace("first", "kernel")


def test_tiles_and_rounded_products_are_not_float32(monkeypatch):
    found = keeps_float32.__wrapped__
    before = torch.get_float32_matmul_precision()
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert not found()
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    monkeypatch.setattr(training_passes, "ALLOWED", 0.0)
    assert not found()
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("is_exact", [True, False])
def test_the_precision_of_products_is_that_of_the_block(monkeypatch, is_exact):
    with_onednn(monkeypatch, is_exact)
    before = torch.get_float32_matmul_precision()
    with training_passes.computed_as("torch-onednn"):
        assert torch.get_float32_matmul_precision() == ("medium" if is_exact else before)
        assert calls.chosen.executor == "torch"
    with training_passes.computed_as("kernel"):
        assert torch.get_float32_matmul_precision() == before
        assert calls.chosen.executor == "kernel"
    assert calls.chosen.executor is None


@pytest.mark.skipif(not keeps_float32(), reason="oneDNN would round to bfloat16 here")
def test_products_of_onednn_are_float32(monkeypatch):
    with_onednn(monkeypatch, True)
    generator = torch.Generator().manual_seed(1)
    left = torch.randn(190, 384, generator=generator)
    right = torch.randn(384, 1536, generator=generator)
    exact = left.double() @ right.double()
    with training_passes.computed_as("torch-onednn"):
        found = left @ right
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("capability", "has_bf16", "expected"),
    [((8, 0), True, "bf16"), ((7, 0), False, "fp16"), ((6, 1), False, "fp32")],
    ids=["A100", "V100", "GTX 1080"],
)
def test_auto_takes_the_fast_precision_of_a_gpu(monkeypatch, capability, has_bf16, expected):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bf16)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert fastest_way("auto", "auto", "cuda") == (expected, "torch")
    assert fastest_way("fp32", "auto", "cuda") == ("fp32", "torch")
