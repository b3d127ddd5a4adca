"""Every method's training step on the simulated device: equal to the CPU's, and nothing in it waits
for the device."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from interlingua.config.registry import METHODS
from interlingua.runtime.devices import on_device
from interlingua.training.config import OptimizerConfig
from interlingua.training.log import Meter
from interlingua.training.machine.engine import Engine
from interlingua.training.optimization.loss_scale import LossScale
from interlingua.training.optimization.optim import build_optimizer
from interlingua.training.step import TrainingStep, gradients
from tests.accelerator.simulated import CUDA, Device, host, moved
from tests.methods.harness import tiny_batch, tiny_objective

WAITS: dict[str, Counter[tuple[str, str]]] = {
    "bf16": Counter(),
    "fp16": Counter(
        {("item", "training/optimization/loss_scale.py: return bool(norm.isfinite())"): 1}
    ),
}
"""By precision: what a step of any method waits for, and how often."""
HALF = ("calibrated", "labse", "laser")
"""Also tried in fp16, which changes the loop and no method."""
DTYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
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
    "multilingual_ir repeats": {"exclude_repeats": True, "monolingual": True},
    "anchor center": {"center_weight": 1.0},
    "anchor both": {
        "student_reads": "both",
        "known_languages": ["de"],
        "hard_weight": 1.0,
        "hard_kinds": ["word_order"],
    },
}
"""Options that take other paths."""


class StandIn:
    """An engine of one process on the simulated device."""

    world_size = 1
    rank = 0
    is_main = True
    clip = Engine.clip

    def __init__(self, device: torch.device, precision: str = "fp32") -> None:
        self.device = device
        self.precision = precision

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
        dtype = DTYPES[self.precision]
        return torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None)


def step(objective: Any, engine: Any, *batches: Any) -> dict[str, torch.Tensor]:
    """Return the gradients of micro-batches."""

    def model(batch: Any, **part: Any) -> Any:
        with engine.autocast():
            return objective(batch, **part)

    return gradients(model, objective, batches, engine, seed=0, step=0)


def waits_of_a_step(
    cuda: Device, objective: Any, precision: str, micro_batches: Callable[[int], list[Any]]
) -> Counter[tuple[str, str]]:
    """Count the waits of the second of two steps by place. All later steps are like it.

    The first makes the optimizer's state.
    """
    engine = StandIn(CUDA, precision)
    loss_scale = LossScale(enabled=precision == "fp16")
    loss_scale.value = min(loss_scale.value, 16.0)  # with the first one a run skips some steps
    made = loss_scale.value

    def model(batch: Any, **part: Any) -> Any:
        with engine.autocast():
            return objective(batch, **part)

    make_step = TrainingStep(
        model=model,
        objective=objective,
        optimizer=build_optimizer(objective, OptimizerConfig(learning_rate=1e-3)),
        engine=engine,
        meter=Meter(engine, None),
        loss_scale=loss_scale,
        seed=0,
        max_grad_norm=1.0,
    )
    for number in range(2):
        batches = micro_batches(number)
        with cuda.recorded() as waits:
            make_step(number, batches, learning_rate=1e-3, logs=True)
    assert loss_scale.value == made, "no step was skipped"
    return Counter(waits)


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


@pytest.mark.parametrize(
    ("name", "precision"),
    [(name, "bf16") for name in sorted([*METHODS, *VARIANTS])] + [(name, "fp16") for name in HALF],
)
def test_a_step_waits_for_nothing_but_its_norm(cuda: Device, name, precision):
    method = name.split()[0]
    options = VARIANTS.get(name, {})
    objective = moved(tiny_objective(method, options, dropout=0.1))

    def micro_batches(number: int) -> list[Any]:
        return [tiny_batch(method, options, step=number, seed=number)]

    assert waits_of_a_step(cuda, objective, precision, micro_batches) == WAITS[precision]
    assert cuda.launches["aten::_flash_attention_forward"] or method in ("laser",), (
        "attention of equal lengths"
    )


@pytest.mark.parametrize("method", ["labse", "ems", "infonce"])
def test_passes_in_parts_wait_for_nothing(cuda: Device, method):
    objective = moved(tiny_objective(method, dropout=0.1))
    objective.encoder.gradcache_sentences = 2

    def micro_batches(number: int) -> list[Any]:
        return [tiny_batch(method, step=number, seed=number)]

    assert waits_of_a_step(cuda, objective, "bf16", micro_batches) == WAITS["bf16"]
    parts = cuda.launches["aten::_flash_attention_forward"]
    layers = len(objective.encoder.backbone.layers)
    assert parts >= 2 * 2 * 3 * layers, "two sides of three parts, each computed twice"


@pytest.mark.parametrize("precision", WAITS)
def test_accumulated_micro_batches_wait_as_one_does(cuda: Device, precision):
    objective = moved(tiny_objective("mexma", dropout=0.1))

    def micro_batches(number: int) -> list[Any]:
        return [tiny_batch("mexma", step=number, seed=3 * number + place) for place in range(3)]

    assert waits_of_a_step(cuda, objective, precision, micro_batches) == WAITS[precision]


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
