"""Optimizers in torch's fused form: one pass over the weights instead of one per operation."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from interlingua.train.config import OptimizerConfig


def build_optimizer(module: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Adam with coupled L2 (weight decay added to the gradient) or AdamW, over the weights that are trained.

    Args:
        module: the objective: encoder, heads and whatever else it trains.
        config: which, and with what numbers.
    """
    kind: type[torch.optim.Adam] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.name]
    return kind(
        parameter_groups(module, config),
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.eps,
        amsgrad=config.amsgrad,
        fused=True,
    )


def parameter_groups(module: nn.Module, config: OptimizerConfig) -> list[dict[str, Any]]:
    """All trained weights in one group, or biases and LayerNorms apart in a group without weight decay."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if config.decay_bias_and_norm:
        return [{"params": trained, "weight_decay": config.weight_decay}]
    spared = {id(parameter) for parameter in trained if parameter.ndim < 2}
    groups = [
        {"params": [p for p in trained if id(p) not in spared], "weight_decay": config.weight_decay},
        {"params": [p for p in trained if id(p) in spared], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Sets the learning rate of all groups."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
