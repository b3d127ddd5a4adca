"""Two processes, for every method: one on both their batches, sharded or not.

And a resumed run ends the same.
"""

from __future__ import annotations

import json

import pytest

from interlingua.config.registry import METHODS
from tests.distributed.worker import CONTRAST, NESTED
from tests.training.runs import run_python

# Of embeddings that can be cut: gathered negatives, terms of both kinds, a loss in parts.
NESTED_CASES = [f"{name}{NESTED}" for name in ("labse", "mexma", "multilingual_ir")]
CASES = [*sorted(METHODS), *NESTED_CASES, f"infoxlm{CONTRAST}"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The output of the worker, by strategy and method."""
    folder = tmp_path_factory.mktemp("distributed")
    for strategy in ("ddp", "fsdp"):
        run_python("-W", "ignore", "-m", "tests.distributed.worker", strategy, folder, *CASES)
    return {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("ddp", "fsdp")
    }


@pytest.mark.parametrize("method", CASES)
def test_sharded_weights_are_the_replicated_ones(found, method):
    # the norm of all gradients is summed in another order, and it is among the losses
    assert found["fsdp"][method]["losses"] == pytest.approx(
        found["ddp"][method]["losses"], rel=1e-6
    )
    assert found["fsdp"][method]["straight"] == found["ddp"][method]["straight"]


@pytest.mark.parametrize("method", CASES)
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_resumed_run_ends_with_the_same_bytes(found, strategy, method):
    assert found[strategy][method]["resumed"] == found[strategy][method]["straight"]


@pytest.mark.parametrize("method", CASES)
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_are_one_on_both_their_batches(found, strategy, method):
    assert found[strategy][method]["apart"] < 1e-5
