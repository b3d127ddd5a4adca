"""A transformer layer in training: its weights, and the executor that computes it.

The weights are defined in ``layer_weights.py``, which the executors use too.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from interlingua.encoder.executors import fused
from interlingua.encoder.executors.eager import EagerSteps
from interlingua.encoder.executors.fused_by_compiler import OnePassSteps
from interlingua.encoder.modeling.attention import Layout
from interlingua.encoder.modeling.layer_weights import LayerSteps, LayerWeights, run_layer
from interlingua.runtime.fusion import switch


class Layer(LayerWeights):
    """A layer that transforms hidden states, by the fastest executor that can do it."""

    recomputes = False
    """Keep only the input of the layer for the backward pass, and recompute its activations
    there."""

    def forward(self, x: Float[Tensor, "t d"], layout: Layout) -> Float[Tensor, "t d"]:
        """Transform the hidden states of all sentences.

        Only the attention uses the ends of sentences.
        """
        if self.recomputes and torch.is_grad_enabled():
            transformed: Tensor = checkpoint(self.transform, x, layout, use_reentrant=False)
            return transformed
        return self.transform(x, layout)

    def transform(self, x: Float[Tensor, "t d"], layout: Layout) -> Float[Tensor, "t d"]:
        """Compute ``forward`` with all activations kept for the backward pass."""
        return run_layer(self.spec, self._steps(x, layout), x)

    def _steps(self, x: Float[Tensor, "t d"], layout: Layout) -> LayerSteps[Tensor]:
        """Return the executor for this step: the kernel if it supports the layer, or else torch."""
        # Decided anew in each step, since it depends on the layer, autocast and the batch.
        if fused.takes(self, x, layout):
            return fused.FusedSteps(self, layout)
        if switch.is_on:
            return OnePassSteps(self, layout)
        return EagerSteps(self, layout)


def layout_for(
    layers: nn.ModuleList, cu_seqlens: Int[Tensor, " b+1"], device: torch.device
) -> Layout:
    """Return the order of tokens in which a stack of layers runs fastest now.

    Args:
        layers: all of them.
        cu_seqlens: sentence boundaries, best on the host.
        device: of the layers.
    """
    # One order serves all layers: the tokens are moved once before them and once after.
    uses_flash = all(layer.uses_flash() for layer in layers)  # type: ignore[operator]
    return Layout.of(cu_seqlens, flash=uses_flash, device=device)
