"""Executors and precisions of training on a CPU.

That a processor has instructions for bfloat16 does not mean that they are fast: Intel's server
processors without AMX are slower in bfloat16 than in float32, AMD's are much faster. The compiled
passes (``fused.py``), too, are faster than torch's own on some processors only. Products of
float32 matrices are computed by MKL, which uses AVX2 on processors of AMD; oneDNN uses AVX-512. So
``choice.py`` tries one transformer layer, forward and backward, in each way.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch

from interlingua.encoder.executors.choice import (
    FIRST,
    Choice,
    Trial,
    choose_executor,
    forced_name,
    is_variant_forced,
)
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.kernels.calls import computed_by, is_kernel_preferred, runs_here

TrainingPrecision = Literal["fp32", "bf16", "fp16"]
Executor = Literal["kernel", "torch", "kernel-onednn", "torch-onednn"]
_PRECISIONS: tuple[TrainingPrecision, ...] = ("bf16", "fp32")
"""bf16 first, as it needs less memory: fp32 has to be faster by more than noise."""
TRAINING_EXECUTORS: tuple[Executor, ...] = ("kernel", "torch")
"""Executors by their names in ``INTERLINGUA_EXECUTOR``, the preferred one first."""
WITH_ONEDNN: dict[Executor, Executor] = {"kernel": "kernel-onednn", "torch": "torch-onednn"}
"""The same with the float32 products of oneDNN."""
ALLOWED = 3.0
"""Largest allowed ratio of the error of oneDNN's products to that of torch's own, which add in
another order. With bfloat16 the ratio is in the thousands."""
_LENGTHS = (40, 32, 32, 24, 24, 20, 16, 16, 12, 12, 8, 4)
"""Tokens of the sentences of a trial."""
SHAPE = BackboneConfig(
    vocab_size=64,
    hidden_size=384,
    num_hidden_layers=1,
    num_attention_heads=12,
    intermediate_size=1536,
)
"""One layer of a small multilingual encoder, with the dropout that training has by default."""
_TRIAL_SECONDS = 1.0
"""Longer than for encoding: a pass forward and back takes longer, and training a model does too."""


class Way(NamedTuple):
    """Executor and precision of a layer in training."""

    precision: TrainingPrecision
    executor: Executor

    @property
    def name(self) -> str:
        """The name in the trial's rates: ``bf16 kernel``."""
        return f"{self.precision} {self.executor}"


def fastest_on_cpu(
    precision: Literal["auto", TrainingPrecision] = "auto",
    executor: Literal["auto", Executor] = "auto",
) -> Way:
    """Return the fastest way to train on this processor.

    Args:
        precision: that of the run; auto: bf16, or fp32 if that is faster.
        executor: that of the run; auto: the kernel, or torch if that is faster.
    """
    chosen = choose_way(precision, executor).executor
    return next(way for way in _ways(precision, executor) if way.name == chosen)


def fastest_way(
    precision: Literal["auto", TrainingPrecision], executor: Literal["auto", Executor], device: str
) -> Way:
    """Return the fastest executor and precision to train on a kind of device.

    Args:
        precision: that of the run.
        executor: that of the run; the compiled passes are only for CPUs.
        device: cpu or cuda.
    """
    if device == "cpu":
        return fastest_on_cpu(precision, executor)
    if executor == "auto":
        executor = "torch"
    if precision == "auto":
        precision = _fastest_on_gpu()
    return Way(precision, executor)


def _fastest_on_gpu() -> TrainingPrecision:
    if torch.cuda.is_bf16_supported(including_emulation=False):
        return "bf16"
    # V100 and T4 have fast units only for float16, older cards for neither.
    return "fp16" if torch.cuda.get_device_capability() >= (7, 0) else "fp32"


def choose_way(
    precision: Literal["auto", TrainingPrecision] = "auto",
    executor: Literal["auto", Executor] = "auto",
) -> Choice:
    """Choose the fastest way, see ``fastest_on_cpu``; the choice names it as its executor.

    Rates are tokens per second through one layer, forward and backward.
    """
    ways = _ways(precision, executor)
    names = [way.name for way in ways]
    return choose_executor(
        names,
        kernel="training",
        # The names are part of the key, so that runs with other candidates keep separate rates.
        facts=[f"a layer of width {SHAPE.hidden_size}", ", ".join(names)],
        trial=functools.partial(_trial, ways),
    )


