"""The language weight of the experiments at a CPU's size: one weight, of the mean, in every arm.

The sum of Eq. (3) grows with n (N - 2), for n pairs and N sentences, so that a weight of it fits
one batch. The weight was tuned with 32 pairs; arms have 32 or 128, with other texts or without.
"""

from __future__ import annotations

import pytest

from interlingua.training.config import load_train_config
from tests.experiments.test_arms import arms_script, read
from tests.experiments.test_experiments import ROOT

TUNED = 0.1 * 2 * 32 * (64 - 2)
"""Weight of a sum over 32 pairs, equal to that of the mean over its logarithms."""
ROWS = sorted((ROOT / "multilingual_ir").glob("tydi_*.toml"))
ARMS = [
    pytest.param(path, arm, id=f"{path.stem}-{arm.name}")
    for path in (ROOT / "claims" / f"{name}.toml" for name in ("ir", "ir_sizes", "ir_text"))
    for arm in read(path).arm
    if arm.config
]


@pytest.fixture(autouse=True)
def data_folder(monkeypatch):
    monkeypatch.setenv("INTERLINGUA_DATA", "/data")


def check(config):
    options = config.method.options
    if options.language_weight:
        assert options.language_reduction == "mean"
        assert options.language_weight == pytest.approx(TUNED)


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_a_row_has_the_tuned_weight_of_the_mean(path):
    check(load_train_config(path))


@pytest.mark.parametrize(("path", "arm"), ARMS)
def test_an_arm_has_the_tuned_weight_of_the_mean(path, arm):
    asked = arms_script.settings(read(path).set, arm.set)[1::2]
    check(load_train_config(path.parent / arm.config, overrides=asked))


def test_the_weights_that_were_tried_are_of_the_mean():
    path = ROOT / "claims" / "ir_weights.toml"
    tried = []
    for arm in read(path).arm:
        asked = arms_script.settings(read(path).set, arm.set)[1::2]
        options = load_train_config(path.parent / arm.config, overrides=asked).method.options
        if options.language_weight:
            assert options.language_reduction == "mean"
            tried.append(options.language_weight)
    assert tried == pytest.approx([0.2 * TUNED, TUNED, 5 * TUNED])
