"""Influence of each term of a loss on the weights, as the norm of its gradient.

The value of a term says little about its influence: a term may be large and flat. Here the loss is
computed once more, without dropout, and each of its terms is differentiated by itself. The run is
not affected: autograd returns the gradients instead of adding them to the weights', and the state
of the random numbers is restored.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from interlingua.methods.objective import Objective
from interlingua.training.machine.engine import Engine
from interlingua.training.optimization.loss_scale import LossScale

FAINT = 1e-2
"""Terms with a norm below this share of the largest are reported."""


class TermGradients:
    """Measures the gradients of a run's terms, and warns once of each that is too small.

    Args:
        engine: provides the precision, and decides which process measures.
        loss_scale: of fp16, in which small gradients would round to 0.
    """

    def __init__(self, engine: Engine, loss_scale: LossScale | None = None) -> None:
        self._engine = engine
        self._loss_scale = loss_scale or LossScale(enabled=False)
        self._reported: set[str] = set()

    def measure(self, objective: Objective, batch: Any) -> dict[str, float]:
        """Compute the Euclidean norm of each weighted term's gradient, over all trained weights.

        The computation differs from training: dropout is off, and only the main process computes
        its micro-batch, so the negatives of the other processes are missing.

        Args:
            objective: whole, not sharded; its mode does not change.
            batch: a micro-batch of the main process.

        Returns:
            norms by term, before clipping; 0 for a term that depends on no weight. Empty in all
            processes except the main one.
        """
        if not self._engine.is_main:
            return {}
        weights = [weight for weight in objective.parameters() if weight.requires_grad]
        # The random state of the CPU is always restored, that of a GPU only if its device is
        # listed.
        devices = [self._engine.device] if self._engine.device.type == "cuda" else []
        training = objective.training
        objectives = [module for module in objective.modules() if isinstance(module, Objective)]
        norms: dict[str, float] = {}
        objective.eval()
        # A sum of methods has several objectives, each with terms of its own.
        for module in objectives:
            module.keeps_graph = True
        with torch.random.fork_rng(devices), self._engine.alone(objective):
            for part in objective.parts or (None,):
                with self._engine.autocast():
                    output = objective(batch) if part is None else objective(batch, part=part)
                for name, term in output.terms.items():
                    # fp16: the term is scaled up for the backward pass, and its norm is scaled down
                    scaled = self._loss_scale.scale(term)
                    norms[name] = _gradient_norm(scaled, weights) / self._loss_scale.value
        for module in objectives:
            module.keeps_graph = False
        objective.train(training)
        return norms

    def warnings(self, norms: Mapping[str, float], objective: Objective) -> list[str]:
        """Report each term once if its gradient is a hundred times smaller than the largest.

        A term that is computed for several widths counts as one, by the largest of its norms.

        Args:
            norms: see ``measure``; norms that are not finite are ignored here, because the checks
                of the loss report them.
            objective: knows the weights of the terms.

        Returns:
            a line for each such term, with the weight that would make the norms equal.
        """
        finite = {name: norm for name, norm in norms.items() if math.isfinite(norm)}
        largest: dict[str, str] = {}
        widths = {
            width
            for module in objective.modules()
            if isinstance(module, Objective) and module.matryoshka is not None
            for width in module.matryoshka.dims
        }
        for name in sorted(finite, key=lambda name: finite[name]):
            largest[_without_width(name, widths)] = name
        strongest = max(finite, key=lambda name: finite[name], default="")
        lines = []
        for term, name in largest.items():
            if finite[name] < FAINT * finite[strongest] and term not in self._reported:
                self._reported.add(term)
                lines.append(
                    f"the term {name} has almost no effect: the norm of its gradient is"
                    f" {finite[name]:.1e}, that of {strongest} is {finite[strongest]:.1e};"
                    f" {_remedy(objective, finite, name, strongest)}"
                )
        return lines


def _without_width(name: str, widths: Collection[int]) -> str:
    """Return the name of a term without the width for which it was computed."""
    term, _, width = name.rpartition("_")
    return term if width.isdecimal() and int(width) in widths else name


def _remedy(objective: Objective, norms: Mapping[str, float], faint: str, strongest: str) -> str:
    """Return the weight that would make the norms of two terms equal, and how to set it."""
    if not norms[faint]:
        return "its gradient is 0, which no weight can change: switch the term off"
    ratio = norms[strongest] / norms[faint]
    own, other = objective.weight_of(faint), objective.weight_of(strongest)
    if own is not None:
        option, value = own
        balancing = f"{option} = {value * ratio:.3g} (now {value:g}) would balance them"
        return f"set {balancing}, or switch the term off"
    if other is not None:
        option, value = other
        balancing = f"{option} = {value / ratio:.3g} (now {value:g}) would balance them"
        return f"it has no weight of its own; {balancing}"
    return f"it has no weight of its own; multiply the term by {ratio:.3g} to balance them"


def _gradient_norm(term: Tensor, weights: list[torch.nn.Parameter]) -> float:
    """Compute the norm over all weights together; 0 if the term depends on none."""
    if not term.requires_grad:
        return 0.0
    found = torch.autograd.grad(term, weights, retain_graph=True, allow_unused=True)
    gradients = [gradient for gradient in found if gradient is not None]
    norms = []
    for gradient in gradients:
        # a row of a table may occur in a sparse gradient several times
        values = gradient.coalesce().values() if gradient.is_sparse else gradient
        if values.numel():
            norms.append(torch.linalg.vector_norm(values.float()))
    if not norms:
        return 0.0
    return float(torch.linalg.vector_norm(torch.stack(norms)))
