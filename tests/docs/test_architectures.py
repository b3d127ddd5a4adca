"""docs/reference/architectures.md names the families, executors and limits that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from interlingua.encoder.executors import choice, layers
from interlingua.encoder.modeling.families import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "reference" / "architectures.md").read_text(encoding="utf-8")


def test_every_family_is_in_the_first_table():
    table = TEXT.partition("## What was tested")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.M)
    names = re.findall(r"`([\w-]+)`", " ".join(cells))
    assert {*names} - {"model_type"} == {*FAMILIES}


def test_every_executor_and_limit_is_named():
    rows = re.findall(r"^\| `([\w-]+)` \| (?:all layers in|the same in|all shapes)", TEXT, re.M)
    assert rows == list(layers.LAYER_EXECUTORS)
    for value in (
        choice.EXECUTOR_VARIABLE,
        layers.MEAN_COSINE,
        layers.LOWEST_COSINE,
        choice._TRIAL_SECONDS,
    ):
        assert str(value) in TEXT
    assert f"{choice.SPEED_MARGIN - 1:.0%}".replace("%", " %") in TEXT


def test_tests_that_it_names_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)`", TEXT)
    assert len(named) == 4
    assert [path for path in named if not (ROOT / path).is_file()] == []