def _ways(
    precision: Literal["auto", TrainingPrecision], executor: Literal["auto", Executor]
) -> list[Way]:
    """Return the candidates that the run leaves open, in order of preference."""
    precisions: Sequence[TrainingPrecision]
    if precision != "auto":
        precisions = (precision,)
    elif _has_unit():
        precisions = _PRECISIONS
    else:
        precisions = ("fp32",)
    return [Way(choice, name) for choice in precisions for name in _executors(executor, choice)]


def _executors(
    executor: Literal["auto", Executor], precision: TrainingPrecision
) -> Sequence[Executor]:
    """Return the executors to try: all available ones, or the one forced by the run or a variable.

    Args:
        executor: that of the run.
        precision: of the activations: the kernel does not read float16.
    """
    if executor != "auto":
        return (executor,)
    named = _executors_of_passes(has_float16=precision == "fp16")
    is_open = forced_name() not in (*TRAINING_EXECUTORS, FIRST)
    if precision == "fp32" and is_open and onednn_keeps_float32():
        return [*named, *[WITH_ONEDNN[name] for name in named]]
    return named


def _executors_of_passes(*, has_float16: bool) -> Sequence[Executor]:
    """Return the executors that can compute the passes between products, or the named one."""
    if has_float16 or not runs_here():
        return ("torch",)
    wanted = forced_name()
    # Other names are executors that only encode.
    if wanted in TRAINING_EXECUTORS:
        return [name for name in TRAINING_EXECUTORS if name == wanted]
    if is_variant_forced():
        return ("kernel",)
    if wanted == FIRST:
        return ("kernel",) if is_kernel_preferred() else ("torch",)
    return TRAINING_EXECUTORS


def _has_unit() -> bool:
    """Return whether the processor multiplies bfloats."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def _trial(ways: Sequence[Way]) -> Trial:
    """Return a pass forward and backward in each way, with tokens as units of work."""
    torch.manual_seed(0)
    backbone = Backbone(SHAPE)
    backbone.initialize("bert")
    backbone.train()
    input_ids = torch.randint(SHAPE.vocab_size, (sum(_LENGTHS),))
    starts = torch.tensor([0, *_LENGTHS]).cumsum(0)
    runs = {
        way.name: functools.partial(_forward_and_back, backbone, input_ids, starts, way)
        for way in ways
    }
    return Trial(runs, work=len(input_ids), seconds=_TRIAL_SECONDS)


def _forward_and_back(
    backbone: Backbone, input_ids: torch.Tensor, starts: torch.Tensor, way: Way
) -> None:
    """Run one pass of a training step, without its loss."""
    backbone.zero_grad()
    context: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if way.precision == "bf16":
        context = torch.autocast("cpu", torch.bfloat16)
    with computed_as(way.executor):
        with context:
            states = backbone(input_ids, starts)
        states.float().square().mean().backward()


@contextlib.contextmanager
def computed_as(executor: Executor) -> Iterator[None]:
    """Make this process train with an executor within the ``with`` block.

    oneDNN's products are used only if they are exact on this machine, since a run may have started
    on another one.
    """
    before = torch.get_float32_matmul_precision()
    passes = executor.removesuffix("-onednn")
    if passes != executor and onednn_keeps_float32():
        torch.set_float32_matmul_precision("medium")
    try:
        with computed_by(passes):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@functools.cache
def onednn_keeps_float32() -> bool:
    """Return whether torch's precision "medium" gives float32 products of oneDNN here.

    That precision allows bfloat16, which oneDNN uses if the processor has tiles for it. The
    products of other libraries, such as those for AArch64, are tried in the same way.
    """
    has_onednn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if torch.cpu._is_amx_tile_supported() or not has_onednn:
        return False
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(256, 256, generator=generator) for _ in range(2))
    exact = left.double() @ right.double()
    errors = []
    before = torch.get_float32_matmul_precision()
    for precision in ("highest", "medium"):
        torch.set_float32_matmul_precision(precision)
        errors.append(float((left @ right - exact).abs().max()))
    torch.set_float32_matmul_precision(before)
    return errors[1] <= ALLOWED * errors[0]
