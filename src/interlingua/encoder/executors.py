"""Which executor encodes, and in which dtype: measured once, and remembered.

A backbone has up to six forms for inference: the compiled kernel, the same with int16 in place of
bfloats, a variant of it that no one timed yet, torch with matrices packed for oneDNN, the same in
float32 where bfloat16 is requested, and plain torch. Which one is fastest depends on the
processor, the dtype and the widths. So the forms that can be made are tried on the model's
own first layers, with sentences of a few lengths, and the rates are remembered
(``kernels/rates.py``). An executor that stands earlier in ``EXECUTORS`` keeps its place unless a
later one is faster by ``MARGIN``, so that noise does not change the last digits of vectors.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.backbone import Backbone
from interlingua.encoder.compiled import ByteMatrixBackbone, CompiledBackbone, Int16Backbone
from interlingua.encoder.inference import FloatFrozenBackbone, FrozenBackbone, PlainBackbone
from interlingua.encoder.meta_device import meta_device
from interlingua.encoder.quantize import PRECISE_LAYERS
from interlingua.errors import ConfigError
from interlingua.kernels import rates
from interlingua.kernels.rates import FIRST, MARGIN, VARIABLE, fastest, least_seconds
from interlingua.registry import did_you_mean

log = logging.getLogger("interlingua")
TRIAL_LENGTHS = (48, 24, 24, 12, 12, 8)
"""Tokens of the sentences of a trial: some milliseconds for a base model."""
PROBE_LENGTHS = (48, 32, 24, 24, 16, 16, 12, 12, 8, 8, 6, 6, 4, 4, 3, 3)
"""Tokens of the sentences that a dtype's closeness is measured on."""
MEAN_COSINE = 0.9999
LOWEST_COSINE = 0.999
"""Of vectors with those in float32: what ``benchmarks/README.md`` documents, and what "auto" asks
for."""
AUTOMATIC = (torch.float32, torch.bfloat16, torch.int8)
"""What "auto" chooses from on the CPU."""
Frozen = FrozenBackbone | CompiledBackbone


