"""Executors that encode, and the dtype that "auto" selects.

A backbone has up to four forms for inference: the compiled kernel, the same with int16 in place of
bfloats, torch with matrices packed for oneDNN, and plain torch. Which one is fastest depends on the
processor, the dtype and the widths. ``choice.py`` times the possible ones on the
model's own first layers, with sentences of a few lengths.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.executors.choice import (
    EXECUTOR_VARIABLE,
    SPEED_MARGIN,
    Choice,
    Trial,
    choose_executor,
    forced_name,
)
from interlingua.encoder.executors.compiled import CompiledBackbone, Int16Backbone
from interlingua.encoder.executors.inference import FrozenBackbone, PlainBackbone
from interlingua.encoder.executors.quantize import PRECISE_LAYERS
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.encoder.modeling.meta_device import meta_device

_TRIAL_LENGTHS = (48, 24, 24, 12, 12, 8)
"""Tokens of the sentences of a trial: some milliseconds for a base model."""
PROBE_LENGTHS = (48, 32, 24, 24, 16, 16, 12, 12, 8, 8, 6, 6, 4, 4, 3, 3)
"""Tokens of the sentences that a dtype's closeness is measured on."""
MEAN_COSINE = 0.9999
LOWEST_COSINE = 0.999
"""Lowest cosine of vectors with those in float32: documented in ``benchmarks/README.md``, and
required by "auto"."""
AUTOMATIC = (torch.float32, torch.bfloat16, torch.int8)
"""Dtypes from which "auto" chooses on the CPU."""
Frozen = FrozenBackbone | CompiledBackbone


