"""``interlingua.info`` and ``interlingua info``: properties of this machine.

If a model is named, also how this machine would encode with it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from interlingua.config.options import Options, argument, function_of
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs

if TYPE_CHECKING:
    from interlingua.encoder.encoder import Encoder


class Info(NamedTuple):
    """Properties of the machine and the model."""

    lines: list[str]
    """Report for people."""
    executors: dict[str, str]
    """With a model: dtype -> the executor that encodes."""
    dtype: str | None
    """With a model: the type that ``--dtype auto`` chooses."""


@dataclass(frozen=True)
class InfoOptions(Options):
    """Options of ``info``."""

    model: PathLike | None = argument(
        "Model folder, run folder or hf:owner/name to measure; by default none.",
        default=None,
        reads="model",
    )


def run_info(options: InfoOptions) -> Info:
    """Report information about this machine, and how fast it encodes with a model.

    For a model, the report has the chosen executor and dtype, the reasons, and all measured rates.

    Args:
        options: of the verb.

    Returns:
        The report.

    Raises:
        CheckpointError: there is no such model.
        ConfigError: ``INTERLINGUA_EXECUTOR`` names no executor.
    """
    check_inputs(options)
    from interlingua.encoder.encoder import Encoder

    # Without a model, torch and the kernels are all that is loaded.
    lines = _machine()
    if options.model is None:
        return Info(lines, {}, None)
    encoder = Encoder.load(options.model)
    report = _model(encoder, os.fspath(options.model))
    return report._replace(lines=[*lines, "", *report.lines])


def _machine() -> list[str]:
    import torch

    from interlingua import __version__
    from interlingua.encoder.executors.choice import EXECUTOR_VARIABLE, cache_file, processor
    from interlingua.kernels import KERNELS_VARIABLE, SOURCES, variant
    from interlingua.retrieval.topk.scanner_choice import describe_choices

    kernels = ", ".join([f"{name} {variant(name) or 'does not run here'}" for name in SOURCES])
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return [
        f"interlingua {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads",
        f"processor: {processor()}",
        f"GPUs: {', '.join(gpus) or 'none'}",
        f"compiled kernels: {kernels}",
        f"measured rates are stored in: {cache_file()}",
        f"{EXECUTOR_VARIABLE}: {os.environ.get(EXECUTOR_VARIABLE) or 'not set'}",
        f"{KERNELS_VARIABLE}: {os.environ.get(KERNELS_VARIABLE) or 'not set'}",
        _training(),
        *describe_choices(),
    ]


def _training() -> str:
    """Return the choices of ``auto`` for precision and executor on this CPU, with reasons."""
    from interlingua.encoder.executors.training_passes import choose_way

    choice = choose_way()
    if not choice.rates:
        return f"training on the CPU: {choice.executor}"
    rates = ", ".join([f"{name} {rate:,.0f}" for name, rate in choice.rates.items()])
    return (
        f"training on the CPU: {choice.executor} (tokens per second, forward and backward through"
        f" one layer: {rates})"
    )


def _model(encoder: Encoder, name: str) -> Info:
    from interlingua.encoder.executors.layers import (
        AUTOMATIC,
        LOWEST_COSINE,
        MEAN_COSINE,
        automatic_dtype,
    )
    from interlingua.encoder.static import StaticBackbone

    config = encoder.backbone.config
    # Executors compute layers; a table of vectors has no layers, so it needs no executor.
    if isinstance(encoder.backbone, StaticBackbone):
        return Info(
            [f"{name}: a table of {config.vocab_size:,} token vectors, which needs no executor"],
            {},
            None,
        )
    found = automatic_dtype(encoder.backbone)
    lines = [
        f"{name}: {config.model_type}, {config.num_hidden_layers} layers of width"
        f" {config.hidden_size}",
        "tokens per second through one layer, on one thread:",
    ]
    executors = {}
    for dtype in AUTOMATIC:
        choice = found.choices[dtype]
        name_of_dtype = _dtype_name(dtype)
        executors[name_of_dtype] = choice.executor
        rates = [f"{executor} {rate:,.0f}" for executor, rate in choice.rates.items()]
        lines.append(f"  {name_of_dtype}: {choice.executor}, {choice.reason}")
        lines.append(f"    measured: {', '.join(rates)}")
        lines += [f"    not {executor}: {reason}" for executor, reason in choice.refused.items()]
    # ``auto`` refuses a lower precision if its vectors differ too much from those of float32.
    for dtype, (mean, lowest) in found.cosines.items():
        lines.append(
            f"  {_dtype_name(dtype)}: cosine with float32: mean {mean:.6f}, minimum {lowest:.6f}"
        )
    chosen = _dtype_name(found.dtype)
    limits = (
        f"the fastest with a mean cosine of at least {MEAN_COSINE} and a minimum of at least"
        f" {LOWEST_COSINE}"
    )
    lines.append(f"--dtype auto selects {chosen}, {limits}")
    return Info(lines, executors, chosen)


def _dtype_name(dtype: object) -> str:
    """Return the name of a data type as the option spells it, for example ``bfloat16``."""
    return str(dtype).removeprefix("torch.")


info = function_of(InfoOptions, run_info, "info")
