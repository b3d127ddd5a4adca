"""A run with ``strategy = "fsdp"`` on the simulated device evaluates a whole copy on the CPU, while
its engine computes on CUDA.

Nothing of the copy or its batches may be sought on the device.
"""

from __future__ import annotations

import pytest
import torch

from interlingua.config.registry import METHODS
from interlingua.training.machine.engine import Engine
from interlingua.training.optimization.loss_scale import LossScale
from interlingua.training.optimization.term_gradients import TermGradients
from interlingua.training.validation import measure_validation
from tests.accelerator.simulated import CUDA, Device
from tests.accelerator.test_steps import StandIn
from tests.methods.harness import tiny_batch, tiny_objective


class Evaluating(StandIn):
    """An engine that evaluates too."""

    alone = Engine.alone
    share = Engine.share


def evaluated(name: str, engine: Evaluating) -> dict[str, float]:
    """Return all measurements of an evaluation, by name."""
    objective = tiny_objective(name)
    batch = tiny_batch(name)
    metrics = measure_validation(objective, [batch, batch], engine, evaluate=None, step=0).metrics
    loss_scale = LossScale(enabled=engine.precision == "fp16")
    loss_scale.value = min(loss_scale.value, 16.0)  # with the first one some norms are not finite
    norms = TermGradients(engine, loss_scale).measure(objective, batch)
    return metrics | {f"norm_{term}": norm for term, norm in norms.items()}


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_copy_on_the_cpu_is_evaluated_as_without_a_gpu(
    cuda: Device, name, precision, monkeypatch
):
    # The simulated device draws nothing by itself.
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda _: None)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *_: None)
    expected = evaluated(name, Evaluating(torch.device("cpu"), precision))
    cuda.differentiates_on_host = True
    with cuda.recorded() as waits:
        found = evaluated(name, Evaluating(CUDA, precision))
    assert found == pytest.approx(expected, rel=1e-5)
    assert not waits
    assert not cuda.launches