LAYER_EXECUTORS: dict[str, type[Frozen]] = {
    "kernel": CompiledBackbone,
    "kernel-int16": Int16Backbone,
    "onednn": FrozenBackbone,
    "torch": PlainBackbone,
}
"""Executors by name, in order of preference. Plain torch takes every backbone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AutomaticDtype:
    """The dtype that "auto" means with one model, and the reason."""

    dtype: torch.dtype
    choices: Mapping[torch.dtype, Choice]
    cosines: Mapping[torch.dtype, tuple[float, float]]
    """Mean and lowest cosine with float32, of dtypes that were faster."""


def freeze(backbone: Backbone, dtype: torch.dtype) -> Frozen:
    """Return the fastest snapshot on this machine for this shape and dtype.

    Args:
        backbone: source of the weights; not changed.
        dtype: to compute in.
    """
    return LAYER_EXECUTORS[choose_layer_executor(backbone, dtype).executor](backbone, dtype)


def choose_layer_executor(
    backbone: Backbone, dtype: torch.dtype, *, always_measure: bool = False
) -> Choice:
    """Choose the executor for a backbone.

    Args:
        backbone: of any shape.
        dtype: to compute in.
        always_measure: measure even if there is nothing to choose, for ``interlingua info`` and
            "auto".

    Raises:
        ConfigError: ``INTERLINGUA_EXECUTOR`` names no executor.
    """
    refusals = {
        name: executor.refusal(backbone, dtype) for name, executor in LAYER_EXECUTORS.items()
    }
    refused = {name: reason for name, reason in refusals.items() if reason is not None}
    able = [name for name in LAYER_EXECUTORS if name not in refused]
    # On a GPU only plain torch can compute, and nothing is measured.
    on_cpu = backbone.word_embeddings.weight.device.type == "cpu"
    choice = choose_executor(
        able,
        kernel="layers",
        facts=[_shape_of(backbone), str(dtype)],
        trial=functools.partial(_trial, backbone, dtype, able),
        always_measure=always_measure and on_cpu,
    )
    reason = choice.reason
    wanted = forced_name()
    # An executor that is not possible here is no error: one setting serves several machines.
    if wanted in refused:
        reason += (
            f"; {EXECUTOR_VARIABLE} requests {wanted}, which cannot compute this: {refused[wanted]}"
        )
    return replace(choice, reason=reason, refused=refused)


def _trial(backbone: Backbone, dtype: torch.dtype, names: Sequence[str]) -> Trial:
    """Return a pass through the first layers by each executor, with tokens as units of work."""
    trial = _first_layers(backbone, dtype)
    batch = _random_batch(trial, _TRIAL_LENGTHS)
    runs = {}
    for name in names:
        frozen = LAYER_EXECUTORS[name](trial, dtype)
        runs[name] = functools.partial(frozen, batch.input_ids, batch.cu_seqlens)
    return Trial(runs, work=len(batch.input_ids) * max(1, len(trial.layers)))


def _first_layers(backbone: Backbone, dtype: torch.dtype) -> Backbone:
    """Return a backbone of one layer, or of several if layers differ, that shares the weights."""
    config = backbone.config
    # With int8 a share of 1 / PRECISE_LAYERS of the layers computes attention in a finer type, so
    # PRECISE_LAYERS layers show the mixture. Local and global layers are mixed in about this ratio.
    layers = 1
    if dtype == torch.int8 or config.local_layers:
        layers = PRECISE_LAYERS
    layers = min(len(backbone.layers), layers)
    with meta_device():
        trial = Backbone(replace(config, num_hidden_layers=layers))
    weights = backbone.state_dict()
    trial.load_state_dict({name: weights[name] for name in trial.state_dict()}, assign=True)
    return trial.eval()


def _random_batch(backbone: Backbone, lengths: tuple[int, ...]) -> TokenBatch:
    """Return sentences of random tokens, the same ones every time."""
    config = backbone.config
    draw = torch.Generator().manual_seed(0)
    rows = []
    for length in lengths:
        shape = (min(length, config.max_tokens),)
        rows.append(torch.randint(config.vocab_size, shape, generator=draw).tolist())
    return TokenBatch.from_lists(rows, [""] * len(rows)).to(backbone.word_embeddings.weight.device)


def _shape_of(backbone: Backbone) -> str:
    """Return a text of the facts that decide the speed of a layer."""
    config = backbone.config
    # Encoding never drops anything.
    spec = asdict(config.layer_spec())
    shape = " ".join(f"{name}={value}" for name, value in spec.items() if "dropout" not in name)
    window: int | None = None
    if config.local_layers:
        window = config.local_window
    return f"{shape} window={window}"


def automatic_dtype(backbone: Backbone) -> AutomaticDtype:
    """Return the fastest dtype that keeps vectors close to those in float32.

    On a GPU that is bfloat16 if the device supports it. On the CPU the dtypes that are faster than
    float32 are checked with this backbone's own weights, the fastest first.

    Args:
        backbone: its weights decide how close vectors stay.
    """
    if backbone.word_embeddings.weight.device.type != "cpu":
        dtype = torch.float32
        if torch.cuda.is_available() and torch.cuda.is_bf16_supported():
            dtype = torch.bfloat16
        return AutomaticDtype(dtype=dtype, choices={}, cosines={})
    choices = {
        dtype: choose_layer_executor(backbone, dtype, always_measure=True) for dtype in AUTOMATIC
    }
    # A dtype that gains less than noise is not worth its rounding.
    limit = SPEED_MARGIN * choices[torch.float32].rate
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
    """Return the mean and the lowest cosine between mean states in float32 and in a dtype.

    The states are those of sentences of random tokens.
    """
    batch = _random_batch(backbone, PROBE_LENGTHS)
    exact = _means(freeze(backbone, torch.float32), batch)
    cosines = F.cosine_similarity(exact, _means(freeze(backbone, dtype), batch))
    return cosines.mean().item(), cosines.min().item()


def _means(frozen: Frozen, batch: TokenBatch) -> Float[Tensor, "b d"]:
    states = frozen(batch.input_ids, batch.cu_seqlens).float()
    sentences = torch.split(states, batch.lengths.tolist())
    return torch.stack([rows.mean(0) for rows in sentences])
