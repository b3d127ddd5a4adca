"""The backbone's form for inference, kept until its weights change."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from interlingua.encoder.executors.layers import Frozen, automatic_dtype, freeze
from interlingua.encoder.modeling.backbone import Backbone


class SnapshotCache:
    """The last snapshot of one backbone, valid while weights and dtype stay the same.

    It also keeps the dtype that "auto" means, until the weights change.

    Changes in place are noticed by the weights' version counters. A change through ``.data`` does
    not raise the counter, so call ``clear`` after it. Copies and pickles of a cache are empty.
    """

    def __init__(self) -> None:
        self._kept: tuple[Frozen, _State, list[Tensor]] | None = None
        self._automatic: tuple[torch.dtype, _State] | None = None

    def snapshot(self, backbone: Backbone, dtype: torch.dtype | None) -> Frozen:
        """Return the snapshot of the weights as they are now.

        It is not kept while the backbone is in training mode.

        Args:
            backbone: the same at every call.
            dtype: to compute in; None = the fastest dtype that keeps vectors close to those in
                float32.
        """
        state = _state(backbone)
        if dtype is None:
            dtype = self._automatic_dtype(backbone, state)
        if self._kept is not None and state is not None:
            kept, kept_state, _ = self._kept
            if kept.dtype == dtype and kept_state == state:
                return kept
        # Freed before the new snapshot is made, as there may not be memory for two.
        self.clear()
        frozen = freeze(backbone, dtype)
        if state is not None and not backbone.training:
            # While the weights are held here, no other tensors can get their addresses.
            self._kept = frozen, state, [weight.detach() for weight in backbone.parameters()]
        return frozen

    def _automatic_dtype(self, backbone: Backbone, state: _State | None) -> torch.dtype:
        if self._automatic is None or self._automatic[1] != state:
            found = automatic_dtype(backbone).dtype
            # Without versions a later change would go unnoticed.
            if state is None:
                return found
            self._automatic = found, state
        return self._automatic[0]

    def clear(self) -> None:
        """Free the snapshot's memory."""
        self._kept = None

    def __reduce__(self) -> tuple[type[SnapshotCache], tuple[()]]:
        return SnapshotCache, ()


_State = tuple[tuple[int, int], ...]


def _state(backbone: Backbone) -> _State | None:
    """Return the address and version of every weight.

    The result is None for tensors made in inference mode, which have no version.
    """
    try:
        return tuple([(weight.data_ptr(), weight._version) for weight in _weights(backbone)])
    except RuntimeError:
        return None


def _weights(module: nn.Module) -> list[Tensor]:
    """Return the tensors of ``parameters()`` in a fraction of its time.

    ``parameters()`` would noticeably delay the encoding of a short text.
    """
    weights: list[Tensor | None] = []
    modules: list[nn.Module | None] = [module]
    # The list grows while the loop goes through it.
    for one in modules:
        if one is not None:
            weights += one._parameters.values()
            modules += one._modules.values()
    return [weight for weight in weights if weight is not None]
