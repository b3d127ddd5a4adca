"""Adam, AdamW and LARS, over the weights that are trained.

Adam and AdamW are torch's fused implementations: they make one pass over the weights instead of one
pass per operation. LARS, which torch does not have, runs each of its operations over all weights of
a group at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interlingua.training.config import OptimizerConfig
from interlingua.training.machine.engine import gather_tensor
from interlingua.training.optimization.row_adamw import RowAdamW


def build_optimizer(
    module: nn.Module, config: OptimizerConfig, *, sparse_gradients: bool = False
) -> torch.optim.Optimizer:
    """Build Adam with coupled L2 (weight decay added to the gradient), AdamW, or LARS.

    Args:
        module: the objective: encoder, heads and whatever else it trains.
        config: the optimizer's name and numbers.
        sparse_gradients: let embedding tables have sparse gradients from now on if the optimizer
            benefits from them. Only AdamW does, with unchanged results. The other optimizers update
            every row in every step.
    """
    groups = parameter_groups(module, config)
    if config.name == "lars":
        return LARS(
            groups,
            lr=config.rate,
            momentum=config.momentum,
            trust_coefficient=config.trust_coefficient,
        )
    numbers: dict[str, Any] = {
        "lr": config.rate,
        "betas": config.betas,
        "eps": config.eps,
        "amsgrad": config.amsgrad,
    }
    if config.name == "adam":
        return torch.optim.Adam(groups, **numbers, fused=True)
    for table in module.modules():
        if isinstance(table, nn.Embedding) and sparse_gradients:
            table.sparse = True
    return RowAdamW(groups, **numbers)


class LARS(torch.optim.Optimizer):
    r"""Layer-wise adaptive rate scaling (You et al. 2017) in BYOL's form (Grill et al. 2020).

    For each weight tensor p with gradient g:

    - u = g + weight_decay p
    - r = eta |p| / |u| in an adapted group, 1 if either norm is 0
    - mu = momentum mu + r u
    - p = p - lr mu

    *Symbols*: eta ``trust_coefficient``. The learning rate is outside of the momentum, whereas
    You et al. have it inside, and there is no Nesterov step. A step overwrites the gradients, which
    saves one copy of the weights.

    Args:
        groups: parameter groups; ``adapted`` specifies whether r is computed.
        lr: learning rate, per step.
        momentum: share of the last step that is repeated.
        trust_coefficient: eta, unitless.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float,
        momentum: float = 0.9,
        trust_coefficient: float = 1e-3,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "trust_coefficient": trust_coefficient}
        super().__init__(groups, {**defaults, "weight_decay": 0.0, "adapted": True})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Make a step with the present gradients."""
        assert closure is None
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if not weights:
                continue
            updates = [weight.grad for weight in weights]
            if group["weight_decay"]:
                torch._foreach_add_(updates, weights, alpha=group["weight_decay"])  # u
            momenta = [self._momentum(weight) for weight in weights]
            torch._foreach_mul_(momenta, group["momentum"])
            if group["adapted"]:
                ratios = trust_ratios(weights, updates, group["trust_coefficient"])  # r
                torch._foreach_addcmul_(momenta, updates, ratios)  # mu, with r u
            else:
                torch._foreach_add_(momenta, updates)  # mu, with u
            torch._foreach_add_(weights, momenta, alpha=-group["lr"])  # p - lr mu

    def _momentum(self, weight: Tensor) -> Tensor:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        momentum: Tensor = state["momentum"]
        return momentum


def trust_ratios(
    weights: list[Tensor], updates: list[Tensor], coefficient: float
) -> list[Float[Tensor, ""]]:
    """Compute the r of each tensor: coefficient |p| / |u|, or 1 if a norm is 0.

    Nothing waits for the device.
    """
    lengths = torch.stack(torch._foreach_norm(weights))
    steps = torch.stack(torch._foreach_norm(updates))
    ratios = torch.where((lengths > 0) & (steps > 0), coefficient * lengths / steps, 1.0)
    # Give all ratios to every process: torch 2.7 can't unbind them while they are sharded.
    return list(gather_tensor(ratios).unbind())


def parameter_groups(module: nn.Module, config: OptimizerConfig) -> list[dict[str, Any]]:
    """Return all trained weights in one group, or in two: matrices, and biases with LayerNorms.

    The group of biases and LayerNorms has no weight decay and no LARS scaling.
    """
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    together = config.decay_bias_and_norm
    if together is None:
        together = config.name != "lars"
    if together:
        return [{"params": trained, "weight_decay": config.weight_decay}]
    # Biases and the weights of LayerNorms are vectors; all other weights are matrices.
    matrices = [parameter for parameter in trained if parameter.ndim >= 2]
    vectors = [parameter for parameter in trained if parameter.ndim < 2]
    decayed: dict[str, Any] = {"params": matrices, "weight_decay": config.weight_decay}
    spared: dict[str, Any] = {"params": vectors, "weight_decay": 0.0}
    if config.name == "lars":
        spared["adapted"] = False
    return [group for group in (decayed, spared) if group["params"]]


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of all groups."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
