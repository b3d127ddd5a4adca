"""Every method's training step on the simulated device: equal to the CPU's, and nothing in it waits
for the device."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from interlingua.devices import on_device
from interlingua.registry import METHODS
from interlingua.train.config import OptimizerConfig
from interlingua.train.engine import Engine
from interlingua.train.log import Meter
from interlingua.train.optim import build_optimizer
from interlingua.train.step import gradients
from tests.accelerator.simulated import CUDA, Device, host, moved
from tests.methods.harness import tiny_batch, tiny_objective

WAITS: dict[str, set[tuple[str, str]]] = {}
"""By method: what its steps may wait for. Nothing does."""
VARIANTS: dict[str, dict[str, Any]] = {
    "mexma asymmetrical": {"symmetrical": False, "align_weight": 0.0, "koleo_weight": 0.0},
    "mexma contrastive": {
        "alignment": "contrastive",
        "exclude_repeats": True,
        "koleo_distinct": True,
    },
    "dap both": {
        "direction": "both",
        "languages": ["deu_Latn", "fra_Latn", "eng_Latn"],
        "reconstruct": 0.5,
    },
    "retromae plain": {"enhanced": False, "text": "pairs"},
    "infoxlm alone": {"tlm_weight": 0.0, "mlm_weight": 0.0, "contrast_masked": False},
    "laser transformer": {
        "decoder": "transformer",
        "decoder_heads": 2,
        "language_dim": 4,
        "token_dim": 4,
        "output_dim": 512,  # the default, which the tiny options change
    },
    "ems generative": {
        "generative": "ugt",
        "exclude_repeats": True,
        "languages": ["deu_Latn", "fra_Latn", "eng_Latn"],
    },
    "labse repeats": {"exclude_repeats": True},
}
"""Options that take other paths."""


class StandIn:
    """An engine of one process on the simulated device."""

    world_size = 1
    rank = 0
    is_main = True
    clip = Engine.clip

    def __init__(self, device: torch.device, bf16: bool = False) -> None:
        self.device = device
        self.bf16 = bf16

    def seed(self, *place: Any) -> None:
        torch.manual_seed(len(place))

    @contextlib.contextmanager
    def accumulate(self, model: Any, *, more: bool) -> Iterator[None]:
        yield

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def mean(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach()

    def autocast(self) -> Any:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)


def step(objective: Any, engine: Any, batch: Any) -> dict[str, torch.Tensor]:
    """Gradients of one micro-batch."""

    def model(batch: Any, **part: Any) -> Any:
        with engine.autocast():
            return objective(batch, **part)

    return gradients(model, objective, [batch], engine, seed=0, step=0)


@pytest.mark.parametrize("name", sorted([*METHODS, *VARIANTS]))
def test_gradients_on_cuda_are_those_of_the_cpu(cuda: Device, name):
    method = name.split()[0]
    options = VARIANTS.get(name, {})
    batch = tiny_batch(method, options)
    on_cpu = tiny_objective(method, options)
    expected = step(on_cpu, StandIn(torch.device("cpu")), batch)
    objective = moved(tiny_objective(method, options))
    with cuda.recorded():
        losses = step(objective, StandIn(CUDA), batch)
    assert host(losses["loss"]).item() == pytest.approx(expected["loss"].item(), rel=1e-5)
    largest = max(
        weight.grad.abs().max() for weight in on_cpu.parameters() if weight.grad is not None
    )
    for (path, weight), other in zip(
        on_cpu.named_parameters(), objective.parameters(), strict=True
    ):
        assert (weight.grad is None) == (other.grad is None), path
        if weight.grad is not None:
            assert torch.allclose(host(other.grad), weight.grad, rtol=1e-4, atol=1e-5 * largest), (
                path
            )


@pytest.mark.parametrize("name", sorted([*METHODS, *VARIANTS]))
def test_a_step_in_bf16_waits_for_nothing(cuda: Device, name):
    method = name.split()[0]
    options = VARIANTS.get(name, {})
    objective = moved(tiny_objective(method, options, dropout=0.1))
    engine = StandIn(CUDA, bf16=True)
    optimizer = build_optimizer(objective, OptimizerConfig(learning_rate=1e-3))
    meter = Meter(engine, None)
    for number in range(
        2
    ):  # the second step is like all others; the first makes the optimizer's state
        batch = tiny_batch(method, options, step=number, seed=number)
        with cuda.recorded() as waits:
            losses = step(objective, engine, batch)
            losses["grad_norm"] = engine.clip(objective, 1.0)
            meter.add(number, losses)
            optimizer.step()
            optimizer.zero_grad()
            objective.after_step(number)
    assert set(waits) == WAITS.get(name, set())
    assert cuda.launches["aten::_flash_attention_forward"] or method in ("laser",), (
        "attention of equal lengths"
    )


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "lars"])
def test_optimizers_move_weights_as_on_the_cpu(cuda: Device, optimizer):
    config = OptimizerConfig(name=optimizer, learning_rate=1e-3)
    ours = moved(tiny_objective("labse"))
    reference = tiny_objective("labse")
    for objective, device in ((reference, torch.device("cpu")), (ours, CUDA)):
        made = build_optimizer(objective, config)
        draw = torch.Generator().manual_seed(0)
        with cuda.recorded() as waits:
            for _ in range(3):
                for weight in objective.parameters():
                    weight.grad = on_device(torch.randn(weight.shape, generator=draw), device)
                made.step()
    assert not waits
    for weight, other in zip(reference.parameters(), ours.parameters(), strict=True):
        assert torch.allclose(host(other), weight, rtol=1e-4, atol=1e-6)
