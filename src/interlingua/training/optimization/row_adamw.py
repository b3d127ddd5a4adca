"""AdamW that updates only the rows of a table that were ever looked up.

With a vocabulary of 250,000 words most weights of a small model are its table of word embeddings,
and most rows of it belong to words that the corpus does not have. Their gradient and moments are
zero in every step, and plain AdamW reads and writes all of them. Here only rows that have had a
gradient are updated, in groups of limited size; one product over the whole table decays all other
rows.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor, nn

_ROWS_AT_ONCE = 1024
"""Rows updated together; their weights, gradients and moments stay in the cache."""
_MOST_ROWS = 1 / 8
"""Share of moving rows beyond which it is faster to update the whole table in order."""
MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
"""Names of the moments in torch's AdamW; the last only with amsgrad."""
ParameterGroup = dict[str, Any]


class RowAdamW(torch.optim.AdamW):
    """AdamW with the same results, at a cost that grows with the rows that have had a gradient.

    A row that never had a gradient has moments of 0. AdamW only decays it, which needs one product
    but no gradient and no moments. Because of its moments, every row that has had a gradient moves
    in every step, whether it is looked up or not. ``torch.optim.SparseAdam`` moves only rows that
    are looked up.

    Tables are recognized by the sparse gradients of an ``nn.Embedding`` with ``sparse=True``. The
    dense gradient of a table that is also an output layer is handled like the gradient of any other
    weight.

    Args:
        groups: parameter groups.
        options: of ``torch.optim.AdamW``.
    """

    def __init__(self, groups: list[ParameterGroup], **options: Any) -> None:
        super().__init__(groups, **options, fused=True)
        self._moving: dict[nn.Parameter, tuple[Tensor, Bool[Tensor, " v"]]] = {}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Make a step with the present gradients."""
        assert closure is None
        # Tables are hidden from torch's step, which regards weights without a gradient as frozen.
        tables: list[tuple[nn.Parameter, Tensor, Int64[Tensor, " n"], ParameterGroup]] = []
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None or not weight.grad.is_sparse:
                    # a dense step may move any row, so the record of moving rows is out of date
                    self._moving.pop(weight, None)
                    continue
                gradient = weight.grad.coalesce()
                weight.grad = None
                rows = self._rows(weight, gradient, group)
                if len(rows) > _MOST_ROWS * len(weight):
                    weight.grad = gradient.to_dense()
                else:
                    tables.append((weight, gradient, rows, group))
        super().step()
        for weight, gradient, rows, group in tables:
            weight.grad = gradient
            self._step_of(weight, rows, group)

    def _rows(
        self, weight: nn.Parameter, gradient: Tensor, group: ParameterGroup
    ) -> Int64[Tensor, " n"]:
        """Return the rows that move, including those of this gradient."""
        state = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state.update({name: _zeros(weight) for name in _moments(group)})
            self._moving[weight] = state["exp_avg"], torch.zeros(len(weight), dtype=torch.bool)
        average, moving = self._moving.get(weight, (None, None))
        if moving is None or average is not state["exp_avg"]:
            # After a checkpoint or dense gradients: the rows that move have a moment other than 0.
            moving = (state["exp_avg"] != 0).any(1) | (state["exp_avg_sq"] != 0).any(1)
            self._moving[weight] = state["exp_avg"], moving
        moving[gradient.indices()[0]] = True
        return moving.nonzero()[:, 0]

    def _step_of(
        self, weight: nn.Parameter, rows: Int64[Tensor, " n"], group: ParameterGroup
    ) -> None:
        """Make AdamW's step of one table.

        It decays all rows, and updates the moments of those that move.
        """
        state = self.state[weight]
        gradient = weight.grad
        assert gradient is not None
        state["step"] += 1
        if group["weight_decay"]:
            weight.mul_(1 - group["lr"] * group["weight_decay"])
        # Place of each row of the gradient among the moving rows; both are in ascending order.
        looked_up = torch.searchsorted(rows, gradient.indices()[0])
        slopes = gradient.values()
        whole = [weight.detach(), *(state[name] for name in _moments(group))]
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[first : first + _ROWS_AT_ONCE]
            # The rows of this part that were looked up in this step; the others' gradient is 0.
            bounds = torch.tensor([first, first + len(part)])
            here = slice(*torch.searchsorted(looked_up, bounds).tolist())
            dense = slopes.new_zeros(len(part), slopes.shape[1])
            dense[looked_up[here] - first] = slopes[here]
            parts = [tensor.index_select(0, part) for tensor in whole]
            own, average, square, *largest = parts
            # No weight decay here: all rows were decayed above.
            torch._fused_adamw_(
                [own],
                [dense],
                [average],
                [square],
                largest,
                [state["step"]],
                amsgrad=group["amsgrad"],
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=0.0,
                eps=group["eps"],
                maximize=False,
            )
            for tensor, new in zip(whole, parts, strict=True):
                tensor.index_copy_(0, part, new)


def _moments(group: ParameterGroup) -> tuple[str, ...]:
    """Return the names of the moments that a group's weights have."""
    if group["amsgrad"]:
        return MOMENTS
    return MOMENTS[:2]


def _zeros(like: Float32[Tensor, "v d"]) -> Float32[Tensor, "v d"]:
    """Return zeros that take memory page by page when they are first written to."""
    # an anonymous map: torch's own zeros would be written at once
    memory = mmap.mmap(-1, like.numel() * like.element_size())
    return torch.frombuffer(memory, dtype=like.dtype).view(like.shape)
