from __future__ import annotations

import pytest

from interlingua.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    InterlinguaError,
    MissingExtraError,
    TaskError,
)


@pytest.mark.parametrize("kind", [ConfigError, DataError, CheckpointError, TaskError])
def test_one_base_for_everything_a_user_can_mend(kind):
    assert issubclass(kind, InterlinguaError)


def test_data_error_names_the_place():
    assert str(DataError("empty")) == "empty"
    assert str(DataError("empty", path="a.tsv")) == "a.tsv: empty"
    error = DataError("two columns expected, got 3", path="a.tsv", line=7)
    assert str(error) == "a.tsv:7: two columns expected, got 3"
    assert isinstance(error, ValueError)


def test_missing_extra_prints_the_pip_line():
    error = MissingExtraError("zstandard", "zst")
    assert "pip install 'interlingua[zst]'" in str(error)
    assert isinstance(error, ImportError)
