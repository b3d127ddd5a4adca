"""LASER's document classifier, trained for many seeds and languages side by side.

Source: ``source/sent_classif.py`` and ``tasks/mldoc/mldoc.sh`` of facebookresearch/LASER, the
classifier of Artetxe and Schwenk (2019), sec. 4.2, which EMS (Mao et al. 2023) uses for MLDoc and
CLS.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.evaluation.metrics.linear import linear_start

HIDDEN = (10, 8)
DROPOUT = 0.2
_LEARNING_RATE = 1e-3
BATCH_SIZE = 12
EPOCHS = 500


class MLPs(NamedTuple):
    """Networks d -> 10 -> 8 -> classes with tanh between, one per language and seed.

    Attributes:
        layers: weights (languages, seeds, outputs, inputs) and biases (languages, seeds, 1,
            outputs) of each layer.
        dev_right: number of dev examples that each network classifies correctly (languages,
            seeds).
    """

    layers: list[tuple[Tensor, Tensor]]
    dev_right: Int64[Tensor, "l s"]

    def predict(self, x: Float[Tensor, "n d"], language: int) -> Int64[Tensor, "s n"]:
        """Predict the classes of the same texts with all networks of one language."""
        # a slice, because an index would remove the axis of languages from the layers
        chosen = slice(language, language + 1)
        own = [(weight[chosen], bias[chosen]) for weight, bias in self.layers]
        return _logits(own, x[None, None]).argmax(-1)[0]


def train_mlps(
    x: Float[Tensor, "l n d"],
    y: Int64[Tensor, "l n"],
    dev_x: Float[Tensor, "l m d"],
    dev_y: Int64[Tensor, "l m"],
    *,
    classes: int,
    seeds: Sequence[int],
    epochs: int = EPOCHS,
) -> MLPs:
    """Train LASER's networks, one for each language and seed.

    The layers are dropout .2 -> Linear(d, 10) -> tanh -> dropout -> Linear(10, 8) -> tanh ->
    dropout -> Linear(8, classes).

    Training uses cross-entropy, Adam with a learning rate of 1e-3 and no decay, batches of 12 and
    500 epochs. The epoch with the most correct dev examples is kept; of equals, the last. On a CPU,
    a seed's random numbers equal those of LASER's script, even if other networks are trained at the
    same time.

    Args:
        x: training embeddings of each language, as they are, not normalized.
        y: their classes.
        dev_x: dev embeddings of each language.
        dev_y: their classes.
        classes: their number.
        seeds: one network per language and seed.
        epochs: passes over the training set.
    """
    streams = [_Stream(seed) for seed in seeds]
    layers = _start(streams, len(x), (x.shape[-1], *HIDDEN, classes), x.dtype)
    parameters = [parameter.requires_grad_() for layer in layers for parameter in layer]
    optimizer = torch.optim.Adam(parameters, lr=_LEARNING_RATE, fused=True)
    best = [parameter.detach().clone() for parameter in parameters]
    best_right = torch.zeros(len(x), len(seeds), dtype=torch.int64)
    for _ in range(epochs):
        orders = torch.stack([stream.order(x.shape[1]) for stream in streams])
        for rows in torch.split(orders, BATCH_SIZE, dim=1):
            masks = [_masks(streams, rows.shape[1], weight) for weight, _ in layers]
            logits = _logits(layers, _rows(x, rows), masks)
            labels = _rows(y, rows).flatten()
            # the mean over the batch for each network, then the sum over networks: so the number of
            # networks does not change the gradient of any of them
            total = F.cross_entropy(logits.flatten(0, 2), labels, reduction="sum")
            loss = total / rows.shape[1]
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        for stream in streams:
            stream.pass_over_dev()
        with torch.no_grad():
            predicted = _logits(layers, dev_x[:, None]).argmax(-1)
            right = (predicted == dev_y[:, None]).sum(-1)
            # >=, so that of equal epochs the last one is kept
            is_better = right >= best_right
            best_right = torch.where(is_better, right, best_right)
            best = [
                torch.where(is_better[..., None, None], now, before)
                for now, before in zip(parameters, best, strict=True)
            ]
    # the parameters are weight, bias, weight, bias, ...
    return MLPs(list(zip(best[::2], best[1::2], strict=True)), best_right)


class _Stream:
    """The random numbers of one run of LASER's script, drawn in the script's order.

    They are the first weights of the layers, orders of a DataLoader, and masks of Dropout.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def order(self, length: int) -> Int64[Tensor, " n"]:
        # a DataLoader's seed for its workers, then that of its sampler
        self._draw()
        return torch.randperm(length, generator=torch.Generator().manual_seed(self._draw()))

    def pass_over_dev(self) -> None:
        # a DataLoader that does not shuffle draws the seed for its workers too
        self._draw()

    def mask(self, rows: int, width: int, dtype: torch.dtype) -> Float[Tensor, "b d"]:
        mask = torch.empty(rows, width, dtype=dtype)
        return mask.bernoulli_(1 - DROPOUT, generator=self.generator)

    def _draw(self) -> int:
        return int(torch.empty((), dtype=torch.int64).random_(generator=self.generator).item())


def _start(
    streams: Sequence[_Stream], languages: int, widths: Sequence[int], dtype: torch.dtype
) -> list[tuple[Tensor, Tensor]]:
    """Return the initial parameters, equal for all languages, as in separate runs."""
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        drawn = [linear_start(inputs, outputs, stream.generator, dtype=dtype) for stream in streams]
        weight = torch.stack([weight for weight, _ in drawn]).repeat(languages, 1, 1, 1)
        bias = torch.stack([bias for _, bias in drawn])[:, None].repeat(languages, 1, 1, 1)
        layers.append((weight, bias))
    return layers


def _masks(streams: Sequence[_Stream], rows: int, weight: Tensor) -> Float[Tensor, "s b d"]:
    """Return the dropout masks of a layer's input: 0, or 1 / (1 - p) to preserve the mean."""
    masks = [stream.mask(rows, weight.shape[3], weight.dtype) for stream in streams]
    return torch.stack(masks).div_(1 - DROPOUT)


def _logits(
    layers: Sequence[tuple[Tensor, Tensor]],
    x: Float[Tensor, "l s n d"],
    masks: Sequence[Tensor] | None = None,
) -> Float[Tensor, "l s n c"]:
    for number, (weight, bias) in enumerate(layers):
        if masks is not None:
            x = x * masks[number]
        x = x @ weight.mT + bias
        # the last layer gives logits
        if number + 1 < len(layers):
            x = x.tanh()
    return x


def _rows(values: Tensor, rows: Int64[Tensor, "s b"]) -> Tensor:
    """Compute ``values[:, rows]``, (l, n, ...) -> (l, s, b, ...), several times faster."""
    return values.index_select(1, rows.flatten()).reshape(
        len(values), *rows.shape, *values.shape[2:]
    )
