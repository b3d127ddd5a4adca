from __future__ import annotations

import dataclasses

import pytest

from interlingua.errors import ConfigError
from interlingua.registry import METHODS, resolve
from interlingua.train.bounds import (
    METHOD_BOUNDS,
    OPTIMIZER_BOUNDS,
    RUN_BOUNDS,
    SCHEDULE_BOUNDS,
    check_method,
)
from interlingua.train.config import OptimizerConfig, RunConfig, ScheduleConfig


def test_bounds_name_fields_that_there_are():
    assert set(RUN_BOUNDS) <= {field.name for field in dataclasses.fields(RunConfig)}
    assert set(SCHEDULE_BOUNDS) <= {field.name for field in dataclasses.fields(ScheduleConfig)}
    assert set(OPTIMIZER_BOUNDS) <= {field.name for field in dataclasses.fields(OptimizerConfig)}
    names = [
        field.name
        for name in METHODS
        for field in dataclasses.fields(resolve(METHODS, name).Config)
    ]
    for end in METHOD_BOUNDS:
        assert any(name.endswith(end) for name in names), end


@pytest.mark.parametrize("name", ["ems", "laser", "infoxlm", "mexma", "calibrated", "dap"])
def test_defaults_of_methods_are_in_range(name):
    check_method(resolve(METHODS, name).Config(), "method")


@pytest.mark.parametrize(
    ("section", "options"),
    [
        (RunConfig, {"threads": 1_000_000}),
        (RunConfig, {"devices": 1_000_000}),
        (OptimizerConfig, {"betas": (2.0, 0.9)}),
        (OptimizerConfig, {"betas": (0.9, 1.0)}),
        (OptimizerConfig, {"eps": 0.0}),
    ],
)
def test_numbers_out_of_range_are_refused(section, options, tmp_path):
    needed = {"output": tmp_path, "max_steps": 1} if section is RunConfig else {}
    with pytest.raises(ConfigError, match=next(iter(options))):
        section(**needed, **options)


def test_a_size_of_a_method_is_refused():
    config = resolve(METHODS, "ems").Config
    with pytest.raises(ConfigError, match="projection_dim"):
        check_method(config(projection_dim=2**40), "method")
