"""In which way training is computed on a CPU: a precision and an executor, measured once.

That a processor has instructions for bfloat16 does not mean that they are fast: Intel's server
processors without AMX are slower in bfloat16 than in float32, AMD's are much faster. Nor are the
compiled passes (``encoder/fused.py``) faster than torch's own only because they run. So where there
is a choice, one transformer layer is timed forward and backward in each way, and the rates are
remembered (``kernels/rates.py``).
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Sequence
from itertools import product
from typing import Literal, NamedTuple

import torch

from interlingua import kernels
from interlingua.encoder.backbone import Backbone, BackboneConfig
from interlingua.kernels.calls import computed_by, is_kernel_preferred, runs_here
from interlingua.kernels.rates import FIRST, VARIABLE, fastest, least_seconds, measured

Precision = Literal["fp32", "bf16", "fp16"]
Executor = Literal["kernel", "torch"]
PRECISIONS: tuple[Precision, ...] = ("bf16", "fp32")
"""bf16 first, as it needs less memory: fp32 has to be faster by more than noise."""
EXECUTORS: tuple[Executor, ...] = ("kernel", "torch")
"""By the names that ``INTERLINGUA_EXECUTOR`` has for them, the preferred one first."""
LENGTHS = (40, 32, 32, 24, 24, 20, 16, 16, 12, 12, 8, 4)
"""Tokens of the sentences of a trial."""
SHAPE = BackboneConfig(
    vocab_size=64,
    hidden_size=384,
    num_hidden_layers=1,
    num_attention_heads=12,
    intermediate_size=1536,
)
"""One layer of a small multilingual encoder, with the dropout that training has by default."""
TRIAL_SECONDS = 1.0
"""More than encoding's: a pass forward and back is longer, and a run is."""


class Way(NamedTuple):
    """How a layer is computed in training."""

    precision: Precision
    executor: Executor

    @property
    def name(self) -> str:
        """As in the trial's rates: ``bf16 kernel``."""
        return f"{self.precision} {self.executor}"


def fastest_on_cpu(
    precision: Literal["auto", Precision] = "auto", executor: Literal["auto", Executor] = "auto"
) -> Way:
    """The way that this processor trains fastest in, of those that are left open.

    Args:
        precision: that of the run; auto: bf16, or fp32 where that is faster.
        executor: that of the run; auto: the kernel, or torch where that is faster.
    """
    ways = _ways(precision, executor)
    rates = training_rates(precision, executor)
    if not rates:
        return ways[0]
    best = fastest(rates)
    return next(way for way in ways if way.name == best)


def training_rates(
    precision: Literal["auto", Precision] = "auto", executor: Literal["auto", Executor] = "auto"
) -> dict[str, float]:
    """Tokens per second through one layer, forward and back, in each way that is left open.

    They are empty where there is nothing to choose, and where ``INTERLINGUA_EXECUTOR`` is
    ``first``, which asks for no measurement.
    """
    ways = _ways(precision, executor)
    if len(ways) == 1 or os.environ.get(VARIABLE) == FIRST:
        return {}
    names = [way.name for way in ways]
    # With the names, so that runs that leave different ways open keep each other's rates.
    facts = [f"a layer of width {SHAPE.hidden_size}", ", ".join(names)]
    return measured("training", facts, names, lambda: _measure(ways))


def _ways(precision: Literal["auto", Precision], executor: Literal["auto", Executor]) -> list[Way]:
    """Those that are left open, the preferred ones first."""
    precisions: Sequence[Precision]
    if precision != "auto":
        precisions = (precision,)
    elif _has_unit():
        precisions = PRECISIONS
    else:
        precisions = ("fp32",)
    executors = _executors(executor, has_float16="fp16" in precisions)
    return [Way(*way) for way in product(precisions, executors)]


def _executors(executor: Literal["auto", Executor], *, has_float16: bool) -> Sequence[Executor]:
    """Those that can, or the one that the run or a variable names.

    Args:
        executor: that of the run.
        has_float16: activations are float16, which the kernel does not read.
    """
    if executor != "auto":
        return (executor,)
    if has_float16 or not runs_here():
        return ("torch",)
    wanted = os.environ.get(VARIABLE, "")
    # Other names are of executors for encoding, and say nothing of training.
    if wanted in EXECUTORS:
        return [name for name in EXECUTORS if name == wanted]
    if os.environ.get(kernels.VARIABLE) in kernels.VARIANTS:
        return ("kernel",)
    if wanted == FIRST:
        return ("kernel",) if is_kernel_preferred() else ("torch",)
    return EXECUTORS


def _has_unit() -> bool:
    """Whether the processor multiplies bfloats."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def _measure(ways: Sequence[Way]) -> dict[str, float]:
    # The run's random numbers must not depend on whether there was a trial.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        backbone = Backbone(SHAPE)
        backbone.initialize("bert")
        backbone.train()
        input_ids = torch.randint(SHAPE.vocab_size, (sum(LENGTHS),))
        starts = torch.tensor([0, *LENGTHS]).cumsum(0)
        passes = {
            way.name: functools.partial(_forward_and_back, backbone, input_ids, starts, way)
            for way in ways
        }
        seconds = least_seconds(passes, trial_seconds=TRIAL_SECONDS)
    return {name: round(len(input_ids) / least, 1) for name, least in seconds.items()}


def _forward_and_back(
    backbone: Backbone, input_ids: torch.Tensor, starts: torch.Tensor, way: Way
) -> None:
    """One pass of a training step, without its loss."""
    backbone.zero_grad()
    context: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if way.precision == "bf16":
        context = torch.autocast("cpu", torch.bfloat16)
    with computed_by(way.executor):
        with context:
            states = backbone(input_ids, starts)
        states.float().square().mean().backward()