EXECUTORS: dict[str, type[Frozen]] = {
    "kernel": CompiledBackbone,
    "kernel-int16": Int16Backbone,
    "kernel-i8mm": ByteMatrixBackbone,
    "onednn": FrozenBackbone,
    "onednn-float32": FloatFrozenBackbone,
    "torch": PlainBackbone,
}
"""By name, the preferred ones first; torch can always."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """An executor, and why it was taken."""

    executor: str
    reason: str
    rates: Mapping[str, float] = field(default_factory=dict)
    """Of each executor that was tried: tokens per second through one layer."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why others can't be made."""

    @property
    def rate(self) -> float:
        """That of the executor; 0 where nothing was measured."""
        return self.rates.get(self.executor, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class AutomaticDtype:
    """What "auto" stands for with one model, and why."""

    dtype: torch.dtype
    choices: Mapping[torch.dtype, Choice]
    cosines: Mapping[torch.dtype, tuple[float, float]]
    """Mean and lowest cosine with float32, of dtypes that were faster."""


def freeze(backbone: Backbone, dtype: torch.dtype) -> Frozen:
    """The fastest snapshot on this machine for this shape and dtype.

    Args:
        backbone: where the weights come from; not changed.
        dtype: to compute in.
    """
    return EXECUTORS[choose(backbone, dtype).executor](backbone, dtype)


def choose(backbone: Backbone, dtype: torch.dtype, *, always_measure: bool = False) -> Choice:
    """The executor for a backbone.

    Args:
        backbone: of any shape.
        dtype: to compute in.
        always_measure: also where there is nothing to choose, for ``interlingua info`` and for
            "auto".

    Raises:
        ConfigError: ``INTERLINGUA_EXECUTOR`` names no executor.
    """
    refusals = {name: executor.refusal(backbone, dtype) for name, executor in EXECUTORS.items()}
    refused = {name: reason for name, reason in refusals.items() if reason is not None}
    able = [name for name in EXECUTORS if name not in refused]
    wanted = os.environ.get(VARIABLE, "")
    names = (*EXECUTORS, FIRST)
    if wanted and wanted not in names:
        hint = did_you_mean(wanted, names)
        raise ConfigError(
            f"{VARIABLE}: no executor {wanted!r}{hint}; there are: {', '.join(names)}"
        )
    # On a GPU plain torch alone can, so that nothing is measured there.
    has_choice = len(able) > 1 and wanted not in (*able, FIRST)
    on_cpu = backbone.word_embeddings.weight.device.type == "cpu"
    found: dict[str, float] = {}
    if has_choice or (always_measure and on_cpu):
        found = measured(backbone, dtype, able)
    executor = able[0]
    if wanted in able:
        executor = wanted
        reason = f"{VARIABLE} names it"
    elif wanted == FIRST:
        reason = f"{VARIABLE} is {FIRST}"
    elif len(able) == 1:
        reason = "no other one can"
    else:
        executor = fastest(found)
        reason = f"within {MARGIN - 1:.0%} of the fastest"
        if found[executor] == max(found.values()):
            reason = "the fastest"
        # An executor that can't be made here is not an error: one setting serves several machines.
        if wanted:
            reason += f"; {VARIABLE} names {wanted}, which can't: {refused[wanted]}"
    return Choice(executor=executor, reason=reason, rates=found, refused=refused)


def measured(backbone: Backbone, dtype: torch.dtype, names: list[str]) -> dict[str, float]:
    """Rates of executors, in the order of the names: remembered, or measured now.

    Args:
        backbone: its first layers are tried.
        dtype: to compute in.
        names: of executors that can be made of it.
    """

    def measure() -> dict[str, float]:
        trial = _first_layers(backbone, dtype)
        return _rates({name: EXECUTORS[name](trial, dtype) for name in names}, trial)

    return rates.measured("layers", [_shape_of(backbone), str(dtype)], names, measure)


def _first_layers(backbone: Backbone, dtype: torch.dtype) -> Backbone:
    """A backbone of one layer, or of some where layers differ, with the weights themselves."""
    config = backbone.config
    # With int8 one in PRECISE_LAYERS is in a finer type, so that so many show the mixture. Local
    # layers are mixed with global ones in about the same way.
    layers = 1
    if dtype == torch.int8 or config.local_layers:
        layers = PRECISE_LAYERS
    layers = min(len(backbone.layers), layers)
    with meta_device():
        trial = Backbone(replace(config, num_hidden_layers=layers))
    weights = backbone.state_dict()
    trial.load_state_dict({name: weights[name] for name in trial.state_dict()}, assign=True)
    return trial.eval()


def _rates(frozen: Mapping[str, Frozen], backbone: Backbone) -> dict[str, float]:
    """Tokens per second through one layer, of each executor.

    That is on one thread, as encode gives each thread its own batches.
    """
    batch = _random_batch(backbone, TRIAL_LENGTHS)
    passes = {
        name: functools.partial(executor, batch.input_ids, batch.cu_seqlens)
        for name, executor in frozen.items()
    }
    work = len(batch.input_ids) * max(1, len(backbone.layers))
    return {name: round(work / least, 1) for name, least in least_seconds(passes).items()}


def _random_batch(backbone: Backbone, lengths: tuple[int, ...]) -> TokenBatch:
    """Sentences of random tokens, the same ones every time."""
    config = backbone.config
    draw = torch.Generator().manual_seed(0)
    rows = []
    for length in lengths:
        shape = (min(length, config.max_tokens),)
        rows.append(torch.randint(config.vocab_size, shape, generator=draw).tolist())
    return TokenBatch.from_lists(rows, [""] * len(rows)).to(backbone.word_embeddings.weight.device)


def _shape_of(backbone: Backbone) -> str:
    """What decides the speed of a layer."""
    config = backbone.config
    # Encoding never drops anything.
    spec = asdict(config.layer_spec())
    shape = " ".join(f"{name}={value}" for name, value in spec.items() if "dropout" not in name)
    window: int | None = None
    if config.local_layers:
        window = config.local_window
    return f"{shape} window={window}"


def automatic_dtype(backbone: Backbone) -> AutomaticDtype:
    """The fastest dtype that keeps vectors close to those in float32.

    On a GPU that is bfloat16 where the device has it. On the CPU the dtypes that are faster than
    float32 are checked with this backbone's own weights, the fastest first.

    Args:
        backbone: its weights decide how close vectors stay.
    """
    if backbone.word_embeddings.weight.device.type != "cpu":
        dtype = torch.float32
        if torch.cuda.is_available() and torch.cuda.is_bf16_supported():
            dtype = torch.bfloat16
        return AutomaticDtype(dtype=dtype, choices={}, cosines={})
    choices = {dtype: choose(backbone, dtype, always_measure=True) for dtype in AUTOMATIC}
    # A dtype that gains less than noise is not worth its rounding.
    limit = MARGIN * choices[torch.float32].rate
    faster = [dtype for dtype in AUTOMATIC if choices[dtype].rate > limit]
    cosines = {}
    for dtype in sorted(faster, key=lambda dtype: -choices[dtype].rate):
        cosines[dtype] = closeness(backbone, dtype)
        mean, lowest = cosines[dtype]
        # The fastest that is close enough: slower ones need no check.
        if mean >= MEAN_COSINE and lowest >= LOWEST_COSINE:
            return AutomaticDtype(dtype=dtype, choices=choices, cosines=cosines)
    return AutomaticDtype(dtype=torch.float32, choices=choices, cosines=cosines)


def closeness(backbone: Backbone, dtype: torch.dtype) -> tuple[float, float]:
    """Mean and lowest cosine between mean states in float32 and in a dtype.

    They are of sentences of random tokens.
    """
    batch = _random_batch(backbone, PROBE_LENGTHS)
    exact = _means(freeze(backbone, torch.float32), batch)
    cosines = F.cosine_similarity(exact, _means(freeze(backbone, dtype), batch))
    return cosines.mean().item(), cosines.min().item()


def _means(frozen: Frozen, batch: TokenBatch) -> Float[Tensor, "b d"]:
    states = frozen(batch.input_ids, batch.cu_seqlens).float()
    sentences = torch.split(states, batch.lengths.tolist())
    return torch.stack([rows.mean(0) for rows in sentences])
