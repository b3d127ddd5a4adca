"""``run.precision = "auto"`` on a CPU: the faster precision of a trial."""

from __future__ import annotations

import pytest
import torch

from interlingua.kernels.rates import VARIABLE, remembered
from interlingua.train import precision
from interlingua.train.engine import _precision
from tests.verbs.test_info import _own_cache as _own_cache


def with_unit(monkeypatch, has_it):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_it)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)


@pytest.mark.parametrize(("fp32", "expected"), [(1.04, "bf16"), (1.06, "fp32"), (0.4, "bf16")])
def test_fp32_has_to_be_faster_by_the_margin(monkeypatch, fp32, expected):
    monkeypatch.delenv(VARIABLE)
    with_unit(monkeypatch, True)
    monkeypatch.setattr(precision, "_measure", lambda: {"bf16": 1.0, "fp32": fp32})
    assert _precision("auto", "cpu") == expected
    assert _precision("bf16", "cpu") == "bf16"


def test_nothing_is_measured_without_a_choice(monkeypatch):
    monkeypatch.setattr(precision, "_measure", lambda: pytest.fail("measured"))
    with_unit(monkeypatch, True)
    assert _precision("auto", "cpu") == "bf16"  # the variable is "first"
    monkeypatch.delenv(VARIABLE)
    with_unit(monkeypatch, False)
    assert _precision("auto", "cpu") == "fp32"


def test_the_trial_is_remembered_and_draws_no_random_number(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    with_unit(monkeypatch, True)
    state = torch.get_rng_state()
    rates = precision.precision_rates()
    assert torch.equal(torch.get_rng_state(), state)
    assert set(rates) == {"bf16", "fp32"}
    assert min(rates.values()) > 0
    assert rates in remembered().values()
