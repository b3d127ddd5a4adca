"""Which precision training computes in on a CPU: measured once, and remembered.

That a processor has instructions for bfloat16 does not mean that they are fast: Intel's server
processors without AMX are slower in bfloat16 than in float32, AMD's are much faster. So where
the instructions exist, one transformer layer is timed forward and backward in both precisions, and
the rates are remembered (``kernels/rates.py``).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Literal

import torch

from interlingua.encoder.backbone import Backbone, BackboneConfig
from interlingua.kernels.rates import FIRST, VARIABLE, fastest, least_seconds, measured

Choice = Literal["bf16", "fp32"]
CHOICES: tuple[Choice, ...] = ("bf16", "fp32")
"""bf16 first, as it needs less memory: fp32 has to be faster by more than noise."""
LENGTHS = (40, 32, 32, 24, 24, 20, 16, 16, 12, 12, 8, 4)
"""Tokens of the sentences of a trial."""
SHAPE = BackboneConfig(
    vocab_size=64,
    hidden_size=384,
    num_hidden_layers=1,
    num_attention_heads=12,
    intermediate_size=1536,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
"""One layer of a small multilingual encoder. Without dropout, so that no random number is drawn."""


def fastest_on_cpu() -> Choice:
    """bf16 where this processor trains with it at least as fast as with fp32."""
    rates = precision_rates()
    if rates:
        return "bf16" if fastest(rates) == "bf16" else "fp32"
    return "bf16" if _has_unit() else "fp32"


def precision_rates() -> dict[str, float]:
    """Tokens per second through one layer, forward and back, of each precision.

    They are empty where there is nothing to choose: without a unit for bfloats, and where
    ``INTERLINGUA_EXECUTOR`` is ``first``, which asks for no measurement.
    """
    if not _has_unit() or os.environ.get(VARIABLE) == FIRST:
        return {}
    return measured("training", [f"a layer of width {SHAPE.hidden_size}"], CHOICES, _measure)


def _has_unit() -> bool:
    """Whether the processor multiplies bfloats."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def _measure() -> dict[str, float]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        backbone = Backbone(SHAPE)
        backbone.initialize("bert")
        input_ids = torch.randint(SHAPE.vocab_size, (sum(LENGTHS),))
    backbone.train()
    starts = torch.tensor([0, *LENGTHS]).cumsum(0)
    passes: dict[str, Callable[[], object]] = {
        "bf16": lambda: _forward_and_back(backbone, input_ids, starts, bfloats=True),
        "fp32": lambda: _forward_and_back(backbone, input_ids, starts, bfloats=False),
    }
    tokens = len(input_ids)
    return {name: round(tokens / least, 1) for name, least in least_seconds(passes).items()}


def _forward_and_back(
    backbone: Backbone, input_ids: torch.Tensor, starts: torch.Tensor, *, bfloats: bool
) -> None:
    """One pass of a training step, without its loss."""
    backbone.zero_grad()
    context: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if bfloats:
        context = torch.autocast("cpu", torch.bfloat16)
    with context:
        states = backbone(input_ids, starts)
    states.float().square().mean().backward()
