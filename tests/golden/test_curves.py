"""Twenty steps of every method, number for number: what a change of the code must not change by
accident.

One file per method, ``{"<case>": {"options": {...}, "curve": [...]}}``; UPDATE_GOLDEN=1 writes the
curves anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from interlingua.config.registry import METHODS
from tests.methods.harness import tiny_objective, training

FOLDER = Path(__file__).parent
TOLERANCE = 1e-4
CASES = [
    (method, case) for method in sorted(METHODS) if (FOLDER / f"{method}.json").is_file()
    for case in json.loads((FOLDER / f"{method}.json").read_text(encoding="utf-8"))
]  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_every_method_has_a_curve():
    assert {method for method, _ in CASES} == set(METHODS)


@pytest.mark.parametrize(
    ("method", "case"), CASES, ids=[f"{method}: {case}" for method, case in CASES]
)
def test_loss_curve(method, case):
    file = FOLDER / f"{method}.json"
    cases = json.loads(file.read_text(encoding="utf-8"))
    options = cases[case]["options"]
    curve = list(training(tiny_objective(method, options), method, options, steps=range(20)))
    if os.environ.get("UPDATE_GOLDEN"):
        cases[case]["curve"] = [float(f"{loss:.6g}") for loss in curve]
        file.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
    assert curve == pytest.approx(cases[case]["curve"], rel=TOLERANCE)
