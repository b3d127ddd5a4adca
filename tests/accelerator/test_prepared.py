"""Preparation ahead of a run's steps: a step draws nothing, and its inputs are pinned."""

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from interlingua.batches import masking
from interlingua.batches.feeds import PreparedBatch, pinned
from interlingua.batches.prefetch import Prefetcher
from interlingua.config.registry import METHODS
from interlingua.methods.objective import Objective
from interlingua.training.build import MicroBatches
from tests.accelerator.simulated import CUDA, Device, host, moved
from tests.accelerator.test_steps import VARIANTS, StandIn, step
from tests.methods.harness import tiny_batch, tiny_objective
from tests.methods.test_anchor import bank_of

DRAWING = {"combination", "dap both", "ems generative", "infoxlm", "mexma", "retromae", "tlm"}
"""Methods and variants that hide tokens or draw random choices."""


class TwoMicroBatches(MicroBatches):
    """The micro-batches of a tiny method, for the simulated device."""

    def __init__(self, method: str, options: dict[str, Any]) -> None:
        self._engine: Any = StandIn(CUDA)
        self._make = partial(tiny_batch, method, options)

    def __call__(self, step: int) -> list[Any]:
        return [self._make(step=step, seed=2 * step + place) for place in range(2)]


def tensors(nest: Any) -> Iterator[Tensor]:
    """Yield all tensors of a batch, in order."""
    if isinstance(nest, Tensor):
        yield nest
    elif isinstance(nest, dict):
        yield from tensors(list(nest.values()))
    elif isinstance(nest, tuple | list):
        for part in nest:
            yield from tensors(part)


@pytest.mark.parametrize("name", sorted([*METHODS, *VARIANTS]))
def test_a_step_draws_nothing_and_pins_nothing(cuda: Device, name, monkeypatch):
    method = name.split()[0]
    options = VARIANTS.get(name, {})
    objective = moved(tiny_objective(method, options))
    drawn_by = set()
    draw = masking._draws

    def noted(*arguments: Any) -> Tensor:
        drawn_by.add(threading.current_thread().name)
        return draw(*arguments)

    monkeypatch.setattr(masking, "_draws", noted)
    batches = TwoMicroBatches(method, options)
    with Prefetcher(partial(batches.prepared, objective), stop_step=2) as prefetcher:
        for number, made in enumerate(prefetcher):
            with cuda.recorded():
                step(objective, StandIn(CUDA, "bf16"), *made)
            assert not cuda.pins, number
    assert drawn_by <= {"prefetch"}
    assert drawn_by or name not in DRAWING


@pytest.mark.parametrize("name", sorted([*METHODS, *VARIANTS]))
def test_prepared_batches_are_pinned_and_lose_nothing(cuda: Device, name):
    method = name.split()[0]
    options = VARIANTS.get(name, {})
    objective = tiny_objective(method, options)
    batches = TwoMicroBatches(method, options)
    [made, _] = batches.prepared(objective, 3)
    bare = batches(3)[0]
    as_prepared = objective.prepared(bare)
    assert type(made) is type(as_prepared)
    found, expected = list(tensors(made)), list(tensors(as_prepared))
    assert found
    assert all(cuda.is_pinned(tensor) for tensor in found)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    assert isinstance(made, PreparedBatch) == (type(objective).prepare is not Objective.prepare)


@pytest.mark.parametrize("name", sorted(DRAWING))
def test_a_prepared_batch_has_the_loss_of_a_bare_one(cuda: Device, name):
    method = name.split()[0]
    options = VARIANTS.get(name, {})
    batches = TwoMicroBatches(method, options)
    losses = []
    for make in (batches, partial(batches.prepared, tiny_objective(method, options))):
        objective = moved(tiny_objective(method, options))
        with cuda.recorded():
            losses.append(host(step(objective, StandIn(CUDA), *make(5))["loss"]))
    assert torch.equal(*losses)


def test_a_bank_is_looked_up_ahead_of_the_step(cuda: Device, tmp_path, monkeypatch):
    objective = tiny_objective("anchor", {"student_reads": "both"})
    batch = tiny_batch("anchor")
    bank, _ = bank_of(tmp_path / "bank", objective, batch)
    objective.anchors.use_bank(bank)
    made = pinned(objective.prepared(batch))
    monkeypatch.setattr(bank, "rows", None)
    with cuda.recorded():
        loss = step(moved(objective), StandIn(CUDA, "bf16"), made)["loss"]
    assert not cuda.pins
    assert host(loss).isfinite()
